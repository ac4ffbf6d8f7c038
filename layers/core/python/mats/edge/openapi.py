"""The OpenAPI document, derived from the routes and their models."""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pydantic.json_schema import models_json_schema

from mats import __version__
from mats.edge.app import Application
from mats.edge.http import Request, Response
from mats.edge.route import BodySpec, Route, load
from mats.edge.routes import ROUTES

Json = dict[str, Any]

_REF = "#/components/schemas/{model}"


def respond(application: Application, request: Request) -> Response:
    return Response(200, json.dumps(document()), {"Content-Type": "application/json"})


def document(routes: Sequence[Route] = ROUTES, *, open_paths: Collection[str] | None = None) -> dict[str, Any]:
    """The document of these routes; with `open_paths`, the scope of a token that each other one needs."""
    documented = [route for route in routes if route.operation_id]
    paths: dict[str, Json] = {}
    bodies = [body for route in documented for body in (route.request, *route.responses.values()) if body]
    queries = {route.query: load(route.query) for route in documented if route.query}
    models = dict.fromkeys([*queries.values(), *(load(name) for body in bodies for name in body.models)])
    _, definitions = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
    schemas = definitions["$defs"]
    parameters = {name: _query_parameters(schemas.pop(model.__name__)) for name, model in queries.items()}
    for route in documented:
        operation = _operation(route, [*_path_parameters(route), *parameters.get(route.query, ())])
        if open_paths is not None and route.path not in open_paths:
            operation["security"] = [{"token": [route.scope]}]
        paths.setdefault(route.documented_path, {})[route.method.lower()] = operation
    schemes = {} if open_paths is None else {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "mats",
            "version": __version__,
            "description": "Finds the model, agent, tool or skill for a request, and invokes nothing.",
        },
        "paths": paths,
        "components": {"schemas": schemas, **schemes},
    }


def _path_parameters(route: Route) -> Iterator[Json]:
    if route.path_description:
        name = route.path.partition("{")[2].rstrip("+}")
        schema = {"type": "string", **({"pattern": route.path_pattern} if route.path_pattern else {})}
        yield {"name": name, "in": "path", "required": True, "description": route.path_description, "schema": schema}


def _query_parameters(model: Json) -> list[Json]:
    """The properties of a model of `Parameters`. An empty default and null stand for an absent parameter."""
    found = []
    for name, schema in model["properties"].items():
        described = {"description": schema["description"]} if "description" in schema else {}
        shown = {key: value for key, value in schema.items() if key not in ("anyOf", "description", "title")}
        if shown.get("default") in (None, "", []):
            shown.pop("default", None)
        shown |= schema.get("anyOf", [{}])[0]
        found.append({"name": name, "in": "query", "required": False, **described, "schema": shown})
    return found


def _operation(route: Route, parameters: Sequence[Json]) -> Json:
    return {
        "operationId": route.operation_id,
        "tags": [route.tag],
        "summary": route.summary,
        **({"description": route.description} if route.description else {}),
        **({"parameters": parameters} if parameters else {}),
        **({"requestBody": {"required": True, "content": _content(route.request)}} if route.request else {}),
        "responses": {
            str(status): {"description": body.description, **({"content": _content(body)} if body.media_type else {})}
            for status, body in route.responses.items()
        },
    }


def _content(body: BodySpec) -> Json:
    schemas = [{"$ref": _REF.format(model=load(name).__name__)} for name in body.models] or [{"type": "object"}]
    as_text = {body.alternative: {"schema": {"type": "string"}}} if body.alternative else {}
    return {body.media_type: {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}, **as_text}
