"""Small documents of every format: made up, of the shape that real ones have."""

from typing import Any

SERVER: dict[str, Any] = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
    "name": "io.github.Example-Org/tide-tables",
    "title": "Tide tables",
    "description": "When the tide is high or low at a harbour.",
    "version": "1.4.0",
    "websiteUrl": "https://tides.example.org",
    "repository": {"url": "https://github.com/Example-Org/tide-tables", "source": "github"},
    "remotes": [
        {"type": "sse", "url": "https://tides.example.org/sse"},
        {"type": "streamable-http", "url": "https://tides.example.org/mcp"},
    ],
    "packages": [
        {"registryType": "pypi", "identifier": "tide-tables", "version": "1.4.0", "transport": {"type": "stdio"}}
    ],
    "_meta": {"io.modelcontextprotocol.registry/publisher-provided": {"build": 7}},
}

OLD_SERVER: dict[str, Any] = {
    "name": "io.github.example-org/ferry-times",
    "description": "Departures of ferries.",
    "status": "active",
    "repository": {"url": "https://github.com/example-org/ferry-times", "source": "github", "id": "1"},
    "version_detail": {"version": "0.3.1", "is_latest": True},
    "packages": [
        {"registry_name": "npm", "name": "@example-org/ferry-times", "version": "0.3.1",
         "environment_variables": [{"name": "FERRY_KEY", "is_required": True}]}
    ],
}  # fmt: skip

TOOLS: dict[str, Any] = {
    "tools": [
        {
            "name": "high_tide",
            "title": "High tide",
            "description": "The next high tide at a harbour.",
            "inputSchema": {"type": "object", "properties": {"harbour": {"type": "string"}}, "required": ["harbour"]},
            "outputSchema": {"type": "object", "properties": {"time": {"type": "string"}}},
            "annotations": {"readOnlyHint": True},
            "x-team": "harbours",
        },
        {"name": "low_tide", "inputSchema": {"type": "object"}, "annotations": {"title": "The next low tide"}},
    ]
}

CARD: dict[str, Any] = {
    "protocolVersion": "0.3.0",
    "name": "Travel desk",
    "description": "Books journeys and changes them.",
    "url": "https://agents.example.com/travel/a2a",
    "preferredTransport": "JSONRPC",
    "additionalInterfaces": [{"url": "https://agents.example.com/travel/grpc", "transport": "GRPC"}],
    "provider": {"organization": "Example Travel", "url": "https://www.example.com"},
    "version": "2.1.0",
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [
        {"id": "book", "name": "Book a journey", "description": "Finds and books trains.", "tags": ["travel", "rail"],
         "examples": ["book me a train to Lyon on Friday"]},
        {"id": "change", "name": "Change a booking", "description": "Moves a booking.", "tags": ["travel"],
         "examples": ["move my journey to Monday"]},
    ],
    "x-review": "passed",
}  # fmt: skip

CARD_1_0: dict[str, Any] = {
    **{key: value for key, value in CARD.items() if key not in ("url", "preferredTransport", "protocolVersion")},
    "supportedInterfaces": [
        {"url": "https://agents.example.com/travel/v1", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        {"url": "https://agents.example.com/travel/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    ],
    "securityRequirements": [{"key": []}],
}

OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Lending desk", "version": "2026-03", "contact": {"url": "https://library.example.net"}},
    "servers": [{"url": "https://api.library.example.net/{stage}", "variables": {"stage": {"default": "v1"}}}],
    "security": [{"key": []}],
    "paths": {
        "/books/{isbn}/loans": {
            "x-desk": "ground floor",
            "parameters": [{"$ref": "#/components/parameters/Isbn"}],
            "post": {
                "operationId": "lendBook",
                "summary": "Lend a book",
                "description": "To a member, for four weeks.",
                "tags": ["loans"],
                "parameters": [
                    {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                    {"name": "notify", "in": "query", "schema": {"type": "boolean"}, "description": "Send a mail"},
                ],
                "requestBody": {"required": True, "content": {
                    "application/xml": {"schema": {"type": "object"}},
                    "application/json": {"schema": {"$ref": "#/components/schemas/Loan"}},
                }},
                "responses": {"201": {"description": "Lent"}},
                "x-cost": 1,
            },
            "get": {"summary": "Who has it", "deprecated": True, "responses": {}},
        }
    },
    "components": {
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}, "other": {"type": "http"}},
        "parameters": {"Isbn": {"name": "isbn", "in": "path", "required": True, "schema": {"type": "string"}}},
        "schemas": {
            "Loan": {"type": "object", "properties": {"member": {"$ref": "#/components/schemas/Member"}}},
            "Member": {"type": "object", "properties": {
                "name": {"type": "string"}, "guarantor": {"$ref": "#/components/schemas/Member"}}},
        },
    },
}  # fmt: skip

SKILL = """---
name: tidy-minutes
description: Turns rough notes of a meeting into minutes. Use when somebody pastes notes.
license: MIT
allowed-tools: Read Write
metadata:
  author: Example Office
  version: "1.2"
  homepage: https://office.example.org/skills
tags: [minutes, meetings]
---

# Tidy minutes

Read the notes twice, then write who decided what.
"""

MODELS: dict[str, Any] = {
    "modelSummaries": [
        {
            "modelArn": "arn:aws:bedrock:eu-north-1::foundation-model/example.small-v1:0",
            "modelId": "example.small-v1:0",
            "modelName": "Small",
            "providerName": "Example",
            "inputModalities": ["TEXT", "IMAGE"],
            "outputModalities": ["TEXT"],
            "responseStreamingSupported": True,
            "customizationsSupported": [],
            "inferenceTypesSupported": ["ON_DEMAND"],
            "modelLifecycle": {"status": "LEGACY"},
        }
    ],
    "inferenceProfileSummaries": [
        {
            "inferenceProfileName": "EU Example Small",
            "description": "Routes requests to Example Small in several regions.",
            "createdAt": "2026-01-02T03:04:05+00:00",
            "updatedAt": "2026-01-02T03:04:05+00:00",
            "inferenceProfileArn": "arn:aws:bedrock:eu-north-1:123456789012:inference-profile/eu.example.small-v1:0",
            "models": [
                {"modelArn": "arn:aws:bedrock:eu-west-1::foundation-model/example.small-v1:0"},
                {"modelArn": "arn:aws:bedrock:eu-north-1::foundation-model/example.small-v1:0"},
            ],
            "inferenceProfileId": "eu.example.small-v1:0",
            "status": "ACTIVE",
            "type": "SYSTEM_DEFINED",
        }
    ],
}

CONFIG: dict[str, Any] = {"mcpServers": {"files": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}}}
FUNCTIONS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "t"},
    "host": "a.example.com",
    "securityDefinitions": {"o": {"type": "oauth2", "flow": "implicit", "scopes": {}}},
    "paths": {
        "/a": {
            "parameters": [{"in": "body", "name": "b", "schema": {"type": "object"}}],
            "post": {"parameters": [{"in": "query", "name": "q", "type": "array", "items": {"type": "string"}}]},
        }
    },
}
CATALOG: dict[str, Any] = {
    "entries": [{"identifier": "urn:air:a.example.com:tool:x", "type": "application/vnd.mats.tool+json", "tags": ["t"]}]
}
