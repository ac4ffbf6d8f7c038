"""The API's own description, from the models that parse and answer."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from mats import __version__
from mats.edge.answer import Answer, Capability, Health, Problem
from mats.edge.formats import ReadyMade
from mats.edge.request import DiscoverRequest, Format

_REF = "#/components/schemas/{model}"


def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    from mats.edge import ard_openapi  # noqa: PLC0415 - models that few requests need

    models: list[type[BaseModel]] = [DiscoverRequest, Answer, ReadyMade, Capability, Health, Problem]
    models += ard_openapi.MODELS
    _, definitions = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mats",
            "version": __version__,
            "description": "Finds the model, agent, tool or skill for a request, and invokes nothing.",
        },
        "paths": {
            "/discover": {
                "post": {
                    "operationId": "discover",
                    "tags": ["discovery"],
                    "summary": "Rank capabilities for a request",
                    "parameters": [
                        _parameter("format", {"$ref": _REF.format(model=Format.__name__)}),
                        _parameter("token_budget", {"type": "integer", "minimum": 1}),
                    ],
                    "requestBody": {"required": True, "content": _json(DiscoverRequest)},
                    "responses": {
                        "200": _answer("A ranked shortlist; with a `format`, the tools to pass on.", Answer, ReadyMade),
                        **_problems("400", "413", "422", "429", "503"),
                    },
                }
            },
            "/capabilities/{id}": {
                "get": {
                    "operationId": "getCapability",
                    "tags": ["discovery"],
                    "summary": "Show one capability",
                    "parameters": [
                        {
                            "name": "id",
                            "in": "path",
                            "required": True,
                            "description": "`namespace/name`; slashes may be written as they are or as %2F.",
                            "schema": {"type": "string"},
                        }
                    ],
                    "responses": {"200": _answer("Its profile.", Capability), **_problems("404", "429", "503")},
                }
            },
            "/mcp": {
                "post": {
                    "operationId": "mcp",
                    "tags": ["discovery"],
                    "summary": "Speak MCP: streamable HTTP, without sessions or streams",
                    "description": "One JSON-RPC message of the Model Context Protocol, 2026-07-28 or older.",
                    "requestBody": {"required": True, "content": _MESSAGE},
                    "responses": {
                        "200": {"description": "The reply to a request.", "content": _MESSAGE},
                        "202": {"description": "A notification was taken."},
                        **{
                            status: {"description": said, "content": _MESSAGE} for status, said in _MCP_FAILURES.items()
                        },
                        **_problems("429"),
                    },
                }
            },
            "/healthz": {
                "get": {
                    "operationId": "health",
                    "tags": ["operation"],
                    "summary": "Whether the service can answer",
                    "responses": {"200": _answer("It can.", Health), **_problems("503")},
                }
            },
            **ard_openapi.paths(_REF),
        },
        "components": {"schemas": definitions["$defs"]},
    }


_MESSAGE = {"application/json": {"schema": {"type": "object"}}}
_MCP_FAILURES = {
    "400": "The message, its version or its headers cannot be taken; the JSON-RPC error says why.",
    "403": "A page of another origin asks.",
    "404": "There is no such method, in 2026-07-28.",
    "406": "The client does not take JSON.",
    "413": "The message is too large.",
}
_MEANING = {
    "400": "The body is not JSON.",
    "404": "No such capability, or not for this caller.",
    "413": "The body is too large.",
    "422": "The request breaks the contract; `errors` names every field.",
    "429": "Too many requests; see Retry-After.",
    "503": "Retrieval cannot be done now; see Retry-After.",
}


def _problems(*statuses: str) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": _schema(Problem)}}
    return {status: {"description": _MEANING[status], "content": content} for status in statuses}


def _answer(description: str, *models: type[BaseModel]) -> dict[str, Any]:
    return {"description": description, "content": _json(*models)}


def _json(*models: type[BaseModel]) -> dict[str, Any]:
    schemas = [_schema(model) for model in models]
    return {"application/json": {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}}


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": "As in the body.", "schema": schema}


def _schema(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}
