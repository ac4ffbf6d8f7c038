"""Files of MCP clients, tool lists of OpenAI, Swagger 2 and catalogs of ARD."""

import json
from typing import Any

import pytest

from mats.domain.capability.registration import Registration
from mats.domain.protocols.catalogue import invocation_of
from mats.domain.protocols.mcp_server import McpRemote, McpStdio
from mats.domain.protocols.openapi import HttpCall
from mats.domain.protocols.protocol import Source
from mats.local.imports.formats import detect_format, map_value

OWNED = Source("file.json", namespace="com.acme")
CONFIG: dict[str, Any] = {
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@acme/files", "--api-key=sk-12345678901234567890", "/data"],
                  "env": {"FILES_TOKEN": "s3cret-value"}},
        "tickets": {"type": "http", "url": "https://mcp.tickets.example.com/mcp?key=s3cret-value",
                    "headers": {"Authorization": "Bearer s3cret-value", "X-Team": "s3cret-value"}},
        "off": {"command": "npx", "disabled": True},
        "broken": {"args": []},
    }
}  # fmt: skip
FUNCTION = {"name": "refund", "description": "Gives money back.", "strict": True,
            "parameters": {"type": "object", "properties": {"charge": {"type": "string"}}}}  # fmt: skip
SWAGGER: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "Claims", "version": "7"},
    "host": "api.example.com",
    "basePath": "/v2",
    "schemes": ["http", "https"],
    "consumes": ["application/xml", "application/json"],
    "securityDefinitions": {
        "key": {"type": "apiKey", "name": "X-Key", "in": "header"},
        "basic": {"type": "basic"},
        "login": {"type": "oauth2", "flow": "accessCode", "authorizationUrl": "https://a", "tokenUrl": "https://t",
                  "scopes": {"read": "Read"}},
    },
    "security": [{"key": []}],
    "definitions": {"Claim": {"type": "object", "properties": {"amount": {"type": "number"}}}},
    "parameters": {
        "Body": {"in": "body", "name": "claim", "required": True, "schema": {"$ref": "#/definitions/Claim"}}
    },
    "paths": {
        "/claims/{id}": {
            "parameters": [{"in": "path", "name": "id", "required": True, "type": "string", "minLength": 3}],
            "put": {"operationId": "putClaim", "summary": "Replace a claim.",
                    "parameters": [{"$ref": "#/parameters/Body"},
                                   {"in": "query", "name": "tags", "type": "array", "items": {"type": "string"},
                                    "collectionFormat": "multi"}]},
            "post": {"operationId": "attach", "summary": "Attach a file.",
                     "security": [{"basic": []}, {"login": ["read"]}],
                     "parameters": [{"in": "formData", "name": "file", "type": "file", "required": True},
                                    {"in": "formData", "name": "note", "type": "string", "description": "Why."}]},
        }
    },
}  # fmt: skip


def mapped(value: Any, source: Source = OWNED) -> dict[str, Registration]:
    found = [one.registration for one in map_value(value, source)]
    return {one.name: one for one in found if one}


def faults(value: Any, source: Source = OWNED) -> list[str]:
    return [f"{one.where}: {fault}" for one in map_value(value, source) for fault in one.faults]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (CONFIG, "mcp-config"),
        ({"mcpServers": {}}, "mcp-config"),
        ({"inputs": [], "servers": {"a": {"type": "stdio", "command": "x"}}}, "mcp-config"),
        ({"type": "function", "function": FUNCTION}, "openai-tool"),
        ([{"type": "function", **FUNCTION}], "openai-tool"),
        ({"model": "m", "tools": [{"type": "web_search"}, {"type": "function", **FUNCTION}]}, "openai-tool"),
        ([{"name": "a", "input_schema": {"type": "object"}}], "mcp-tools"),
        (SWAGGER, "openapi"),
        ({"entries": [{"identifier": "urn:air:a.example.com:x"}]}, "ard-entry"),
    ],
)
def test_formats_are_detected_by_content(value: Any, name: str):
    format = detect_format(value)
    assert format
    assert name == format.name


def test_a_configuration_lists_its_servers_without_any_secret():
    servers = mapped(CONFIG)
    assert servers.keys() == {"files", "tickets"}
    assert "s3cret" not in json.dumps([one.item() for one in servers.values()])
    assert "sk-123" not in json.dumps([one.item() for one in servers.values()])
    files, tickets = (invocation_of(servers[name]) for name in ("files", "tickets"))
    assert isinstance(files, McpStdio)
    assert (files.command, files.args[:2], files.env, files.tool) == (
        "npx", ("-y", "@acme/files"), ("FILES_TOKEN",), "",
    )  # fmt: skip
    assert isinstance(tickets, McpRemote)
    assert tickets.url.startswith("https://mcp.tickets.example.com/mcp")
    assert tickets.headers == ("X-Team",)
    assert servers["tickets"].endpoint == "https://mcp.tickets.example.com/mcp"


def test_a_server_that_is_off_is_skipped_and_a_broken_one_rejected():
    found = {one.where: one for one in map_value(CONFIG, OWNED)}
    assert (found["mcpServers.off"].registration, found["mcpServers.off"].id) == (None, "com.acme/off")
    assert "must have a `command`" in faults(CONFIG)[0]


def test_a_server_by_its_address_names_its_owner():
    (one,) = mapped({"mcpServers": {"t": CONFIG["mcpServers"]["tickets"]}}, Source("f")).values()
    assert one.namespace == "com.example.tickets.mcp"


@pytest.mark.parametrize(
    "value", [{"type": "function", "function": FUNCTION}, {"tools": [{"type": "function", **FUNCTION}]}]
)
def test_both_shapes_of_openai_functions_are_one_tool(value: Any):
    tool = mapped(value)["refund"]
    assert tool.input_schema == FUNCTION["parameters"]
    assert tool.description == "Gives money back."
    assert tool.descriptor == {"format": "openai-tool", "strict": True}


def test_tools_built_into_openai_are_skipped():
    found = list(map_value([{"type": "function", **FUNCTION}, {"type": "web_search"}], OWNED))
    assert [bool(one.registration) for one in found] == [True, False]
    assert "no function; skipped" in str(found[1].notes[0])


def test_swagger_2_is_read_as_openapi_3():
    tools = mapped(SWAGGER, Source("f"))
    put, attach = tools["putClaim"], tools["attach"]
    assert (put.namespace, put.endpoint) == ("com.example.api.claims", "https://api.example.com/v2/claims/{id}")
    assert put.input_schema == {
        "type": "object",
        "properties": {
            "id": {"type": "string", "minLength": 3},
            "tags": {"type": "array", "items": {"type": "string"}},
            "body": {"type": "object", "properties": {"amount": {"type": "number"}}},
        },
        "required": ["id", "body"],
    }
    call = invocation_of(put)
    assert isinstance(call, HttpCall)
    assert (call.method, call.body) == ("PUT", "application/json")
    assert [(one.name, one.in_) for one in call.parameters] == [("id", "path"), ("tags", "query")]
    assert call.auth
    assert attach.input_schema
    assert attach.input_schema["properties"]["body"] == {
        "type": "object",
        "properties": {
            "file": {"type": "string", "format": "binary"},
            "note": {"type": "string", "description": "Why."},
        },
        "required": ["file"],
    }
    sent = invocation_of(attach)
    assert isinstance(sent, HttpCall)
    assert sent.body == "multipart/form-data"
    assert attach.descriptor
    assert attach.descriptor["securitySchemes"]["login"]["flows"]["authorizationCode"]["tokenUrl"] == "https://t"


def test_swagger_without_a_host_is_where_it_was_found():
    document = {key: value for key, value in SWAGGER.items() if key not in ("host", "schemes")}
    tools = mapped(document, Source("f", url="https://docs.example.org/swagger.json"))
    assert tools["putClaim"].endpoint == "https://docs.example.org/v2/claims/{id}"


def test_an_entry_of_a_catalog_is_named_by_its_identifier():
    entries = [
        {"identifier": "urn:air:pay.acme.com:tool:refund_x20_now", "type": "application/vnd.mats.tool+json",
         "url": "https://r/capabilities/x", "description": "Gives money back.", "representativeQueries": ["refund"],
         "metadata": {"lifecycle": "deprecated", "provider": "Acme"}, "updatedAt": "2026-01-01T00:00:00Z"},
        {"identifier": "urn:air:acme.com:server:weather", "displayName": "Weather", "url": "https://w.acme.com/mcp",
         "type": "application/mcp-server-card+json", "tags": ["rain"]},
        {"identifier": "urn:air:acme.com:x", "type": "application/ai-registry+json", "url": "https://r"},
        {"identifier": "weather", "type": "application/ai-skill+md", "url": "https://s"},
    ]  # fmt: skip
    found = mapped({"entries": entries}, Source("f"))
    refund, weather = found["refund now"], found["weather"]
    assert (refund.id, refund.lifecycle, refund.examples) == ("com.acme.pay/refund now", "deprecated", ("refund",))
    assert (refund.endpoint, refund.provider) == ("", "Acme")
    assert (weather.namespace, weather.endpoint, weather.tags) == (
        "com.acme",
        "https://w.acme.com/mcp",
        ("mcp", "rain"),
    )
    assert faults({"entries": entries}) == [
        "entries[3].identifier: must be of the form urn:air:<publisher>:<namespace>:<name>"
    ]
