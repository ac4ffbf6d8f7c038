"""Swagger 2.0 as OpenAPI 3: what the mapper of OpenAPI reads, and no more. References stay where they lead.

No maintained library for Python does this conversion; it is small, because only operations and servers differ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mats.local.imports.formats.references import References, Unresolved
from mats.local.imports.formats.values import Json, objects, text_at

_JSON, _FORM, _UPLOAD = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_ABOUT = ("name", "in", "description", "required", "allowEmptyValue")
"""Of a parameter: what is not its schema."""
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "multi": {"style": "form", "explode": True},
    "csv": {"explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
}
_MOST_TYPES = 50
"""Media types of one body; more are left out."""
_FLOWS = {"application": "clientCredentials", "accessCode": "authorizationCode"}


def to_openapi(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document of version 2.0 in the form of 3.0; what is malformed stays as it is."""
    paths, parameters = document.get("paths"), _Parameters(References(document))
    converted = {**document, "openapi": "3.0.3", "servers": _servers(document)}
    definitions = document.get("securityDefinitions")
    if isinstance(definitions, Mapping):
        converted["components"] = {"securitySchemes": {name: _scheme(one) for name, one in definitions.items()}}
    if isinstance(paths, Mapping):
        converted["paths"] = {path: _path(document, parameters, item) for path, item in paths.items()}
    return converted


@dataclass(frozen=True, slots=True)
class _Parameters:
    """The parameters of a document; one that many operations share is converted once."""

    references: References
    _converted: dict[tuple[int, Callable[[Json], Json]], Json] = field(default_factory=dict)
    """By the identity of the parameter, which the document keeps alive."""

    def follow(self, given: Json) -> Json:
        try:
            return self.references.follow(given)
        except Unresolved:
            return given  # the mapper of OpenAPI says what is missing

    def convert(self, parameter: Json) -> Json:
        return self._once(parameter, _parameter)

    def field(self, parameter: Json) -> Json:
        """The schema of a form field."""
        return self._once(parameter, _field)

    def _once(self, parameter: Json, convert: Callable[[Json], Json]) -> Json:
        key = id(parameter), convert
        if key not in self._converted:
            self._converted[key] = convert(parameter)
        return self._converted[key]


def _servers(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """The address of `host` and `basePath`, over https if it may be; without a host, the path alone."""
    host, base = text_at(document, "host"), text_at(document, "basePath")
    schemes = [one for one in _list(document.get("schemes")) if one in ("http", "https")]
    if not host:
        return [{"url": base}] if base else []
    scheme = "https" if "https" in schemes or not schemes else "http"
    return [{"url": f"{scheme}://{host}{base}".rstrip("/")}]


def _scheme(value: Json) -> Json:
    """A security scheme; `basic` is a scheme of HTTP, and `oauth2` has named flows."""
    match text_at(value, "type"):
        case "basic":
            return {"type": "http", "scheme": "basic", **_description(value)}
        case "oauth2":
            flow = text_at(value, "flow")
            given = {name: value[name] for name in ("authorizationUrl", "tokenUrl", "scopes") if name in value}
            return {"type": "oauth2", "flows": {_FLOWS.get(flow, flow or "implicit"): given}, **_description(value)}
    return value


def _description(value: Json) -> dict[str, str]:
    return {"description": text} if (text := text_at(value, "description")) else {}


def _path(document: Mapping[str, Any], parameters: _Parameters, item: Json) -> Json:
    if not isinstance(item, Mapping) or "$ref" in item:
        return item
    shared = item.get("parameters")
    rest = {key: value for key, value in item.items() if key != "parameters"}
    return {
        key: _operation(document, parameters, shared, value)
        if key in _METHODS and isinstance(value, Mapping)
        else value
        for key, value in rest.items()
    }


def _operation(
    document: Mapping[str, Any], parameters: _Parameters, shared: Json, operation: Mapping[str, Any]
) -> dict[str, Any]:
    """An operation with the parameters of its path; those of the body become the request body."""
    converted = {key: value for key, value in operation.items() if key not in ("parameters", "consumes", "produces")}
    kept: list[Json] = []
    body: Mapping[str, Any] = {}
    form: dict[tuple[str, str], Mapping[str, Any]] = {}
    for given in [*_list(shared), *_list(operation.get("parameters"))]:
        parameter = parameters.follow(given)
        match text_at(parameter, "in"):
            case "body":
                body = parameter
            case "formData":
                form["formData", text_at(parameter, "name")] = parameter
            case _:
                kept.append(parameters.convert(parameter))
    converted["parameters"] = kept
    consumed = operation.get("consumes") or document.get("consumes")
    named = consumed[:_MOST_TYPES] if isinstance(consumed, list) else ()
    types = [one for one in named if isinstance(one, str)]
    if body:
        content = {type: {"schema": body.get("schema")} for type in types or [_JSON]}
        about = {key: body[key] for key in ("description", "required") if key in body}
        converted["requestBody"] = {"content": content, **about}
    elif form:
        converted["requestBody"] = _form(parameters, list(form.values()), types)
    return converted


def _form(parameters: _Parameters, fields: list[Mapping[str, Any]], types: list[str]) -> dict[str, Any]:
    """The request body of form fields; a file needs parts."""
    uploads = any(text_at(field, "type") == "file" for field in fields)
    required = [text_at(field, "name") for field in fields if field.get("required") is True]
    schema = {
        "type": "object",
        "properties": {text_at(field, "name"): parameters.field(field) for field in fields},
        **({"required": required} if required else {}),
    }
    form_types = [one for one in types if one in (_FORM, _UPLOAD)]
    type = _UPLOAD if uploads else (form_types or [_FORM])[0]
    return {"content": {type: {"schema": schema}}, "required": bool(required)}


def _parameter(parameter: Json) -> Json:
    """A parameter with its type as a schema and its way of sending lists as a style."""
    if not isinstance(parameter, Mapping) or "$ref" in parameter:
        return parameter
    about = {key: parameter[key] for key in _ABOUT if key in parameter}
    style: Mapping[str, Any] = {}
    if text_at(parameter, "type") == "array":
        style = _STYLES.get(text_at(parameter, "collectionFormat") or "csv", {})
    return {**about, **style, "schema": _schema(parameter)}


def _field(parameter: Mapping[str, Any]) -> dict[str, Any]:
    return _schema(parameter, with_description=True)


def _schema(parameter: Mapping[str, Any], *, with_description: bool = False) -> dict[str, Any]:
    left_out = {*_ABOUT, "collectionFormat"} - ({"description"} if with_description else set())
    schema = {key: value for key, value in parameter.items() if key not in left_out and not key.startswith("x-")}
    if schema.get("type") == "file":
        schema |= {"type": "string", "format": "binary"}
    if isinstance(items := schema.get("items"), Mapping):
        schema["items"] = {key: value for key, value in items.items() if key != "collectionFormat"}
    return schema


def _list(value: Json) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else list(objects(value))
