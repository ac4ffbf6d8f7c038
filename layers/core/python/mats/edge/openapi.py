"""The API's own description, from the models that parse and answer."""

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from mats import __version__
from mats.domain.query import Query
from mats.edge.answer import Answer, Capability, Health, Problem

_REF = "#/components/schemas/{model}"


def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    models: list[type[BaseModel]] = [Query, Answer, Capability, Health, Problem]
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
                    "requestBody": {"required": True, "content": _json(Query)},
                    "responses": {
                        "200": _answer("A ranked shortlist.", Answer),
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
            "/healthz": {
                "get": {
                    "operationId": "health",
                    "tags": ["operation"],
                    "summary": "Whether the service can answer",
                    "responses": {"200": _answer("It can.", Health), **_problems("503")},
                }
            },
        },
        "components": {"schemas": definitions["$defs"]},
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


def _answer(description: str, model: type[BaseModel]) -> dict[str, Any]:
    return {"description": description, "content": _json(model)}


def _json(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": _schema(model)}}


def _schema(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": _REF.format(model=model.__name__)}
