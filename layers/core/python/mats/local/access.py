"""Access control of the service: the accepted hosts and origins, and bearer tokens with their scopes.

On one machine everybody may search without a token. A page from elsewhere could make a browser there send requests:
under a host name that the page's owner points to this address (DNS rebinding), or straight to this address (cross-site
request forgery). The first has a foreign `Host`, the second a foreign `Origin`, and no page can forge either.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mats.domain.errors import CapabilityError
from mats.domain.protocols.namespaces import is_ip
from mats.edge import http
from mats.edge.route import Route, TokenScope
from mats.local.tokens import Token, TokenBook

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
LOGGER = logging.getLogger("mats.service")
_CHALLENGE = 'Bearer realm="mats"'


@dataclass(frozen=True, slots=True)
class Access:
    """The host names beside loopback, and the tokens; without them everybody who reaches the service may do everything.

    `own` is the file with the token of this machine's user. With one, the service is for this machine alone: whoever is
    on it may read and report, and a change needs a token.
    """

    hosts: frozenset[str] = frozenset()
    tokens: TokenBook | None = None
    own: Path | None = None

    @property
    def is_shared(self) -> bool:
        """True if other machines may reach the service."""
        return self.tokens is not None and self.own is None

    def asks_for_token(self, method: str, scope: TokenScope) -> bool:
        """True if a request that needs this scope needs a token for it: always if shared, else to change something."""
        return self.is_shared or (method not in ("GET", "HEAD") and scope.includes(TokenScope.WRITE))

    def knows(self, host: str) -> bool:
        """True if a `Host` header names this service. No DNS record can make a page have an address as its host."""
        name, _, port = host.rpartition(":") if host[-1:] != "]" and ":" in host else (host, "", "")
        if port and not (port.isascii() and port.isdigit()):
            return False
        bare = name[1:-1] if name[:1] == "[" and name[-1:] == "]" else name
        if (bare == name) is (":" in name):  # IPv6 in brackets, nothing else
            return False
        known = bare.lower() in LOOPBACK | self.hosts
        return known or (self.is_shared and is_ip(bare))

    def accepts_origin(self, origin: str, scheme: str, host: str) -> bool:
        """True if a page of the service itself sends the request; behind a proxy its scheme may be another."""
        schemes = (scheme, "https") if self.is_shared else (scheme,)
        return origin.lower() in {f"{one}://{host}".lower() for one in schemes}


THIS_MACHINE = Access()


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
        remedy = "start mats serve with --allowed-host NAME" if access.is_shared else "use 127.0.0.1 or localhost"
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
        return http.problem(415, "send the body as Content-Type: application/json")
    return None


PLACE, _TOKEN = "mats.place", "mats.token"  # Keys of the ASGI scope


@dataclass(frozen=True, slots=True)
class Place:
    """A path of the service, or all paths of an endpoint with a parameter."""

    template: str  # As OpenAPI spells it
    routes: Sequence[Route] = ()  # One for each method; files and metrics have none
    is_open: bool = False  # Nobody needs a token

    def scope_needed(self, method: str) -> TokenScope:
        """The scope of a token for a method; the highest for one that the registry does not have here."""
        wanted = "GET" if method == "HEAD" else method
        found = next((route.scope for route in self.routes if route.method == wanted), None)
        if found is None and self.template.startswith("/registry"):
            return TokenScope.OPERATE
        return found or next((route.scope for route in self.routes), TokenScope.READ)


def place_at(scope: Scope) -> Place | None:
    """The place of a request; None where nothing is."""
    place: Place | None = scope.get(PLACE)
    return place


def token_of(scope: Scope) -> Token | None:
    """The token with which a request passed the guard; None if it needed none."""
    token: Token | None = scope.get(_TOKEN)
    return token


def to_starlette(scope: Scope, answer: http.Response) -> Response:
    """The response to a request, an error in the format of its endpoint."""
    place = place_at(scope)
    formatted = place.routes[0].with_error_format(answer) if place and place.routes else answer
    return Response(formatted.body, formatted.status, dict(formatted.headers))


class _Refused(Exception):
    def __init__(self, answer: http.Response) -> None:
        self.answer = answer


class TokenGuard:
    """Rejects requests without the token they need: before anything else is read of them, and when all has arrived.

    A body may end long after its head, and the token may be revoked by then.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def receive_if_allowed() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                self._check(scope)
            return message

        try:
            self._check(scope)
            await self._app(scope, receive_if_allowed, send)
        except _Refused as refused:
            await to_starlette(scope, refused.answer)(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Raises _Refused."""
        if problem := self._problem(scope):
            raise _Refused(problem)

    def _problem(self, scope: Scope) -> http.Response | None:
        """The error of a request; None if it needs no token, or has one with the scope it needs, which is noted."""
        place = place_at(scope)
        if place and place.is_open:
            return None
        needed = place.scope_needed(scope["method"]) if place else TokenScope.OPERATE
        tokens = self._access.tokens
        if tokens is None or not self._access.asks_for_token(scope["method"], needed):
            return None
        authorization = Headers(scope=scope).getlist("authorization")
        try:
            token = tokens.find(_bearer(authorization))
        except CapabilityError as error:
            LOGGER.error("%s", error)
            return http.error_response(error, internal_details=False)
        if token and token.scope.includes(needed):
            scope[_TOKEN] = token
            return None
        if token:
            challenge = {"WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope", scope="{needed}"'}
            return http.problem(
                403, f"this token may only {token.scope.allows}: send one with the scope {needed}", headers=challenge
            )
        reason, problem = (', error="invalid_token"', "unknown token") if authorization else ("", "no token")
        own = self._access.own
        wanted = f"the token in {own}" if own else f"a token of this service (`mats token add`) with the scope {needed}"
        challenge = {"WWW-Authenticate": f"{_CHALLENGE}{reason}"}
        return http.problem(401, f"{problem}: send {wanted} as Authorization: Bearer", headers=challenge)
