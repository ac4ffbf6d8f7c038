"""OpenAPI 3 and, converted to it, Swagger 2: one tool per operation, and the call of one.

Its input schema has a property for each parameter, and `body` for the request body. References within the document are
expanded in place, within bounds; none is fetched.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import urljoin

from pydantic import AliasChoices, Field

from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault
from mats.domain.protocols.authentication import AuthScheme, auth_of
from mats.domain.protocols.descriptors import plain_text_at
from mats.domain.protocols.openapi_document import METHODS, References, SharedSentences, Unresolved, to_openapi, weight
from mats.domain.protocols.protocol import (
    Call,
    Compact,
    Facts,
    Format,
    ItemDraft,
    Json,
    MappedValue,
    Protocol,
    Source,
    join_labels,
    label_of_title,
    mapping_at,
    namespace_of_url,
    objects,
    rejection,
    text_at,
    texts,
    value_at,
)
from mats.domain.text.redaction import is_plain, placeholders, redact_url
from mats.domain.text.words import word_set

_OPERATION = "openapi-operation"
_MOST_OPERATIONS = 20_000
_MOST_WORK = 400_000_000
"""Weight of all operations, what they share counted for each: operations times shared parts grow as a square."""
_HTTP_HEADERS = frozenset(("accept", "content-type", "authorization"))
"""Headers that OpenAPI excludes from the parameters."""
_HOW_TO_SEND = ("name", "in", "style", "explode", "allowReserved")
_OF_PARAMETER = (*_HOW_TO_SEND, "description", "required", "schema", "content")
_MAX_PARAMETERS = 200
_PLACES = word_set("path query header cookie")
_MEDIA_TYPE = re.compile(r"[\w.+*-]+/[\w.+*-]+(?:; ?[\w.=\"-]+)*")


class Parameter(Compact):
    """A parameter of an HTTP operation."""

    name: str
    in_: str = Field(validation_alias=AliasChoices("in", "in_"))
    property: str = ""  # The input's property that has its value; empty: that of its own name
    style: str = ""  # As OpenAPI defines it, like `explode`
    explode: bool | None = None
    content: str = ""  # The media type in which a value is written


FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


def media_type_of(header: str) -> str:
    """The media type in lower case, without parameters such as `charset`."""
    return header.partition(";")[0].strip().lower()


class HttpCall(Call):
    """An operation of an HTTP API."""

    protocol: Literal["http"] = "http"
    method: str
    url: str
    parameters: tuple[Parameter, ...] = ()
    body: str = ""  # Its media type
    body_property: str = ""  # The input's property that is the body; empty: `body`
    auth: tuple[AuthScheme, ...] = ()
    inputs: tuple[str, ...] = ()  # The names in braces in `url` that are not path parameters

    def facts(self) -> Facts:
        return (("protocol", "HTTP"), ("method", self.method), ("endpoint", self.url), ("body", self.body))


class _TooMuch(Exception):
    """The operations share so much that they hold far more than the document."""


def is_document(value: Json) -> bool:
    """True if a value is an OpenAPI or Swagger document of any version."""
    return isinstance(value, Mapping) and ("openapi" in value or "swagger" in value) and (
        isinstance(value.get("paths"), Mapping) or isinstance(value.get("info"), Mapping)
    )  # fmt: skip


def registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    if not isinstance(value, Mapping):
        return
    if "openapi" not in value and text_at(value, "swagger").startswith("2"):
        value = to_openapi(value)
    version = text_at(value, "openapi")
    if not version.startswith(("3.0", "3.1", "3.2")):
        stated = version or value.get("swagger") or value.get("openapi")
        yield rejection("openapi", f"is of version {str(stated)[:20]!r}: convert it to 3.0 or 3.1")
        return
    paths = value.get("paths", {} if "webhooks" in value or "components" in value else None)
    if not isinstance(paths, Mapping):
        yield rejection("paths", "must be an object of paths")
        return
    api = _Api(value, paths, source)
    count, path = 0, ""
    try:
        for path, methods in paths.items():
            for mapped_one in api.path(path, methods) if not path.startswith("x-") else ():
                count += 1
                if count > _MOST_OPERATIONS:
                    problem = f"the document has more than {_MOST_OPERATIONS:,} operations; split it"
                    yield rejection(f"paths.{path}", problem)
                    return
                yield mapped_one
    except _TooMuch:
        yield rejection(f"paths.{path}", "the operations up to here repeat too much of what they share; split it")
        return
    if not count:
        hooks = ": webhooks are calls that the API makes, not ones that it takes" if "webhooks" in value else ""
        yield MappedValue("paths", notes=(Fault("", f"holds no operation{hooks}"),))


class _Api:
    """The parts of a document that its operations share."""

    def __init__(self, document: Mapping[str, Any], paths: Mapping[str, Any], source: Source) -> None:
        self.references = References(document)
        self._work_left = _MOST_WORK
        self.title, self.version = text_at(document, "info", "title"), text_at(document, "info", "version")
        self.security = document.get("security")
        self.schemes = mapping_at(document, "components", "securitySchemes")
        servers = [_server(server) for server in objects(document.get("servers"))]
        self.server = next((url for url in servers if url), "")
        if source.url and "{" not in self.server:
            self.server = urljoin(source.url, self.server or "/")
        home = namespace_of_url(*servers, text_at(document, "info", "contact", "url"), source.url)
        stated = join_labels((home, label_of_title(self.title, home))) if home else ""
        self.namespace = source.namespace or stated
        described = (text_at(item, method, "description") for item in paths.values() for method in METHODS)
        self.sentences = SharedSentences.of(filter(None, described))

    def path(self, path: str, item: Json) -> Iterator[MappedValue]:
        """The operations of a path; a path item may be a reference itself."""
        where = f"paths.{path}"
        try:
            methods = self.references.follow(item)
        except Unresolved as error:
            yield rejection(where, str(error))
            return
        if methods is not item:
            self._charge(methods)
        if not isinstance(methods, Mapping):
            yield rejection(where, "must be an object of operations")
            return
        for method in METHODS:
            if method not in methods:
                continue
            if isinstance(methods[method], Mapping):
                yield self._operation(path, method, methods, methods[method])
            else:
                yield rejection(f"{where}.{method}", "must be an object: an operation")

    def _operation(self, path: str, method: str, item: Mapping[str, Any], operation: Mapping[str, Any]) -> MappedValue:
        where = f"paths.{path}.{method}"
        draft = ItemDraft.create(where, "tool", self.namespace, operation, format=_OPERATION)
        if not draft.move_text("name", "operationId"):
            draft.set("name", f"{method.upper()} {path}")
        self._describe(draft, item)
        draft.set_words("tags", draft.rest.pop("tags", None))
        draft.set_text("provider", self.title)
        draft.set_text("version", self.version)
        if operation.get("deprecated") is True:
            draft.set("lifecycle", "deprecated")
        own = [_server(server) for level in (operation, item) for server in objects(level.get("servers"))]
        server = next((url for url in own if url), self.server)
        endpoint = server.rstrip("/") + (path if path.startswith("/") else f"/{path}") if server else ""
        draft.set_endpoint(endpoint, is_in_descriptor=False)
        self._input(draft, item, operation)
        extensions = {key: value for key, value in item.items() if key.startswith("x-")}
        first = {"format": draft.rest.pop("format"), "method": method.upper(), "path": path}
        draft.rest = {**first, **extensions, **draft.rest}
        if self.security and "security" not in draft.rest:
            draft.rest["security"] = self.security
        named = {name for requirement in objects(draft.rest.get("security")) for name in requirement}
        if known := {name: self.schemes[name] for name in sorted(named) if name in self.schemes}:
            draft.rest["securitySchemes"] = known
        self._charge([draft.item, draft.rest])
        return draft.finish()

    def _charge(self, value: Json) -> None:
        """Deduct the weight of what an operation holds or repeats; raises `_TooMuch`."""
        self._work_left -= weight(value, self._work_left)
        if self._work_left < 0:
            raise _TooMuch

    def _describe(self, draft: ItemDraft, item: Mapping[str, Any]) -> None:
        """Set the description: the summary and the description, of the operation or else of its path.

        The summary stays in the descriptor as a title, as do the sentences that other operations share.
        """
        operation = draft.rest
        summary = text_at(operation, "summary") or text_at(item, "summary")
        text, shared = self.sentences.split(text_at(operation, "description") or text_at(item, "description"))
        if text.casefold().startswith(summary.casefold()):
            about = text
        else:
            about = f"{summary.rstrip('.')}. {text}" if text else summary
        draft.set_text("description", about)
        if isinstance(operation.get("description"), str):
            del operation["description"]
        operation |= {key: value for key, value in (("summary", summary), ("remarks", shared)) if value}

    def _input(self, draft: ItemDraft, item: Mapping[str, Any], operation: Mapping[str, Any]) -> None:
        properties: dict[str, Any] = {}
        required: list[str] = []
        sent: list[dict[str, Any]] = []
        for parameter in self._parameters(draft, item, operation):
            name = parameter["name"]
            if name in properties:
                name = f"{name}_{parameter['in']}"
            content = parameter.get("content")
            media = next(iter(content.values()), None) if isinstance(content, Mapping) else parameter
            properties[name] = self._schema(media, parameter)
            sent.append(
                {
                    **{key: parameter[key] for key in _HOW_TO_SEND if key in parameter},
                    **({"property": name} if name != parameter["name"] else {}),
                    **({"content": next(iter(content))} if isinstance(content, Mapping) and content else {}),
                }
            )
            if parameter.get("required") is True:
                required.append(name)
        if (body := self._body(draft, operation)) is not None:
            name = "body" if "body" not in properties else "requestBody"
            properties[name], needed = body
            required.extend([name] if needed else [])
        for cut in self.references.take_cuts():
            draft.add_note("input_schema", cut)
        draft.rest.pop("parameters", None)
        if sent:
            draft.rest["parameters"] = sent
        draft.item["input_schema"] = {
            "type": "object", "properties": properties, **({"required": required} if required else {})
        }  # fmt: skip

    def _parameters(
        self, draft: ItemDraft, item: Mapping[str, Any], operation: Mapping[str, Any]
    ) -> list[Mapping[str, Any]]:
        """Those of the operation and of its path, the former winning, each as an object with name and place."""
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for level in (item, operation):
            given = level.get("parameters")
            for entry in given if isinstance(given, list) else []:
                try:
                    parameter = self.references.follow(entry)
                except Unresolved as error:
                    draft.add_note("input_schema", f"a parameter is missing: {error}")
                    continue
                name, place = text_at(parameter, "name"), text_at(parameter, "in")
                if not name or not place:
                    draft.add_note("input_schema", "a parameter without name or place is left out")
                elif not (place == "header" and name.lower() in _HTTP_HEADERS):
                    kept = {key: parameter[key] for key in _OF_PARAMETER if key in parameter}
                    found[name, place] = {**kept, "name": name, "in": place}
        return list(found.values())

    def _schema(self, media: Json, owner: Json) -> dict[str, Any]:
        """The schema of a media type or parameter, with the description of its parameter or body."""
        schema = self.references.expand(value_at(media, "schema"))
        about = {"description": text} if (text := text_at(owner, "description")) else {}
        return {**about, **schema} if isinstance(schema, Mapping) else about

    def _body(self, draft: ItemDraft, operation: Mapping[str, Any]) -> tuple[Any, bool] | None:
        """The schema of the request body and whether it must be sent; its JSON form, if it has several."""
        try:
            body = self.references.follow(operation.get("requestBody"))
        except Unresolved as error:
            draft.add_note("input_schema", f"the body is missing: {error}")
            return None
        content = value_at(body, "content")
        if not isinstance(content, Mapping) or not content:
            return None
        types = sorted(content, key=_json_first)
        draft.rest.pop("requestBody", None)
        draft.rest["requestMediaTypes"] = list(content)
        return self._schema(content[types[0]], body), body.get("required") is True


def _server(server: Mapping[str, Any]) -> str:
    """The address of a server, its variables by their defaults; one without a default stays in braces."""
    url = text_at(server, "url")
    for name, variable in mapping_at(server, "variables").items():
        if default := text_at(variable, "default"):
            url = url.replace(f"{{{name}}}", default)
        if len(url) > 4_096:
            return ""
    return url


def invocation(registration: Registration, descriptor: Mapping[str, Any]) -> HttpCall | None:
    method, url = plain_text_at(descriptor, "method").upper(), redact_url(registration.endpoint)
    if method.lower() not in METHODS or url is None:
        return None
    parameters = _parameters(descriptor.get("parameters"))
    if parameters is None:
        return None
    in_path = {parameter.name for parameter in parameters if parameter.in_ == "path"}
    taken = {parameter.property or parameter.name for parameter in parameters}
    properties = mapping_at(registration.input_schema, "properties")
    body_property = next((name for name in ("body", "requestBody") if name in properties and name not in taken), "")
    types = texts(descriptor.get("requestMediaTypes")) if body_property else []
    best = min(types, key=_json_first, default="")
    media_type = best if _MEDIA_TYPE.fullmatch(best) else ""
    return HttpCall(
        method=method,
        url=url,
        parameters=parameters,
        body=media_type,
        body_property=body_property if media_type and body_property != "body" else "",
        auth=auth_of(descriptor.get("security"), descriptor.get("securitySchemes")),
        inputs=tuple(name for name in placeholders(url) if name not in in_path),
    )


def _parameters(written: object) -> tuple[Parameter, ...] | None:
    """The parameters with a place, in order; None if one of them, or their number, is beyond what can be sent."""
    found = []
    for entry in objects(written):
        name, place = entry.get("name"), entry.get("in")
        if not isinstance(name, str) or not isinstance(place, str) or place not in _PLACES:
            continue
        if not is_plain(name):
            return None
        explode, property = entry.get("explode"), plain_text_at(entry, "property")
        found.append(
            Parameter(
                name=name,
                in_=place,
                property=property if property != name else "",
                style=plain_text_at(entry, "style"),
                explode=explode if isinstance(explode, bool) else None,
                content=plain_text_at(entry, "content"),
            )
        )
    return tuple(found) if len(found) <= _MAX_PARAMETERS else None


def _json_first(media_type: str) -> tuple[bool, bool]:
    return not media_type.startswith("application/json"), "json" not in media_type


def is_empty(registration: Registration) -> bool:
    """True for an operation of which its document says nothing: no text, no inputs, no responses."""
    inputs = mapping_at(registration.input_schema, "properties")
    told = registration.description or inputs or value_at(registration.descriptor, "responses")
    return text_at(registration.descriptor, "format") == _OPERATION and not told


PROTOCOL = Protocol(
    formats=(Format("openapi", "an OpenAPI 3 or Swagger 2 document", 5, is_document, registrations),),
    searched={_OPERATION: frozenset()},
    invocation=invocation,
)
