"""The HTTP request that calls an operation or an agent, as both curl and Python write it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote_plus

from mats.domain.protocols.a2a import A2aCall
from mats.domain.protocols.authentication import AuthScheme
from mats.domain.protocols.openapi import HttpCall
from mats.domain.protocols.protocol import objects
from mats.edge.tools.json_schema import resolve_reference

_MAX_DEPTH, _MAX_ENTRIES = 4, 20
_MAX_VALUE = 200  # Characters of JSON; a longer value from a schema is not taken
_EMPTY: Mapping[str, Any] = {"string": "", "number": 0, "integer": 0, "boolean": False, "null": None}


def example_of(schema: object, whole: Mapping[str, Any], *, depth: int = 0) -> Any:
    """A value for a schema: its constant, default, example or first choice, else an empty value of its type.

    An object has the required properties, or all if none is required. `whole` resolves references.
    """
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return ""
    schema = _with_alternatives(resolve_reference(schema, whole), whole)
    lists = (schema.get(word) for word in ("examples", "enum"))
    stated = [schema[word] for word in ("const", "default", "example") if word in schema]
    stated += [found[0] for found in lists if isinstance(found, list) and found]
    if short := [value for value in stated if _is_short(value)]:
        return short[0]
    named = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    types = [type for type in named if isinstance(type, str) and type != "null"]
    type = next(iter(types), "object" if "properties" in schema else "string")
    if type == "object":
        properties = properties_of(schema)
        required = required_of(schema) & properties.keys() or properties.keys()
        chosen = [name for name in properties if name in required][:_MAX_ENTRIES]
        return {name: example_of(properties[name], whole, depth=depth + 1) for name in chosen}
    if type == "array":
        return [example_of(schema["items"], whole, depth=depth + 1)] if schema.get("items") else []
    return _EMPTY.get(type, "")


def properties_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def required_of(schema: Mapping[str, Any]) -> set[str]:
    found = schema.get("required")
    return {name for name in found if isinstance(name, str)} if isinstance(found, list) else set()


def _with_alternatives(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with what all of its `allOf` ask for, and the first of its other alternatives."""
    every, some, one = (objects(schema.get(word)) for word in ("allOf", "anyOf", "oneOf"))
    merged = dict(schema)
    for option in (resolve_reference(each, whole) for each in (*every, *some[:1], *one[:1])):
        properties = {**properties_of(option), **properties_of(merged)}
        required = sorted(required_of(option) | required_of(merged))
        merged = {**option, **merged, **({"properties": properties, "required": required} if properties else {})}
    return merged


def _is_short(value: object) -> bool:
    try:
        return len(json.dumps(value, allow_nan=False)) <= _MAX_VALUE
    except (ValueError, RecursionError):
        return False


TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token of RFC 9110: the name of a header."""
_BEARER = frozenset({"bearer", "oauth2", "openIdConnect"})
_JSON = "application/json"
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"


def without_parameters(media_type: str) -> str:
    """The media type in lower case, without parameters such as `charset`."""
    return media_type.partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that a caller must have: the variable it is read from, the text before it, and where it is sent."""

    place: Literal["header", "query", "cookie"]
    name: str
    variable: str
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request with placeholders in braces for what its caller fills in. A `body` of None is none."""

    method: str
    url: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    cookies: Mapping[str, str] = field(default_factory=dict)
    auth: Sequence[AuthScheme] = ()
    media_type: str = ""
    body: Any = None
    files: frozenset[str] = frozenset()  # The fields of a form that are files

    @property
    def secrets(self) -> Sequence[Secret]:
        return secrets_of(self.auth)

    @property
    def kind(self) -> str:
        return without_parameters(self.media_type)

    @property
    def user_and_password(self) -> bool:
        """True if it is sent with the variables API_USER and API_PASSWORD (RFC 7617)."""
        return any(scheme.scheme == "basic" for scheme in first_option(self.auth))


def operation_request(call: HttpCall, schema: Mapping[str, Any]) -> HttpRequest | None:
    """The request of an HTTP operation with all that its input schema requires; None if a name cannot be sent."""
    required, properties = required_of(schema), properties_of(schema)
    sent = [each for each in call.parameters if (each.property or each.name) in required and each.in_ != "path"]
    if not all(TOKEN.fullmatch(each.name) for each in sent if each.in_ in ("header", "cookie")):
        return None
    url, _, own_query = call.url.partition("?")
    body, files = None, frozenset[str]()
    if call.body:
        stated = resolve_reference(properties.get(call.body_property or "body", {}), schema)
        body = example_of(stated, schema)
        files = frozenset(
            name for name, one in properties_of(stated).items() if _is_file(resolve_reference(one, schema))
        )
    return HttpRequest(
        method=call.method,
        url=url,
        query=[*_pairs(own_query), *((each.name, placeholder(each.name)) for each in sent if each.in_ == "query")],
        headers={each.name: placeholder(each.name) for each in sent if each.in_ == "header"},
        cookies={each.name: placeholder(each.name) for each in sent if each.in_ == "cookie"},
        auth=call.auth,
        media_type=call.body,
        body=body,
        files=files,
    )


def _is_file(schema: Mapping[str, Any]) -> bool:
    """True if a field of a form holds the bytes of a file: `format` in OpenAPI 3.0, `contentMediaType` in 3.1."""
    return schema.get("format") == "binary" or ("contentMediaType" in schema and "contentEncoding" not in schema)


def message_request(call: A2aCall) -> HttpRequest | None:
    """The request that sends an agent a message; None if it does not speak JSON-RPC."""
    if call.transport.upper() not in ("", "JSONRPC"):
        return None
    url, _, query = call.url.partition("?")
    is_current = call.version.partition(".")[0] not in ("", "0")
    if is_current:
        message = {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "Hello"}]}
        method, headers = "SendMessage", {"A2A-Version": ".".join(call.version.split(".")[:2])}
    else:
        part = {"kind": "text", "text": "Hello"}
        message = {"kind": "message", "messageId": "1", "role": "user", "parts": [part]}
        method, headers = "message/send", {}
    return HttpRequest(
        method="POST",
        url=url,
        query=list(_pairs(query)),
        headers=headers,
        auth=call.auth,
        media_type=_JSON,
        body={"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}},
    )


def placeholder(name: str) -> str:
    """A name in braces, to be replaced by its value."""
    return f"{{{re.sub(r'[^A-Za-z0-9_.-]+', '_', name) or 'value'}}}"


def first_option(auth: Iterable[AuthScheme]) -> list[AuthScheme]:
    """The schemes of the first alternative that has some; `none` is no scheme."""
    schemes = [scheme for scheme in auth if scheme.scheme != "none"]
    first = min((scheme.option for scheme in schemes if scheme.option is not None), default=None)
    return [scheme for scheme in schemes if scheme.option in (None, first)]


def secrets_of(auth: Iterable[AuthScheme]) -> list[Secret]:
    """The secrets of the first alternative: bearer tokens and API keys, each in a variable of its own."""
    found = list[Secret]()
    for scheme in first_option(auth):
        keys = sum(secret.variable.startswith("API_KEY") for secret in found)
        if scheme.scheme in _BEARER and all(secret.prefix != "Bearer " for secret in found):
            found.append(Secret("header", "Authorization", "API_TOKEN", "Bearer "))
        elif scheme.scheme == "apiKey" and TOKEN.fullmatch(scheme.name):
            place = scheme.in_ if scheme.in_ in ("query", "cookie") else "header"
            found.append(Secret(place, scheme.name, f"API_KEY_{keys + 1}" if keys else "API_KEY"))  # type: ignore[arg-type]
    return found


def _pairs(query: str) -> Iterator[tuple[str, str]]:
    """The names of an address's query, whose values are placeholders."""
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        yield unquote_plus(name), value or placeholder(name)
