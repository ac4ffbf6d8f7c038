"""Reading OpenAPI documents within bounds: references, sentences that operations share, Swagger 2.0 as OpenAPI 3."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from urllib.parse import unquote

from mats.domain.protocols.protocol import Json, text_at
from mats.domain.text.words import plain, sentences

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_MAX_DEPTH = 22  # Levels of a schema: an item may have 32, and contains the schema
_MAX_CHAIN = 16
_PER_SCHEMA = 1_500  # Budget of values for one schema; models cannot fill in a larger one
_PER_DOCUMENT = 1_500_000  # Budget of values for one document, which takes a few seconds to expand
_CONTAINERS = (dict, list)  # Of JSON and YAML; checking for the abstract types takes many times as long
_TOO_LARGE = "is too large or too deep; parts of it are left out"
_WEIGHT = 100  # Characters that take as long as one value, whatever it is

_LEAST, _SHARE, _QUOTED = 5, 100, 3
"""A sentence is shared if at least 5 descriptions have it, and one of 100; in a block quote 3 are enough."""
_LONGEST = 20_000  # Characters of a description that are read; bounds the work for a document
_CODE = re.compile(r"`[^`]*`")
_QUOTE = re.compile(r"(?:^[^\S\n]*>.*\n?)+", re.MULTILINE)

_JSON, _FORM, _UPLOAD = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
_ABOUT = ("name", "in", "description", "required", "allowEmptyValue")
"""The entries of a parameter of Swagger besides its schema."""
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "multi": {"style": "form", "explode": True},
    "csv": {"explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
}
_MOST_TYPES = 50  # Media types of one body; more are left out
_FLOWS = {"application": "clientCredentials", "accessCode": "authorizationCode"}


class Unresolved(Exception):
    """A reference that cannot be resolved; the message has the reason."""


class _Expansion(NamedTuple):
    schema: Json
    cuts: dict[str, None]
    values: int


@dataclass(slots=True)
class References:
    """Resolves the references of a document. `take_cuts` has the reasons why parts of a schema were not expanded."""

    document: Mapping[str, Any]
    _cuts: dict[str, None] = field(default_factory=dict)
    _left: int = 0
    _left_in_document: int = _PER_DOCUMENT
    _expanded: dict[tuple[str, int], _Expansion] = field(default_factory=dict)
    """By reference and budget: many operations refer to the same schema."""
    _targets: dict[str, Json] = field(default_factory=dict)  # By reference

    def follow(self, value: Json) -> Json:
        """The value that a reference leads to, over further references; any other value itself."""
        reference: Any = ""
        for _ in range(_MAX_CHAIN):
            reference = value.get("$ref") if isinstance(value, Mapping) else None
            if not isinstance(reference, str):
                return value
            value = self._resolve(reference)
        raise Unresolved(f"{str(reference)[:100]!r} leads in a circle")

    def _resolve(self, reference: str) -> Json:
        if reference in self._targets:
            return self._targets[reference]
        if not reference.startswith("#"):
            raise Unresolved(f"{reference[:100]!r} lies outside the document; nothing is fetched")
        found: Json = self.document
        for part in reference[1:].split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit() and len(key) < 7 and int(key) < len(found):
                found = found[int(key)]
            else:
                raise Unresolved(f"{reference[:100]!r} is not in the document")
        self._targets[reference] = found
        return found

    def expand(self, schema: Json) -> Json:
        """A schema with its references expanded, within the budget; beyond it, replaced by their names.

        The result is shared between calls: do not change it.
        """
        budget = min(_PER_SCHEMA, self._left_in_document)
        reference = schema.get("$ref") if isinstance(schema, Mapping) and len(schema) == 1 else None
        key = (reference, budget) if isinstance(reference, str) else None
        expansion = self._expanded.get(key) if key else None
        if expansion is None:
            earlier, self._cuts, self._left = self._cuts, {}, budget
            expansion = _Expansion(self._expand(schema, 0, ()), self._cuts, budget - self._left)
            self._cuts = earlier
            if key:
                self._expanded[key] = expansion
        self._cuts |= expansion.cuts
        self._left_in_document -= expansion.values
        return expansion.schema

    def take_cuts(self) -> list[str]:
        """Return and clear the reasons why parts were left out."""
        cuts = list(self._cuts)
        self._cuts.clear()
        return cuts

    def _expand(self, value: Json, depth: int, inside: tuple[str, ...]) -> Json:
        self._left -= 1
        if not isinstance(value, _CONTAINERS):
            return value
        if isinstance(value, dict) and isinstance(value.get("$ref"), str):
            return self._expand_reference(value, depth, inside)
        if self._left <= 0 or depth >= _MAX_DEPTH:
            return self._cut(value, inside)
        if isinstance(value, list):
            return [self._expand(entry, depth + 1, inside) for entry in value]
        return {key: self._expand(entry, depth + 1, inside) for key, entry in value.items()}

    def _expand_reference(self, value: Mapping[str, Any], depth: int, inside: tuple[str, ...]) -> Json:
        reference = value["$ref"]
        title = {"title": reference.rpartition("/")[2][:200]}
        if reference in inside:
            return title  # a recursive schema: expanded once, then named
        try:
            target = self._resolve(reference)
        except Unresolved as error:
            self._cuts[str(error)] = None
            return title
        if self._left <= 0 or depth >= _MAX_DEPTH or len(inside) >= _MAX_CHAIN:
            return self._cut(value, inside) or title
        beside = {key: entry for key, entry in value.items() if key != "$ref"}
        merged = {**target, **beside} if isinstance(target, Mapping) else target
        return self._expand(merged, depth, (*inside, reference))

    def _cut(self, value: Json, inside: tuple[str, ...]) -> Json:
        self._cuts[_TOO_LARGE] = None
        if isinstance(value, list):
            return []
        return {"title": inside[-1].rpartition("/")[2][:200]} if inside else {}


def weight(value: Json, most: int) -> int:
    """The work of handling a value: 100 for each value in it, and its characters; counting ends above `most`."""
    total, waiting = 0, [value]
    while waiting and total <= most:
        one = waiting.pop()
        total += _WEIGHT
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, dict):
            total += sum(map(len, map(str, one)))
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return total


@dataclass(frozen=True, slots=True)
class SharedSentences:
    """The shared sentences of a document; code in them may differ: `repo` or `admin:org`."""

    _forms: frozenset[str]

    @classmethod
    def of(cls, descriptions: Iterable[str]) -> Self:
        counts, quoted = Counter[str](), Counter[str]()
        described = [description[:_LONGEST] for description in descriptions]
        for description in described if len(described) >= _LEAST else ():
            counts.update(_forms(description))
            quoted.update(_forms("\n\n".join(_QUOTE.findall(description))))
        least = max(_LEAST, len(described) / _SHARE)
        return cls(frozenset(form for form, count in counts.items() if count >= least or quoted[form] >= _QUOTED))

    def split(self, description: str) -> tuple[str, list[str]]:
        """The description without its shared sentences, and those; as it is if it is too long to be read."""
        every = sentences(plain(description)) if self._forms and len(description) <= _LONGEST else []
        shared = [sentence for sentence in every if _form(sentence) in self._forms]
        if not shared:
            return description, []
        return " ".join(sentence for sentence in every if _form(sentence) not in self._forms), shared


def _forms(text: str) -> set[str]:
    return set(map(_form, sentences(plain(text))))


def _form(sentence: str) -> str:
    return " ".join(_CODE.sub("`", sentence).casefold().split())


def to_openapi(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document of Swagger 2.0 in the form of 3.0; references stay where they lead, what is malformed as it is.

    No maintained library for Python does this conversion; it is small, because only operations and servers differ.
    """
    paths, swagger = document.get("paths"), _Swagger(document, References(document))
    converted = {**document, "openapi": "3.0.3", "servers": _servers(document)}
    definitions = document.get("securityDefinitions")
    if isinstance(definitions, Mapping):
        converted["components"] = {"securitySchemes": {name: _scheme(one) for name, one in definitions.items()}}
    if isinstance(paths, Mapping):
        converted["paths"] = {path: swagger.path(item) for path, item in paths.items()}
    return converted


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
    text = text_at(value, "description")
    about = {"description": text} if text else {}
    match text_at(value, "type"):
        case "basic":
            return {"type": "http", "scheme": "basic", **about}
        case "oauth2":
            flow = text_at(value, "flow")
            given = {name: value[name] for name in ("authorizationUrl", "tokenUrl", "scopes") if name in value}
            return {"type": "oauth2", "flows": {_FLOWS.get(flow, flow or "implicit"): given}, **about}
    return value


@dataclass(frozen=True, slots=True)
class _Swagger:
    """The parts of a Swagger document that its operations share; a shared parameter is converted once."""

    document: Mapping[str, Any]
    references: References
    _converted: dict[tuple[int, Callable[[Json], Json]], Json] = field(default_factory=dict)
    """By the identity of the parameter, which the document keeps alive."""

    def path(self, item: Json) -> Json:
        if not isinstance(item, Mapping) or "$ref" in item:
            return item
        return {
            key: self._operation(item.get("parameters"), value)
            if key in METHODS and key != "trace" and isinstance(value, Mapping)
            else value
            for key, value in item.items()
            if key != "parameters"
        }

    def _operation(self, shared: Json, operation: Mapping[str, Any]) -> dict[str, Any]:
        """An operation with the parameters of its path; those of the body become the request body."""
        moved = ("parameters", "consumes", "produces")
        converted = {key: value for key, value in operation.items() if key not in moved}
        kept: list[Json] = []
        body: Mapping[str, Any] = {}
        form: dict[str, Mapping[str, Any]] = {}
        for given in [*_list(shared), *_list(operation.get("parameters"))]:
            parameter = self._follow(given)
            match text_at(parameter, "in"):
                case "body":
                    body = parameter
                case "formData":
                    form[text_at(parameter, "name")] = parameter
                case _:
                    kept.append(self._convert(parameter, _parameter))
        converted["parameters"] = kept
        consumed = operation.get("consumes") or self.document.get("consumes")
        named = consumed[:_MOST_TYPES] if isinstance(consumed, list) else ()
        types = [one for one in named if isinstance(one, str)]
        if body:
            content = {type: {"schema": body.get("schema")} for type in types or [_JSON]}
            about = {key: body[key] for key in ("description", "required") if key in body}
            converted["requestBody"] = {"content": content, **about}
        elif form:
            converted["requestBody"] = self._form(list(form.values()), types)
        return converted

    def _form(self, fields: list[Mapping[str, Any]], types: list[str]) -> dict[str, Any]:
        """The request body of form fields; a file needs parts."""
        uploads = any(text_at(field, "type") == "file" for field in fields)
        required = [text_at(field, "name") for field in fields if field.get("required") is True]
        schema = {
            "type": "object",
            "properties": {text_at(field, "name"): self._convert(field, _field) for field in fields},
            **({"required": required} if required else {}),
        }
        form_types = [one for one in types if one in (_FORM, _UPLOAD)]
        type = _UPLOAD if uploads else (form_types or [_FORM])[0]
        return {"content": {type: {"schema": schema}}, "required": bool(required)}

    def _follow(self, given: Json) -> Json:
        try:
            return self.references.follow(given)
        except Unresolved:
            return given  # `registrations` says what is missing

    def _convert(self, parameter: Json, convert: Callable[[Json], Json]) -> Json:
        key = id(parameter), convert
        if key not in self._converted:
            self._converted[key] = convert(parameter)
        return self._converted[key]


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
    return list(value) if isinstance(value, list | tuple) else []
