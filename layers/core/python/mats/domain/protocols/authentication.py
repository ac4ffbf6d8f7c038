"""The authentication that a call needs: names of schemes and places, never a value."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field

from mats.domain.protocols.protocol import Compact
from mats.domain.protocols.values import mapping_at, objects
from mats.domain.text.redaction import is_plain, names_secret

_MAX_NAME, _MAX_SCHEMES = 100, 20
_NAME = re.compile(r"[!#&'*+.^_|~0-9A-Za-z-]+")
"""A token of RFC 9110, what headers are called; without the characters by which clients and shells expand variables."""
_PLACES = frozenset({"header", "query", "cookie"})
_WRAPPED = {
    "apiKeySecurityScheme": "apiKey",
    "httpAuthSecurityScheme": "http",
    "oauth2SecurityScheme": "oauth2",
    "openIdConnectSecurityScheme": "openIdConnect",
    "mtlsSecurityScheme": "mutualTLS",
}
"""The schemes of an A2A 1.0 card, and their types in OpenAPI and in earlier cards."""


TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token of RFC 9110: the name of a header."""
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_BEARER = frozenset({"bearer", "oauth2", "openIdConnect"})
_NOT_OF_KEY = re.compile(r"^x[-_]|[^a-z0-9]")


class Secret(NamedTuple):
    """A value that a caller must have: where it is sent, the variable it is read from, and the text before it."""

    place: str
    name: str
    variable: str
    prefix: str = ""


class AuthScheme(Compact):
    """One scheme."""

    scheme: str  # `bearer`, `basic`, `apiKey` with its name and place, `oauth2`, `openIdConnect`, `mutualTLS`, `none`
    name: str = ""
    in_: str = Field(default="", validation_alias=AliasChoices("in", "in_"))
    option: int | None = None  # None: all schemes of a call are needed; else those of any one number are


def auth_of(security: object, schemes: object) -> tuple[AuthScheme, ...]:
    """The schemes of security requirements as OpenAPI and A2A write them: a list of alternatives."""
    known = mapping_at(schemes)
    alternatives = [tuple(filter(None, map(_scheme, _schemes_of(each, known)))) for each in objects(security)]
    if not any(alternatives):
        return ()
    if len(alternatives) == 1:
        return alternatives[0][:_MAX_SCHEMES]
    return tuple(_number(alternatives))[:_MAX_SCHEMES]


def _number(alternatives: Iterable[Sequence[AuthScheme]]) -> Iterator[AuthScheme]:
    """The schemes of alternatives with the number of theirs, from 1; `none` for one without schemes."""
    for number, schemes in enumerate(alternatives, start=1):
        for scheme in schemes or (AuthScheme(scheme="none"),):
            yield scheme.model_copy(update={"option": number})


def _schemes_of(requirement: Mapping[str, Any], schemes: Mapping[str, Any]) -> Iterator[object]:
    """The schemes that a requirement names; A2A 1.0 has them under `schemes`."""
    inner = requirement.get("schemes")
    for name in inner if isinstance(inner, Mapping) and "schemes" not in schemes else requirement:
        yield schemes.get(name)


def _scheme(written: object) -> AuthScheme | None:
    if not isinstance(written, Mapping):
        return None
    for key, type in _WRAPPED.items():
        if isinstance(inner := written.get(key), Mapping):
            written = {**inner, "type": type, "in": inner.get("location", inner.get("in"))}
    match written.get("type"):
        case "http" if name := _token(written.get("scheme")):
            return AuthScheme(scheme=name.lower())
        case "apiKey" if name := _token(written.get("name")):
            return AuthScheme(scheme="apiKey", name=name, in_=_place(written.get("in")))
        case "basic":
            return AuthScheme(scheme="basic")  # Swagger 2.0
        case "oauth2" | "openIdConnect" | "mutualTLS" as type:
            return AuthScheme(scheme=type)
    return None


def auth_from_list(written: object) -> tuple[AuthScheme, ...]:
    """The schemes of a list as `AuthScheme` has them, without invalid entries."""
    return tuple(filter(None, map(_parse_entry, objects(written))))[:_MAX_SCHEMES]


def _parse_entry(entry: Mapping[str, Any]) -> AuthScheme | None:
    scheme, name, place, option = (entry.get(key) for key in ("scheme", "name", "in", "option"))
    if not (known := _token(scheme)):
        return None
    number = option if isinstance(option, int) and not isinstance(option, bool) and option > 0 else None
    return AuthScheme(scheme=known, name=_token(name), in_=_place(place), option=number)


class _Header(NamedTuple):
    name: object
    value: object
    hidden: bool = False
    is_optional: bool = False  # Said to be sent only by those who have it


def auth_of_headers(headers: object) -> tuple[tuple[AuthScheme, ...], tuple[str, ...]]:
    """The schemes of a client's headers, and the names of the other headers.

    `headers` is an object of values, or a list of names or of objects with `name`, `value`, `isSecret` and
    `isRequired`. Of a value only its first word counts, if that is an authentication scheme; without one,
    `Authorization` is a bearer token. The schemes of optional headers are alternatives: all of them, fewer, or none.
    """
    schemes, optional, others = list[AuthScheme](), list[AuthScheme](), list[str]()
    named = (_Header(name, value) for name, value in mapping_at(headers).items())
    for name, value, hidden, is_optional in chain(named, _in_list(headers)):
        if not (header := _token(name)):
            continue
        first = value.split(" ", 1)[0].lower() if isinstance(value, str) and value else "bearer"
        if header.lower() == "authorization" and first in ("bearer", "basic"):
            scheme = AuthScheme(scheme=first)
        elif hidden or names_secret(header):
            scheme = AuthScheme(scheme="apiKey", name=header, in_="header")
        else:
            others.append(header)
            continue
        (optional if is_optional else schemes).append(scheme)
    fewer = [optional[:count] for count in range(len(optional[:4]), -1, -1)] if optional else []
    return (*schemes, *_number(fewer))[:_MAX_SCHEMES], tuple(others[:_MAX_SCHEMES])


def _in_list(headers: object) -> Iterator[_Header]:
    for header in headers if isinstance(headers, list | tuple) else ():
        if isinstance(header, str):
            name, _, value = header.partition(":")
            yield _Header(name.strip(), value.strip())
        elif isinstance(header, Mapping):
            is_required = header.get("isRequired", header.get("is_required"))
            yield _Header(header.get("name"), header.get("value"), is_secret(header), is_required is False)


def is_secret(input: Mapping[str, Any]) -> bool:
    """True if a `server.json`, of today's format or the one before, says that an input of a server is a secret."""
    return True in (input.get("isSecret"), input.get("is_secret"))


def first_option(auth: Iterable[AuthScheme]) -> list[AuthScheme]:
    """The schemes of the first alternative that has some; `none` is no scheme."""
    schemes = [scheme for scheme in auth if scheme.scheme != "none"]
    first = min((scheme.option for scheme in schemes if scheme.option is not None), default=None)
    return [scheme for scheme in schemes if scheme.option in (None, first)]


def is_basic(auth: Iterable[AuthScheme]) -> bool:
    """True if the first alternative has HTTP Basic, a user and a password."""
    return any(scheme.scheme == "basic" for scheme in first_option(auth))


def secrets_of(auth: Iterable[AuthScheme]) -> list[Secret]:
    """The secrets of the first alternative: bearer tokens and API keys, each in a variable of its own.

    `X-Api-Key` and `api_key` are one key, sent in two places: documents list so what they take in either.
    """
    found, variables = dict[Secret, None](), dict[str, str]()
    for scheme in first_option(auth):
        if scheme.scheme in _BEARER:
            found[Secret("header", "Authorization", "API_TOKEN", "Bearer ")] = None
        elif scheme.scheme == "apiKey" and TOKEN.fullmatch(scheme.name):
            key, number = _NOT_OF_KEY.sub("", scheme.name.lower()), len(variables) + 1
            variable = variables.setdefault(key, f"API_KEY_{number}" if variables else "API_KEY")
            found[Secret(scheme.in_ or "header", scheme.name, variable)] = None
    return list(found)


def variable_of(name: str, url: str) -> str:
    """The variable of a secret for the host of an address; empty for a host without a name of its own.

    Different hosts have different variables: a dot becomes `_`, a hyphen `__`, and `___` precedes a port.
    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return ""
    if not _HOST.fullmatch(host):
        return ""
    port_name = f"___{port}" if port not in (None, 443 if parts.scheme == "https" else 80) else ""
    return f"{name}_{host.replace('-', '__').replace('.', '_')}{port_name}".upper()


def _place(value: object) -> str:
    return value if isinstance(value, str) and value in _PLACES else ""


def _token(value: object) -> str:
    valid = isinstance(value, str) and len(value) <= _MAX_NAME and is_plain(value) and _NAME.fullmatch(value)
    return str(value) if valid else ""
