"""Starlette requests: the raw path, the bounded body, the check of their origin, and of their token.

On one machine the service has no password. A page from elsewhere could still make a browser there send requests: under
a host name that the page's owner points to this address (DNS rebinding), or straight to this address (cross-site
request forgery). The first has a foreign `Host`, the second a foreign `Origin`, and no page can forge either.
"""

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mats.edge import http
from mats.edge.routes import route_at
from mats.local.access import THIS_MACHINE, Access, Tokens

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
"""For a route that answers unsupported methods itself."""
_SAME_SITE = ("same-origin", "none")
"""`Sec-Fetch-Site` of the console's own requests and of typed addresses."""


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


def registry_problem(method: str, scheme: str, headers: Headers, access: Access = THIS_MACHINE) -> http.Response | None:
    """As `origin_problem`, for the registry: a body must also be JSON, which a plain HTML form cannot send."""
    if problem := origin_problem(scheme, headers, access):
        return problem
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method in ("PUT", "POST") and media_type != "application/json":
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
