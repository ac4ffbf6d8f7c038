"""Reading OpenAPI documents within bounds: sentences that operations share, Swagger 2.0 as OpenAPI 3, paths."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from mats.domain.protocols.references import References
from mats.domain.protocols.values import Json, entries, mapping_at, text_at, value_at
from mats.domain.text.redaction import is_plain
from mats.domain.text.words import plain, sentences

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_WEIGHT = 100  # Characters that take as long as one value, whatever it is

_LEAST, _SHARE, _QUOTED = 5, 100, 3
"""A sentence is shared if at least 5 descriptions have it, and one of 100; in a block quote 3 are enough."""
_LONGEST = 20_000  # Characters of a description that are read; bounds the work for a document
_CODE = re.compile(r"`[^`]*`")
_QUOTE = re.compile(r"(?:^[^\S\n]*>.*\n?)+", re.MULTILINE)

JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
_ABOUT = ("name", "in", "description", "required", "allowEmptyValue")
"""The entries of a parameter of Swagger besides its schema."""
_STYLES: Mapping[str, Mapping[str, Any]] = {
    "multi": {"style": "form", "explode": True},
    "csv": {"explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "tsv": {"style": "tabDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
}
_MOST_TYPES = 50  # Media types of one body; more are left out
_PLACE = re.compile(r"\{((?:[^{}]|\{[^{}]*\})*)\}")
_LITERAL = re.compile(r"(\{[^{}]*\})|[^!-~]+")  # A place, or what no address can have
_COLON = re.compile(r"/:([\w-]+)(?=/|$)")  # As routers write a place
_NAME = re.compile(r"[\w.$-]+")
_MANY = re.compile(r"[+*]{1,2}|\.\.\.|:(?:\.[*+]|\*{1,2}|path)|=.*\*.*")
"""What marks a place of several segments: `{key+}`, `{*key}`, `{key:.*}`, `{name=projects/*}`."""
_NO_HOST = re.compile(r"://(?:[./:?#]|$)|\.\.")
_FLOWS = {"application": "clientCredentials", "accessCode": "authorizationCode"}


class Template(NamedTuple):
    """A path as it is called: `/i/{id:[0-9]+}` as `/i/{id}`."""

    path: str
    fragment: str = ""  # Values that are not sent; a fragment without any only tells a path from others
    undeclared: tuple[Mapping[str, Any], ...] = ()  # Parameters that the document does not describe


def to_template(path: str, parameters: dict[tuple[str, str], Mapping[str, Any]]) -> Template:
    """A path by its parameters; a parameter whose place may hold several segments gets `allowReserved`."""
    names = {name for name, _ in parameters}
    path = _COLON.sub(lambda found: f"/{{{found[1]}}}" if (found[1], "path") in parameters else found[0], path)

    def place(found: re.Match[str]) -> str:
        inner = found[1]
        if inner[:1] in ("?", "&"):
            return ""  # as RFC 6570 writes parameters of the query
        words = [word.strip(".") for word in _NAME.findall(inner)]
        name = (
            inner if inner in names else next((word for word in words if word in names), words[0] if words else inner)
        )
        mark = inner[-1:] if inner == name else inner.replace(name, "", 1)
        if (name, "path") in parameters and _MANY.fullmatch(mark):
            parameters[name, "path"] = {**parameters[name, "path"], "allowReserved": True}
        return f"{{{name}}}"

    called, _, fragment = _PLACE.sub(place, path if path.startswith("/") else f"/{path}").partition("#")
    called, _, query = called.partition("?")
    called = _LITERAL.sub(lambda found: quote(found[0]) if not found[1] and is_plain(found[0]) else found[0], called)
    pairs = [pair for pair in query.split("&") if pair and (pair.partition("=")[2][1:-1], "query") not in parameters]
    undeclared = [name for name in dict.fromkeys(_PLACE.findall(called)) if (name, "path") not in parameters]
    return Template(
        called + (f"?{'&'.join(pairs)}" if pairs else ""),
        fragment if any("=" in part and part.partition("=")[0] not in names for part in fragment.split("&")) else "",
        tuple({"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in undeclared),
    )


def address_of(server: Mapping[str, Any]) -> str:
    """The address of a server, its variables by their defaults; one without a default stays in braces.

    So does one whose default is empty, where that would leave no host.
    """
    url = text_at(server, "url")
    for name, variable in mapping_at(server, "variables").items():
        default = text_at(variable, "default")
        filled = url.replace(f"{{{name}}}", default)
        if default or (value_at(variable, "default") == "" and not _NO_HOST.search(filled)):
            url = filled
        if len(url) > 4_096:
            return ""
    return f"https:{url}" if url.startswith("//") else url


def home_of(server: Mapping[str, Any]) -> str:
    """The address of a server; of a host with a variable, only what is fixed, at least what can be registered."""
    written, address = text_at(server, "url"), address_of(server)
    host = written.partition("://")[2].partition("/")[0] if "://" in written else written
    if "{" not in host:
        return address
    labels = address.partition("://")[2].partition("/")[0].partition(":")[0].split(".")
    fixed = host.rpartition("}")[2].partition("/")[0].partition(":")[0].strip(".")
    is_country = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3  # co.uk, com.au
    least = max(3 if is_country else 2, len(fixed.split(".")) if fixed else 0)
    known = ".".join(labels[-least:])
    return "" if "{" in known else f"https://{known}"


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
    """A document of Swagger 2.0 in the form of 3.0, but for its operations; what is malformed stays as it is.

    No maintained library for Python does this conversion; it is small, because only operations and servers differ.
    """
    converted = {**document, "openapi": "3.0.3", "servers": _servers(document)}
    if definitions := mapping_at(document, "securityDefinitions"):
        converted["components"] = {"securitySchemes": {name: _scheme(one) for name, one in definitions.items()}}
    return converted


def _servers(document: Mapping[str, Any]) -> list[dict[str, str]]:
    """The address of `host` and `basePath`, over https if it may be; without a host, the path alone."""
    host, base = text_at(document, "host"), text_at(document, "basePath")
    base = f"/{base}" if base and not base.startswith("/") else base
    schemes = [one for one in entries(document.get("schemes")) if one in ("http", "https")]
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
class Swagger:
    """The parts of a Swagger document that its operations share; a shared parameter is converted once."""

    document: Mapping[str, Any]
    references: References
    _converted: dict[tuple[int, Callable[[Json], Json]], tuple[Json, Json]] = field(default_factory=dict)
    """By the identity of the parameter, which is kept alive here."""

    def to_operation(self, shared: Json, operation: Mapping[str, Any]) -> dict[str, Any]:
        """An operation with the parameters of its path; those of the body become the request body."""
        moved = ("parameters", "consumes", "produces")
        converted = {key: value for key, value in operation.items() if key not in moved}
        kept: list[Json] = []
        body: Mapping[str, Any] = {}
        form: dict[str, Mapping[str, Any]] = {}
        for given in [*entries(shared), *entries(operation.get("parameters"))]:
            parameter = self.references.try_follow(given)
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
            content = {type: {"schema": body.get("schema")} for type in types or [JSON]}
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
            "properties": {text_at(field, "name"): self._convert(field, _schema) for field in fields},
            **({"required": required} if required else {}),
        }
        form_types = [one for one in types if one in (FORM, MULTIPART)]
        type = MULTIPART if uploads else (form_types or [FORM])[0]
        styles = {text_at(field, "name"): style for field in fields if (style := _style(field))}
        return {"content": {type: {"schema": schema, "encoding": styles}}, "required": bool(required)}

    def _convert(self, parameter: Json, convert: Callable[[Json], Json]) -> Json:
        key = id(parameter), convert
        if key not in self._converted:
            self._converted[key] = parameter, convert(parameter)
        return self._converted[key][1]


def _parameter(parameter: Json) -> Json:
    """A parameter with its type as a schema and its way of sending lists as a style."""
    if not isinstance(parameter, Mapping) or "$ref" in parameter:
        return parameter
    about = {key: parameter[key] for key in _ABOUT if key in parameter}
    schema = {key: value for key, value in _schema(parameter).items() if key != "description"}
    return {**about, **_style(parameter), "schema": schema}


def _style(parameter: Mapping[str, Any]) -> Mapping[str, Any]:
    is_list = text_at(parameter, "type") == "array"
    return _STYLES.get(text_at(parameter, "collectionFormat") or "csv", {}) if is_list else {}


def _schema(parameter: Mapping[str, Any]) -> dict[str, Any]:
    left_out = {*_ABOUT, "collectionFormat"} - {"description"}
    schema = {key: value for key, value in parameter.items() if key not in left_out and not key.startswith("x-")}
    if schema.get("type") == "file":
        schema |= {"type": "string", "format": "binary"}
    if isinstance(items := schema.get("items"), Mapping):
        schema["items"] = {key: value for key, value in items.items() if key != "collectionFormat"}
    return schema
