"""The paths of Agentic Resource Discovery, as /openapi.json describes them."""

from typing import Any

from pydantic import BaseModel

from mats.edge.ard_entry import ArdEntry, ArdError, ArdList, ArdManifest, ArdSearchAnswer
from mats.edge.ard_names import PATTERN
from mats.edge.ard_request import ArdSearch

MODELS: tuple[type[BaseModel], ...] = (ArdSearch, ArdSearchAnswer, ArdList, ArdEntry, ArdManifest, ArdError)

_MEANING = {
    "304": "The entry the caller has is still good.",
    "400": "The request breaks the contract; the message names every field.",
    "401": "The call bears no valid token.",
    "403": "The caller may not call this.",
    "404": "No such entry, or not for this caller.",
    "413": "The body is too large.",
    "429": "Too many requests; see Retry-After.",
    "500": "A bug of ours.",
    "501": "Exploring is optional, and not here.",
    "503": "Retrieval cannot be done now; see Retry-After.",
}
_ALWAYS = ("401", "403", "429", "500", "503")


def paths(ref: str) -> dict[str, Any]:
    """Each path with its one method; `ref` leads to a model's schema."""

    def content(model: type[BaseModel]) -> dict[str, Any]:
        return {"application/json": {"schema": {"$ref": ref.format(model=model.__name__)}}}

    def responses(answer: str, model: type[BaseModel], *statuses: str) -> dict[str, Any]:
        failures = {
            status: {"description": _MEANING[status], "content": content(ArdError)}
            for status in sorted({*statuses, *_ALWAYS})
        }
        return {"200": {"description": answer, "content": content(model)}, **failures}

    not_here = {"description": _MEANING["501"], "content": content(ArdError)}
    unchanged = {"304": {"description": _MEANING["304"]}}
    return {
        "/search": {
            "post": {
                **_said("ardSearch", "Find entries, most relevant first"),
                "requestBody": {"required": True, "content": content(ArdSearch)},
                "responses": responses("What was found.", ArdSearchAnswer, "400", "413"),
            }
        },
        "/agents": {
            "get": {
                **_said("ardList", "List all entries"),
                "parameters": [
                    _parameter("filter", "`displayName`, `type`, `publisherId`, `updatedAfter`, joined by AND."),
                    _parameter("pageSize", "", {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}),
                    _parameter("pageToken", "What the page before gave."),
                ],
                "responses": {**responses("A page.", ArdList, "400"), **unchanged},
            }
        },
        "/agents/{identifier}": {
            "get": {
                **_said("ardRetrieve", "Show one entry"),
                "parameters": [
                    {
                        "name": "identifier",
                        "in": "path",
                        "required": True,
                        "description": "The whole identifier, percent-encoded.",
                        "schema": {"type": "string", "pattern": PATTERN},
                    }
                ],
                "responses": {**responses("The entry.", ArdEntry, "400", "404"), **unchanged},
            }
        },
        "/explore": {"post": {**_said("ardExplore", "Not here"), "responses": {"501": not_here}}},
        "/.well-known/ard.json": {
            "get": {
                **_said("ardManifest", "Say where the registry is"),
                "responses": {**responses("The manifest.", ArdManifest), **unchanged},
            }
        },
    }


def _said(operation: str, summary: str) -> dict[str, Any]:
    return {"operationId": operation, "tags": ["Agentic Resource Discovery"], "summary": summary}


def _parameter(name: str, description: str, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    said = {"description": description} if description else {}
    return {"name": name, "in": "query", "required": False, **said, "schema": schema or {"type": "string"}}
