"""OpenAPI 3 and, converted to it, Swagger 2: one tool per operation, and the call of one.

Its input schema has a property for each parameter, and `body` for the request body. References are expanded in place,
within bounds, also to files of the document's folder; no address is fetched.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urljoin

from pydantic import AliasChoices, Field

from mats.domain.capability.registration import Registration
from mats.domain.protocols.authentication import AuthScheme, auth_of
from mats.domain.protocols.descriptors import plain_text_at
from mats.domain.protocols.namespaces import join_labels, label_of_title, namespace_of_url
from mats.domain.protocols.openapi_document import (
    FORM,
    JSON,
    METHODS,
    MULTIPART,
    SharedSentences,
    Swagger,
    address_of,
    home_of,
    to_openapi,
    to_template,
    weight,
)
from mats.domain.protocols.protocol import (
    EMPTY,
    Call,
    Compact,
    Facts,
    Format,
    ItemDraft,
    MappedValue,
    Protocol,
    Source,
    rejection,
    remark,
)
from mats.domain.protocols.references import References, Unresolved
from mats.domain.protocols.values import Json, entries, mapping_at, objects, text_at, texts, value_at
from mats.domain.text.fence import visible
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
_PLACES = word_set("path query header cookie querystring form")
_METHOD = re.compile(r"[A-Z][A-Z-]{0,19}")
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?:; ?[\w.=\"-]+)*")
_OF_RANGE = {"*": "application/json", "application": "application/json", "text": "text/plain"}
"""The media type that is sent for a range such as `text/*`; for others bytes are."""
_FILE: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "filename": {"type": "string"},
        "content": {"type": "string", "description": "Its text."},
        "base64": {"type": "string", "description": "Its bytes, if it is not text."},
    },
    "required": ["filename"],
}


class Parameter(Compact):
    """A parameter of an HTTP operation."""

    name: str
    in_: str = Field(validation_alias=AliasChoices("in", "in_"))
    property: str = ""  # The input's property that has its value; empty: that of its own name
    style: str = ""  # As OpenAPI defines it, like `explode`
    explode: bool | None = None
    reserved: bool | None = None  # Whether characters such as `/` and `:` are sent as they are
    content: str = ""  # The media type in which a value is written


def media_type_of(header: str) -> str:
    """The media type in lower case, without parameters such as `charset`."""
    return header.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    return media_type_of(media_type).endswith(("/json", "+json"))


class HttpCall(Call):
    """An operation of an HTTP API."""

    protocol: Literal["http"] = "http"
    method: str
    url: str
    parameters: tuple[Parameter, ...] = ()
    body: str = ""  # Its media type
    body_property: str = ""  # The input's property that is the body; empty: `body`
    encoding: tuple[Parameter, ...] = ()  # How fields of a form are written, unless by their type
    auth: tuple[AuthScheme, ...] = ()
    inputs: tuple[str, ...] = ()  # The names in braces in `url` that are not path parameters

    @property
    def body_input(self) -> str:
        """The name of the input that is the body."""
        return self.body_property or "body"

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
    given = value
    if "openapi" not in value and text_at(value, "swagger").startswith("2"):
        value = to_openapi(value)
    version = text_at(value, "openapi")
    if not version.startswith(("3.0", "3.1", "3.2")):
        stated = version or value.get("swagger") or value.get("openapi")
        yield rejection("openapi", f"is of version {str(stated)[:20]!r}: convert it to 3.0 or 3.1")
        return
    api = _Api(value, given, source)
    paths = api.references.try_follow(value.get("paths", {} if "webhooks" in value or "components" in value else None))
    if not isinstance(paths, Mapping):
        yield rejection("paths", "must be an object of paths")
        return
    api.read_shared(paths)
    if api.note:
        yield remark("servers", "endpoint", api.note)
    count, path = 0, ""
    try:
        for path, item in paths.items():
            for mapped_one in api.path(path, item) if not path.startswith("x-") else ():
                count += 1
                if count > _MOST_OPERATIONS:
                    problem = f"the document has more than {_MOST_OPERATIONS:,} operations; split it"
                    yield rejection(f"paths.{path}", problem)
                    return
                yield mapped_one
    except _TooMuch:
        yield rejection(f"paths.{path}", "the operations up to here repeat too much of what they share; split it")
        return
    if api.lacks_server:
        problem = "names no server: operations without one of their own cannot be called; --server names one"
        yield remark("servers", "endpoint", problem)
    if not count:
        hooks = ": webhooks are calls that the API makes, not ones that it takes" if "webhooks" in value else ""
        yield remark("paths", "", f"holds no operation{hooks}")


def _join_address(server: str, path: str) -> str:
    """The address of a path, before the query that a server's address has."""
    base, _, fixed = server.partition("?")
    called, _, query = path.partition("?")
    joined = "&".join(filter(None, (fixed, query)))
    return base.rstrip("/") + called + (f"?{joined}" if joined else "")


def _plain_query(address: str) -> str:
    """The query of an address, without what may be secret."""
    alone = ((part, f"https://a.example/?{part}") for part in address.partition("?")[2].split("&") if part)
    return "&".join(part for part, url in alone if redact_url(url, shown=(part,)) == url)


def _over_https(address: str) -> str:
    """The address with https for http, and without a slash at its end: addresses of one server are then equal."""
    return (f"https:{address[5:]}" if address.startswith("http:") else address).rstrip("/")


class _Api:
    """The parts of a document that its operations share."""

    def __init__(self, document: Mapping[str, Any], given: Mapping[str, Any], source: Source) -> None:
        self.references = References(given, source.read_file)
        self.swagger = None if document is given else Swagger(given, self.references)
        self.sentences = SharedSentences.of(())
        self._work_left = _MOST_WORK
        self._names = set[str]()
        info = self.references.at(document, "info")
        self.title, self.version = text_at(info, "title"), text_at(info, "version")
        self.security = document.get("security")
        self.schemes = self.references.at(document, "components", "securitySchemes")
        self.base, self.given, self.note = source.base or source.url, source.base, ""
        self.lacks_server = False  # Whether an operation so far has none
        stated = servers = self._servers(document)
        self.server = self._address(servers)
        if source.base and (not self.server or "://" in self.server or "{" in self.server):
            servers, self.server = [{"url": source.base}], source.base
        elif self.base and "{" not in self.server:
            self.server = urljoin(self.base, self.server or "/")
        if servers and not (source.base or namespace_of_url(self.server)):
            private = "calls need --private, or " if "://" in self.server else ""
            self.note = f"is at {self.server[:100]!r}, which has no public host: {private}--server names another"
        elif (
            servers and (first := address_of(servers[0])) and not _over_https(self.server).endswith(_over_https(first))
        ):
            self.note = f"is at {self.server}, the first HTTP server with a public host; {first[:100]} is passed over"
        home = namespace_of_url(source.base, *map(home_of, stated), text_at(info, "contact", "url"), source.url)
        self.namespace = source.namespace or (join_labels((home, label_of_title(self.title, home))) if home else "")

    def read_shared(self, paths: Mapping[str, Any]) -> None:
        """Read what all operations share: sentences, and the names of those without one of their own."""
        items = ((path, _methods(self.references.try_follow(item))) for path, item in paths.items())
        operations = {_fallback_name(path, method): one for path, methods in items for method, one in methods}
        self._names = set(operations)
        described = (text_at(self.references.try_follow(one), "description") for one in operations.values())
        self.sentences = SharedSentences.of(filter(None, described))

    def _servers(self, level: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        return objects([self.references.at(one) for one in entries(self.references.at(level, "servers"))])

    def _address(self, servers: Sequence[Mapping[str, Any]]) -> str:
        """The address of the first server with a public host, else of the first; of a WebSocket only if all are.

        If the same is offered over http and over https, it is https, because no secret is sent over http.
        """
        urls = [url for server in servers if (url := address_of(server))]
        first = min(urls, key=lambda url: (url.startswith(("ws:", "wss:")), not namespace_of_url(url)), default="")
        return next((url for url in urls if url.rstrip("/") == _over_https(first)), first)

    def path(self, path: str, item: Json) -> Iterator[MappedValue]:
        """The operations of a path; the path and each of them may be a reference."""
        where = f"paths.{path}"
        methods = self._object(where, item, "must be an object of operations")
        if isinstance(methods, MappedValue):
            yield methods
            return
        if methods is not item:
            self._charge(methods)
        for method, given in _methods(methods):
            operation = self._object(f"{where}.{method}", given, "must be an object: an operation")
            is_rejected = isinstance(operation, MappedValue)
            yield operation if is_rejected else self._operation(path, method, methods, operation)

    def _object(self, where: str, value: Json, otherwise: str) -> Any:
        """The object that a value is or refers to; else its rejection."""
        try:
            found = self.references.follow(value)
        except Unresolved as error:
            return rejection(where, str(error))
        return found if isinstance(found, Mapping) else rejection(where, otherwise)

    def _operation(self, path: str, method: str, item: Mapping[str, Any], operation: Mapping[str, Any]) -> MappedValue:
        where = f"paths.{path}.{method}"
        item = {key: self.references.try_follow(one) for key, one in item.items()}
        operation = {key: self.references.try_follow(one) for key, one in operation.items()}
        if self.swagger:
            operation = self.swagger.to_operation(item.pop("parameters", None), operation)
        draft = ItemDraft.create(where, "tool", self.namespace, operation, format=_OPERATION)
        self._set_name(draft, _fallback_name(path, method))
        self._describe(draft, item)
        draft.set_words("tags", draft.rest.pop("tags", None))
        draft.set_text("provider", self.title)
        draft.set_text("version", self.version)
        if operation.get("deprecated") is True:
            draft.set("lifecycle", "deprecated")
        parameters = self._parameters(draft, item, operation)
        template = to_template(path, parameters)
        self._input(draft, [*parameters.values(), *template.undeclared], operation)
        own = self._address(self._servers(operation)) or self._address(self._servers(item))
        server = urljoin(self.base, own) if own and self.base and "{" not in own else own or self.server
        if template.fragment:
            draft.add_note("endpoint", f"`#{template.fragment[:100]}` of its path is not sent: it cannot be called")
        elif server:
            if server != self.given and (query := _plain_query(server)):
                draft.rest["serverQuery"] = query
            draft.set_endpoint(address := _join_address(server, template.path))
            if (own or not self.note) and redact_url(address) is None:
                draft.add_note("endpoint", f"is {address[:100]!r}, which is no address over HTTP: it cannot be called")
        self.lacks_server |= not server
        extensions = {key: value for key, value in item.items() if key.startswith("x-")}
        first = {"format": draft.rest.pop("format"), "method": method.upper(), "path": path}
        draft.rest = {**first, **extensions, **draft.rest}
        if self.security and "security" not in draft.rest:
            draft.rest["security"] = self.security
        named = {name for requirement in objects(draft.rest.get("security")) for name in requirement}
        schemes = ((name, self.references.at(self.schemes, name)) for name in sorted(named))
        if known := {name: scheme for name, scheme in schemes if scheme is not None}:
            draft.rest["securitySchemes"] = known
        said = draft.item.get("description"), draft.item["input_schema"]["properties"], operation.get("responses")
        if not any(said):
            draft.notes[EMPTY] = None
        self._charge([draft.item, draft.rest])
        found = draft.finish()
        if any(not fault.attribute for fault in found.faults) and draft.rest.pop("responses", None) is not None:
            draft.add_note("descriptor", "`responses` are left out: the operation is too large with them")
            without = draft.finish()
            return without if without.registration else found
        return found

    def _set_name(self, draft: ItemDraft, otherwise: str) -> None:
        """Set the name to the operationId, unless an operation before it has it, or it cannot be a name."""
        name = text_at(draft.rest, "operationId")
        is_name = is_plain(name) and name.splitlines() == [name] and "\t" not in name
        if name and ((name in self._names and name != otherwise) or not is_name):
            reason = "is that of another operation, too" if is_name else "has hidden or control characters"
            draft.add_note("name", f"`operationId` {reason}; it stays in the descriptor")
        elif name := draft.move_text("name", "operationId"):
            self._names.add(name)
        if "name" not in draft.item:
            draft.set_text("name", otherwise)

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

    def _input(self, draft: ItemDraft, parameters: list[Mapping[str, Any]], operation: Mapping[str, Any]) -> None:
        properties: dict[str, Any] = {}
        required: list[str] = []
        sent: list[dict[str, Any]] = []
        for parameter in parameters:
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
            if parameter.get("required") is True or parameter["in"] == "path":
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
    ) -> dict[tuple[str, str], Mapping[str, Any]]:
        """Those of the operation and of its path, the former winning, by name and place; each has both."""
        found: dict[tuple[str, str], Mapping[str, Any]] = {}
        for entry in (*entries(item.get("parameters")), *entries(operation.get("parameters"))):
            try:
                parameter = self.references.follow(entry)
            except Unresolved as error:
                draft.add_note("input_schema", f"a parameter is missing: {error}")
                continue
            name, place = text_at(parameter, "name"), text_at(parameter, "in")
            if not name or not place:
                draft.add_note("input_schema", "a parameter without name or place is left out")
            elif not (place == "header" and name.lower() in _HTTP_HEADERS):
                kept = {key: self.references.try_follow(parameter[key]) for key in _OF_PARAMETER if key in parameter}
                found[name, place] = {**kept, "name": name, "in": place}
        return found

    def _schema(self, media: Json, owner: Json) -> dict[str, Any]:
        """The schema of a media type or parameter, with the description of its parameter or body."""
        schema = self.references.expand(value_at(self.references.try_follow(media), "schema"))
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
        best = min(content, key=_rank)
        media = self.references.try_follow(content[best])
        draft.rest.pop("requestBody", None)
        draft.rest["requestMediaTypes"] = list(content)
        encoding = mapping_at(media, "encoding") if media_type_of(best) in (FORM, MULTIPART) else {}
        if written := [_keep_encoding(name, self.references.try_follow(one)) for name, one in encoding.items()]:
            draft.rest["requestEncoding"] = written
        schema, sent = self._schema(media, body), _choose_media_type(list(content))
        if not is_json(sent):
            schema = _change_sent(schema, _mark_file, is_form=media_type_of(sent) in (FORM, MULTIPART))
        return schema, body.get("required") is True


def _change_sent(schema: Json, change: Callable[[Mapping[str, Any]], Mapping[str, Any]], *, is_form: bool) -> Json:
    """The schema of a body with a change to each value that is sent apart: to the fields of a form, else to the whole.

    Entries of lists and alternatives are changed, too.
    """
    if not isinstance(schema, Mapping):
        return schema
    changed = dict(schema if is_form else change(schema))
    for word in ("allOf", "anyOf", "oneOf"):
        if isinstance(options := changed.get(word), list):
            changed[word] = [_change_sent(one, change, is_form=is_form) for one in options]
    if is_form and "properties" in changed:
        fields = mapping_at(changed, "properties")
        changed["properties"] = {name: _change_sent(one, change, is_form=False) for name, one in fields.items()}
    elif "items" in changed and not is_form:
        changed["items"] = _change_sent(changed["items"], change, is_form=False)
    return changed


def _mark_file(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A file of OpenAPI 3.1, bytes of a media type, as OpenAPI 3.0 has it."""
    is_file = "contentMediaType" in schema and "contentEncoding" not in schema and "format" not in schema
    return {**schema, "format": "binary"} if is_file and "string" in _types(schema) else schema


def _describe_file(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A file as a call takes it; its format stays, which tells it from other objects."""
    types = _types(schema)
    if schema.get("format") != "binary" or "string" not in types:
        return schema
    about = {word: schema[word] for word in ("title", "description", "format") if word in schema}
    return {**about, **_FILE, **({"type": ["object", "null"]} if "null" in types else {})}


def _types(schema: Mapping[str, Any]) -> list[Any]:
    stated = schema.get("type", "string")
    return stated if isinstance(stated, list) else [stated]


def to_call_schema(call: HttpCall, schema: Mapping[str, Any]) -> dict[str, Any]:
    """An input schema as the call takes it: the files of a form are objects with their name and content."""
    properties = mapping_at(schema, "properties")
    if media_type_of(call.body) != MULTIPART or call.body_input not in properties:
        return dict(schema)
    body = _change_sent(properties[call.body_input], _describe_file, is_form=True)
    return {**schema, "properties": {**properties, call.body_input: body}}


def _methods(item: Json) -> Iterator[tuple[str, Json]]:
    """The methods of a path, and the operation of each."""
    named = mapping_at(item)
    yield from ((method, named[method]) for method in METHODS if method in named)
    yield from ((str(method), one) for method, one in mapping_at(named, "additionalOperations").items())


def _fallback_name(path: str, method: str) -> str:
    """The name of an operation without one."""
    return visible(f"{method.upper()} {path}")


def _keep_encoding(name: str, encoding: Json) -> dict[str, Any]:
    """How a field of a form is written, as a parameter is described."""
    found = mapping_at(encoding)
    content = {"content": text.partition(",")[0]} if (text := text_at(found, "contentType")) else {}
    return {"name": name, "in": "form", **{key: found[key] for key in _HOW_TO_SEND[2:] if key in found}, **content}


def invocation(registration: Registration, descriptor: Mapping[str, Any]) -> HttpCall | None:
    method, path = plain_text_at(descriptor, "method").upper(), plain_text_at(descriptor, "path")
    fixed = path.partition("?")[2].partition("#")[0], plain_text_at(descriptor, "serverQuery")
    url = redact_url(registration.endpoint, shown="&".join(fixed).split("&"))
    is_known = method.lower() in METHODS or descriptor.get("format") == _OPERATION
    if not (is_known and _METHOD.fullmatch(method)) or url is None:
        return None
    parameters, encoding = _parameters(descriptor.get("parameters")), _parameters(descriptor.get("requestEncoding"))
    if parameters is None or encoding is None:
        return None
    in_path = {parameter.name for parameter in parameters if parameter.in_ == "path"}
    taken = {parameter.property or parameter.name for parameter in parameters}
    properties = mapping_at(registration.input_schema, "properties")
    body_property = next((name for name in ("body", "requestBody") if name in properties and name not in taken), "")
    media_type = _choose_media_type(texts(descriptor.get("requestMediaTypes"))) if body_property else ""
    return HttpCall(
        method=method,
        url=url,
        parameters=parameters,
        body=media_type,
        body_property=body_property if media_type and body_property != "body" else "",
        encoding=encoding if media_type else (),
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
                reserved=entry.get("allowReserved") is True or None,
                content=plain_text_at(entry, "content"),
            )
        )
    return tuple(found) if len(found) <= _MAX_PARAMETERS else None


def _rank(media_type: str) -> int:
    """How early a media type is chosen: JSON, its other names, ranges that it is in, patches, forms, and others."""
    kind = media_type_of(media_type)
    is_range = kind.startswith(("*/", "application/*"))
    others = (
        is_json(kind) and not is_range and "patch" not in kind,
        is_range,
        is_json(kind) and "json-patch" not in kind,  # which is a list of steps, whatever its schema says
        is_json(kind),
        kind in (FORM, MULTIPART),
    )
    return 0 if kind == JSON else next((place for place, holds in enumerate(others, 1) if holds), len(others) + 1)


def _choose_media_type(media_types: list[str]) -> str:
    """The media type of those that is sent; empty for none."""
    if not media_types:
        return ""
    best = min(media_types, key=_rank)
    if "*" in best:
        return _OF_RANGE.get(best.partition("/")[0], "application/octet-stream")
    return best if _MEDIA_TYPE.fullmatch(best) else JSON


PROTOCOL = Protocol(
    formats=(Format("openapi", "an OpenAPI 3 or Swagger 2 document", 5, is_document, registrations, has_base=True),),
    searched={_OPERATION: frozenset()},
    invocation=invocation,
)
