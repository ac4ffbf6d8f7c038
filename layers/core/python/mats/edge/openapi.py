"""The OpenAPI document, derived from the routes and their models."""

import json
from functools import cache
from importlib import import_module
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from mats import __version__
from mats.edge.app import Application
from mats.edge.http import Request, Response
from mats.edge.route import BodySpec, Route
from mats.edge.routes import ROUTES

_REF = "#/components/schemas/{model}"


def respond(application: Application, request: Request) -> Response:
    """`GET /openapi.json`."""
    return Response(200, json.dumps(document()), {"Content-Type": "application/json"})


def document() -> dict[str, Any]:
    """OpenAPI 3.1."""
    documented = [route for route in ROUTES if route.operation_id]
    models = {
        name: _model(name)
        for route in documented
        for content in (route.request, *route.responses.values())
        for name in (content.models if content else ())
    }
    _, definitions = models_json_schema([(model, "validation") for model in models.values()], ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mats",
            "version": __version__,
            "description": "Finds the model, agent, tool or skill for a request, and invokes nothing.",
        },
        "paths": {route.documented_path: {route.method.lower(): _operation(route)} for route in documented},
        "components": {"schemas": definitions["$defs"]},
    }


def _operation(route: Route) -> dict[str, Any]:
    return {
        "operationId": route.operation_id,
        "tags": [route.tag],
        "summary": route.summary,
        **({"description": route.description} if route.description else {}),
        **({"parameters": list(route.parameters)} if route.parameters else {}),
        **({"requestBody": {"required": True, "content": _content(route.request)}} if route.request else {}),
        "responses": {str(status): _response(content) for status, content in route.responses.items()},
    }


def _response(content: BodySpec) -> dict[str, Any]:
    return {"description": content.description, **({"content": _content(content)} if content.media_type else {})}


def _content(content: BodySpec) -> dict[str, Any]:
    schemas = [{"$ref": _REF.format(model=_model(name).__name__)} for name in content.models] or [{"type": "object"}]
    as_text = {content.alternative: {"schema": {"type": "string"}}} if content.alternative else {}
    return {content.media_type: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}, **as_text}


@cache
def _model(name: str) -> type[BaseModel]:
    """A model by its module and class below `mats.edge`."""
    module, _, class_name = name.rpartition(".")
    model: type[BaseModel] = getattr(import_module(f"mats.edge.{module}"), class_name)
    return model
