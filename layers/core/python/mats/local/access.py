"""Who may use the service: the hosts and origins it accepts, and bearer tokens where other machines reach it.

On one machine the service has no password. A page from elsewhere could still make a browser there send requests: under
a host name that the page's owner points to this address (DNS rebinding), or straight to this address (cross-site
request forgery). The first has a foreign `Host`, the second a foreign `Origin`, and no page can forge either.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mats.domain.protocols.protocol import is_ip
from mats.edge import http
from mats.edge.routes import route_at

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MIN_TOKEN = 32  # Characters; `openssl rand -hex 32` gives 64
_OPEN = frozenset({"/", "/docs", "/healthz", "/openapi.json"})
_OPEN_BELOW = ("/console/", "/evaluation/", "/docs/assets/", "/static/")
"""Files of the release and the state of the service: the same for every registry."""
_CHALLENGE = 'Bearer realm="mats"'


@dataclass(frozen=True, slots=True)
class Tokens:
    """SHA-256 of the tokens: of equal length, so that comparing them takes the same time for any token."""

    read: bytes = field(repr=False)
    write: bytes = field(repr=False)

    def problem(self, path: str, authorization: Sequence[str]) -> http.Response | None:
        """The error for a request with these `Authorization` headers; None if it may have the path."""
        if path in _OPEN or path.startswith(_OPEN_BELOW):
            return None
        sent = digest(_bearer(authorization))
        may_write, may_read = hmac.compare_digest(sent, self.write), hmac.compare_digest(sent, self.read)
        if may_write or (may_read and not f"{path}/".startswith("/registry/")):
            return None
        if may_read:
            challenge = {"WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope"'}
            return http.problem(403, "this token may only read: send the write token", headers=challenge)
        error = ', error="invalid_token"' if authorization else ""
        detail = "unknown token" if authorization else "no token"
        return http.problem(
            401,
            f"{detail}: send the read or the write token of this service as Authorization: Bearer",
            headers={"WWW-Authenticate": f"{_CHALLENGE}{error}"},
        )


@dataclass(frozen=True, slots=True)
class Access:
    """The host names beside loopback, and the tokens. Without tokens the service is for this machine alone."""

    hosts: frozenset[str] = frozenset()
    tokens: Tokens | None = None

    def knows(self, host: str) -> bool:
        """True if a `Host` header names this service. No DNS record can make a page have an address as its host."""
        name, _, port = host.rpartition(":") if host[-1:] != "]" and ":" in host else (host, "", "")
        if port and not (port.isascii() and port.isdigit()):
            return False
        bare = name[1:-1] if name[:1] == "[" and name[-1:] == "]" else name
        if (bare == name) is (":" in name):  # IPv6 in brackets, nothing else
            return False
        known = bare.lower() in LOOPBACK | self.hosts
        return known or (self.tokens is not None and is_ip(bare))

    def accepts_origin(self, origin: str, scheme: str, host: str) -> bool:
        """True if a page of the service itself sends the request; behind a proxy its scheme may be another."""
        schemes = (scheme, "https") if self.tokens else (scheme,)
        return origin.lower() in {f"{one}://{host}".lower() for one in schemes}


THIS_MACHINE = Access()


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _bearer(authorization: Sequence[str]) -> str:
    """The token of a single `Authorization: Bearer`; empty, which is nobody's token, without one."""
    if len(authorization) != 1:
        return ""
    scheme, _, token = authorization[0].partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
"""For a route that answers unsupported methods itself."""
_SAME_SITE = ("same-origin", "none")  # `Sec-Fetch-Site` of the console's own requests and of typed addresses


def raw_path(request: Request) -> str:
    """The path, still percent-encoded."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.decode("latin-1")


def header_fields(headers: Headers) -> dict[str, str]:
    """Values by lower-case name; of several with one name, the first. `dict(headers)` takes quadratic time."""
    return dict(reversed(headers.items()))


async def read_body(request: Request, limit: int) -> bytes:
    """At most `limit` bytes of the body; the rest is read and dropped."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk[: limit - len(content)]
    return bytes(content)


def origin_problem(scheme: str, headers: Headers, access: Access = THIS_MACHINE) -> http.Response | None:
    """The error for a request of another host or origin; None for an accepted one."""
    hosts, origin, site = headers.getlist("host"), headers.get("origin"), headers.get("sec-fetch-site")
    if len(hosts) != 1 or not access.knows(hosts[0]):
        remedy = "start mats serve with --allowed-host NAME" if access.tokens else "use 127.0.0.1 or localhost"
        return http.problem(403, f"unknown host: {remedy}")
    if origin is not None and not access.accepts_origin(origin, scheme, hosts[0]):
        return http.problem(403, "cross-origin request rejected: use the console of this service")
    if site is not None and site not in _SAME_SITE:
        return http.problem(403, "cross-site request rejected: use the console of this service")
    return None


_MEDIA_TYPES = ("application/json", "application/merge-patch+json")


def registry_problem(method: str, scheme: str, headers: Headers, access: Access = THIS_MACHINE) -> http.Response | None:
    """As `origin_problem`, for the registry: a body must also be JSON, which a plain HTML form cannot send."""
    if problem := origin_problem(scheme, headers, access):
        return problem
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method in ("PUT", "POST", "PATCH") and media_type not in _MEDIA_TYPES:
        return http.problem(415, "send the item as Content-Type: application/json")
    return None


class TokenGuard:
    """Rejects requests without the token they need, before anything else is read of them."""

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app, self._tokens = app, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = None
        if scope["type"] == "http":
            problem = self._tokens.problem(scope["path"], Headers(scope=scope).getlist("authorization"))
        await (to_starlette(scope["path"], problem) if problem else self._app)(scope, receive, send)


def to_starlette(path: str, answer: http.Response) -> Response:
    """The response, an error in the format of the endpoint at this path."""
    route = route_at(path)
    formatted = route.with_error_format(answer) if route else answer
    return Response(formatted.body, formatted.status, dict(formatted.headers))
