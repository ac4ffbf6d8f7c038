"""The HTTP request that an invocation and an input make. An invocation is its owner's text: nothing of it is trusted.

A credential is read from a variable that is named after the host it is sent to, so that no owner's text can ask for the
key of another service. Import this module late.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from secrets import token_hex
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx2

from mats.client.bounded_http import HEADERS
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.protocols.a2a import A2aCall
from mats.domain.protocols.addresses import split_url
from mats.domain.protocols.authentication import TOKEN, AuthScheme, secrets_of, variable_of
from mats.domain.protocols.namespaces import namespace_of_url
from mats.domain.protocols.openapi import HttpCall, Parameter, is_json, media_type_of
from mats.domain.protocols.openapi_document import FORM, JSON, MULTIPART
from mats.domain.text.redaction import names_secret

_NOT_OWNERS = re.compile(
    r"host|authorization|cookie|connection|content-(?!md5$|range$|language$|disposition$).*|transfer-encoding|te|trailer|upgrade|expect|keep-alive|proxy-.*|"
    r"x-forwarded-.*|forwarded",
    re.IGNORECASE,
)
"""Headers that decide where a request goes and how it is read: no parameter sets them."""
_SENT = ("bearer", "oauth2", "openIdConnect", "apiKey", "basic", "none")
_TEXT = "text/plain"
_MOST_NAMED = 10  # Inputs that a message names
_RESERVED_IN_PATH, _RESERVED_IN_QUERY = "/:@!$'()*,;=", ":/?@!$'()*,;"
"""Reserved characters that end neither."""
_SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
"""By style; a tab is of Swagger 2 alone."""
_OPEN = (AuthScheme(scheme="bearer", option=1), AuthScheme(scheme="none", option=2))
"""Where nothing is known of authentication, a token is sent if its variable is set."""


@dataclass(frozen=True, slots=True)
class Credential:
    """A secret and where it is sent."""

    place: str
    name: str
    value: str = field(repr=False)


def refuse(attribute: str, message: str) -> RequestInvalid:
    return RequestInvalid([Fault(attribute, message)])


@contextmanager
def gather(faults: list[Fault]) -> Iterator[None]:
    """Add what is refused within to the faults, and go on."""
    try:
        yield
    except RequestInvalid as error:
        faults += error.faults


def credentials_for(
    auth: Sequence[AuthScheme], url: str, environment: Mapping[str, str], *, private: bool, reveal: bool
) -> list[Credential]:
    """The secrets of the first alternative whose variables are all set.

    Unless to `reveal`, the names of their variables; if no alternative has all, those of the first.

    Raises RequestInvalid: no alternative has all, or they would be sent unencrypted.
    """
    options: dict[int | None, list[AuthScheme]] = {}
    for scheme in auth or _OPEN:
        options.setdefault(scheme.option, []).append(scheme)
    shared = options.pop(None, [])
    ready, unready, missing = list[list[Credential]](), list[list[Credential]](), list[str]()
    for schemes in [[*shared, *own] for own in options.values()] or [shared]:
        if unsent := [each.scheme for each in schemes if each.scheme not in _SENT]:
            missing.append(f"authentication by {unsent[0]}, which this client does not support")
            continue
        found, lacking = _read_secrets(schemes, url, environment, reveal=reveal)
        (unready if lacking else ready).append(found)
        missing.append(" and ".join(dict.fromkeys(lacking)))
    needs = "" if ready else f"needs {', or '.join(dict.fromkeys(missing))}: set it in the environment"
    if not reveal and variable_of("", url):
        ready += unready
    unencrypted = ""
    if (not ready or ready[0]) and urlsplit(url).scheme != "https" and not (private and not namespace_of_url(url)):
        hint = "" if namespace_of_url(url) else "; private=True allows it here (`mats call --private`)"
        unencrypted = f"secrets are sent over https only, and {urlsplit(url).hostname} has http{hint}"
    if unencrypted or not ready:
        raise refuse("auth", "; ".join(filter(None, (needs, unencrypted))))
    return ready[0]


def _read_secrets(
    schemes: list[AuthScheme], url: str, environment: Mapping[str, str], *, reveal: bool
) -> tuple[list[Credential], list[str]]:
    """The credentials of these schemes, and the variables that are not set."""
    lacking = list[str]()

    def value_of(name: str) -> str:
        variable = variable_of(name, url)
        value = environment.get(variable, "").strip()
        if not value:
            lacking.append(variable or f"{name}, which has no name for this host")
        header_value(variable, value)
        return value if reveal else f"${variable}"

    secrets = secrets_of([each.model_copy(update={"option": None}) for each in schemes])
    found = [Credential(each.place, each.name, each.prefix + value_of(each.variable)) for each in secrets]
    if any(each.scheme == "basic" for each in schemes):
        pair = f"{value_of('API_USER')}:{value_of('API_PASSWORD')}"
        value = base64.b64encode(pair.encode()).decode() if reveal else pair
        found.append(Credential("header", "Authorization", f"Basic {value}"))
    return found, lacking


def fill_in(text: str, names: tuple[str, ...], values: Mapping[str, str], *, in_url: bool = False) -> str:
    """A text with the values of its placeholders; in an address, none can change its structure.

    Raises RequestInvalid: a value is missing, or cannot stand in an address.
    """
    wanted = [name for name in names if f"{{{name}}}" in text]
    check_values([name for name in wanted if not values.get(name)], "the owner left {{{0}}} for the caller to fill in")
    for name in wanted:
        value = values[name]
        if in_url and value in (".", ".."):
            raise refuse(name, "must not be a path segment `.` or `..`")
        text = text.replace(f"{{{name}}}", quote(value, safe="@$") if in_url else value)
    return text


def check_values(missing: Iterable[str], reason: str) -> None:
    """Raises RequestInvalid: with every name that is missing."""
    said = f"needs a value, by `--set {{0}}=...` or `values`: {reason}"
    if faults := [Fault(name, said.format(name)) for name in missing]:
        raise RequestInvalid(faults)


def hide_secrets(values: Mapping[str, str]) -> dict[str, str]:
    """The values as they may be shown: those of secret names by their names."""
    return {name: f"${name}" if names_secret(name) else value for name, value in values.items()}


def operation(call: HttpCall, arguments: Mapping[str, Any], url: str, secrets: list[Credential]) -> httpx2.Request:
    """The request of an operation at its filled-in address.

    Raises RequestInvalid: an argument is missing, unknown, or cannot be sent in its place.
    """
    left = {name: value for name, value in arguments.items() if value is not None}
    query, headers, cookies, faults = list[str](), dict[str, str](), list[str](), list[Fault]()
    for parameter in call.parameters:
        value = left.pop(parameter.property or parameter.name, None)
        with gather(faults):
            match parameter.in_:
                case "path":
                    url = _with_path_value(url, parameter, value)
                case _ if value is None:
                    continue
                case "query":
                    query += _pairs(parameter, value)
                case "querystring" if isinstance(value, Mapping) and not is_json(parameter.content):
                    query += _pairs(Parameter(name=parameter.name, in_="query"), value)
                case "querystring":
                    query.append(quote(_text(value), safe="=&"))
                case "cookie":
                    cookies += _pairs(parameter, value)
                case "header":
                    separator = _separator(parameter)
                    text = separator.join(_expand(parameter, value, _text, separator))
                    headers[_header_name(parameter.name)] = header_value(parameter.name, text)
    body = left.pop(call.body_input, None) if call.body else None
    names = [each.property or each.name for each in call.parameters] + [call.body_input] * bool(call.body)
    known = f"it takes {', '.join(names[:_MOST_NAMED]) or 'none'}{', …' if names[_MOST_NAMED:] else ''}"
    faults += [Fault(name, f"is no input of this operation: {known}") for name in left]
    base, _, fixed = url.partition("?")
    if "{" in base and not faults:
        raise refuse("url", "has a placeholder that no parameter fills in: ask its owner")
    address = f"{base}?{'&'.join(filter(None, (fixed, *query)))}" if fixed or query else base
    with gather(faults):
        sent = _body(call, body)
    if faults:
        raise RequestInvalid(faults)
    return _request(call.method, address, headers, cookies, secrets, **sent)


def message(call: A2aCall, arguments: Mapping[str, Any], url: str, secrets: list[Credential]) -> httpx2.Request:
    """The request that sends an agent a message: the text `message`, or a whole message object.

    Raises RequestInvalid: the agent speaks neither JSON-RPC nor HTTP+JSON, or there is no message.
    """
    text = arguments.get("message")
    if (made := call.message(str(text), url, token_hex(16))) is None:
        raise refuse("transport", f"is {call.transport}: this client sends messages over JSON-RPC and HTTP+JSON only")
    if not isinstance(text, str | dict) or not text or len(arguments) > 1:
        raise refuse("message", "must be the only input, a text or a message object of A2A")
    url, headers, body = made
    if isinstance(text, dict):
        within = body.get("params", body)
        within["message"] = {**within["message"], **text, "messageId": within["message"]["messageId"]}
    return _request("POST", url, headers, [], secrets, json=body)


def _request(
    method: str, url: str, headers: Mapping[str, str], cookies: list[str], secrets: list[Credential], **body: Any
) -> httpx2.Request:
    sent = {"Accept": "application/json, */*", **HEADERS, **headers}
    sent |= {"Content-Type": body.pop("media_type")} if "media_type" in body else {}
    url, sent = with_secrets(url, sent, cookies, secrets)
    request = httpx2.Request(method, url, headers=sent, **body)
    request.read()
    return request


def with_secrets(
    url: str, headers: Mapping[str, str], cookies: list[str], secrets: list[Credential]
) -> tuple[str, dict[str, str]]:
    """The address and the headers with secrets, each in its place. Raises Unfetchable: it is not an address."""
    sent = dict(headers)
    for secret in secrets:
        if secret.place == "header":
            sent[secret.name] = secret.value
        elif secret.place == "cookie":
            cookies = [*cookies, f"{secret.name}={secret.value}"]
        else:
            url += f"{'&' if '?' in url else '?'}{quote(secret.name, safe='')}={quote(secret.value, safe='$')}"
    split_url(url)
    return url, {**sent, **({"Cookie": "; ".join(cookies)} if cookies else {})}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _encode(value: object, safe: str = "") -> str:
    return quote(_text(value), safe=safe)


def _explodes(parameter: Parameter) -> bool:
    """What is stated, or the default of OpenAPI: only values of the style `form` are exploded."""
    is_form = parameter.style == "form" or (not parameter.style and parameter.in_ in ("query", "cookie", "form"))
    return is_form if parameter.explode is None else parameter.explode


def _separator(parameter: Parameter) -> str:
    return _SEPARATORS.get(parameter.style, ",")


def _join(value: Any, separator: str, encode: Callable[[Any], str]) -> str:
    """A value as text: the entries of a list, or the names and values of an object, with a separator."""
    if isinstance(value, Mapping):
        value = [*chain.from_iterable(value.items())]
    return separator.join(map(encode, value)) if isinstance(value, list | tuple) else encode(value)


def _expand(
    parameter: Parameter, value: Any, encode: Callable[[Any], str], separator: str, named: str = ""
) -> list[str]:
    """The expansion of a value, as in RFC 6570: exploded one text for each entry, else one. `named` is `name=`."""
    if parameter.content:
        return [named + encode(json.dumps(value) if is_json(parameter.content) else value)]
    if isinstance(value, Mapping) and _explodes(parameter):
        return [f"{encode(key)}={encode(entry)}" for key, entry in value.items()]
    if isinstance(value, list | tuple) and _explodes(parameter):
        return [named + encode(entry) for entry in value]
    return [named + _join(value, separator, encode)]


def _pairs(parameter: Parameter, value: Any) -> Iterable[str]:
    """A value in a query or cookie, as the parameter's style has it: `name=value`, percent-encoded."""
    name = quote(parameter.name, safe="[]")
    if isinstance(value, Mapping | list) and parameter.style == "deepObject" and not parameter.content:
        return _deep(name, value)
    encode = partial(_encode, safe=_RESERVED_IN_QUERY if parameter.reserved else "")
    return _expand(parameter, value, encode, quote(_separator(parameter), safe=","), f"{name}=")


def _deep(name: str, value: Any) -> Iterator[str]:
    """A value with the path to it in its name. OpenAPI leaves lists open; most servers read `a[]=1`, `a[0][b]=1`."""
    match value:
        case Mapping():
            for key, entry in value.items():
                yield from _deep(f"{name}[{quote(key, safe='')}]", entry)
        case list():
            for position, entry in enumerate(value):
                yield from _deep(f"{name}[{position if isinstance(entry, Mapping | list) else ''}]", entry)
        case _:
            yield f"{name}={_encode(value)}"


def _with_path_value(base: str, parameter: Parameter, value: Any) -> str:
    """The address with a parameter of its path, whose value cannot leave its segment."""
    name, place = parameter.name, f"{{{parameter.name}}}"
    if value is None or value in ("", [], {}):
        raise refuse(name, "is required: it is a part of the path")
    if any(part in (".", "..") for part in re.split(r"[/\\]", unquote(_join(value, "/", _text)))):
        raise refuse(name, "must not have a path segment `.` or `..`")
    encode = partial(_encode, safe=_RESERVED_IN_PATH if parameter.reserved else "")
    separator = quote(_separator(parameter), safe=",")
    styles = {"label": (".", ".", ""), "matrix": (";", ";", f"{quote(name, safe='')}=")}
    before, between, named = styles.get(parameter.style, ("", separator, ""))
    written = before + between.join(_expand(parameter, value, encode, separator, named))
    authority = base.find("/", base.find("://") + 3)
    if authority < 0 or place in base[:authority]:
        raise refuse(name, "would be a part of the host, which no input may choose")
    return base.replace(place, written)


def _header_name(name: str) -> str:
    if not TOKEN.fullmatch(name) or _NOT_OWNERS.fullmatch(name):
        raise refuse(name, "is a header that no input may set")
    return name


def header_value(name: str, text: str) -> str:
    """The text. Raises RequestInvalid: it cannot be the value of a header."""
    if not text.isascii() or not text.isprintable():
        raise refuse(name, "has characters that no header can have")
    return text


def _body(call: HttpCall, value: Any) -> dict[str, Any]:
    """The arguments of a request with this body."""
    kind = media_type_of(call.body)
    if value is None:
        return {}
    if kind in (FORM, MULTIPART):
        if not isinstance(value, Mapping):
            raise refuse("body", "must be an object: it is sent as a form")
        encoding = {each.name: each for each in call.encoding}
        fields = [
            (encoding.get(name) or Parameter(name=name, in_="form"), v) for name, v in value.items() if v is not None
        ]
        if kind == MULTIPART:
            parts = [(field.name, _part(one, field.content)) for field, v in fields for one in _parts(field, v)]
            return {"files": parts}
        text = "&".join(pair for field, v in fields for pair in _field_pairs(field, v))
        return {"content": text.encode(), "media_type": FORM}
    if is_json(kind):
        content = json.dumps(value, ensure_ascii=False).encode()
    elif _is_file(value):
        content = _part(value)[1]
    elif isinstance(value, Mapping | list) and kind:
        raise refuse("body", f"must be text, or a file with `filename` and `base64`: it is sent as {kind}")
    else:
        content = _text(value).encode()
    return {"content": content, "media_type": call.body or _TEXT}


def _field_pairs(field: Parameter, value: Any) -> Iterable[str]:
    """A field of a form; an object is JSON unless a style says how it is written."""
    is_styled = bool(field.style or field.reserved) or field.explode is not None
    content = "" if is_styled else JSON if isinstance(value, Mapping) else field.content
    return _pairs(field.model_copy(update={"content": content}), value)


def _parts(field: Parameter, value: Any) -> list[Any]:
    if isinstance(value, list) and field.explode is False:
        return [_join(value, _separator(field), _text)]
    return value if isinstance(value, list) and not is_json(field.content) else [value]


def _is_file(value: Any) -> bool:
    return isinstance(value, Mapping) and "filename" in value


def _part(value: Any, media_type: str = "") -> tuple[str | None, bytes, str]:
    """A field of a form, or a file if it is an object with `filename`, and `content` or `base64`."""
    stated = media_type if media_type and "*" not in media_type else ""
    if _is_file(value):
        try:
            content = base64.b64decode(str(value.get("base64", "")), validate=True)
        except ValueError as error:
            raise refuse("body", "has a file whose `base64` is not valid: encode it with base64.b64encode") from error
        return (
            str(value["filename"]),
            content or _text(value.get("content", "")).encode(),
            stated or "application/octet-stream",
        )
    is_nested = isinstance(value, Mapping | list)
    if is_nested and stated and not is_json(stated):
        raise refuse("body", f"has a field that must be text, or a file with `filename`: it is sent as {stated}")
    text = json.dumps(value, ensure_ascii=False) if is_json(stated) else _text(value)
    return None, text.encode(), stated or (JSON if is_nested else _TEXT)
