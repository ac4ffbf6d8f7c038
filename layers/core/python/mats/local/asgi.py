"""Starlette requests: the raw path, the bounded body, and the check of their origin.

The service has no password. A page from elsewhere could still make a browser on this machine send requests: under a
host name that the page's owner points to this address (DNS rebinding), or straight to this address (cross-site request
forgery). The first has a foreign `Host`, the second a foreign `Origin`, and no page can forge either.
"""

from starlette.datastructures import Headers
from starlette.requests import Request

from mats.edge import http

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
"""For a route that answers unsupported methods itself."""
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_SAME_SITE = ("same-origin", "none")
"""`Sec-Fetch-Site` of the console's own requests and of typed addresses."""


def raw_path(request: Request) -> str:
    """The path, still percent-encoded."""
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.decode("latin-1")


async def read_body(request: Request, limit: int) -> bytes:
    """At most `limit` bytes of the body; the rest is read and dropped."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk[: limit - len(content)]
    return bytes(content)


def origin_problem(scheme: str, headers: Headers) -> http.Response | None:
    """The error for a request of another host or origin; None for an accepted one."""
    hosts, origin, site = headers.getlist("host"), headers.get("origin"), headers.get("sec-fetch-site")
    if len(hosts) != 1 or not _is_loopback(hosts[0]):
        return http.problem(403, "unknown host: use 127.0.0.1 or localhost")
    if origin is not None and origin.lower() != f"{scheme}://{hosts[0]}".lower():
        return http.problem(403, "cross-origin request rejected: use the console of this service")
    if site is not None and site not in _SAME_SITE:
        return http.problem(403, "cross-site request rejected: use the console of this service")
    return None


def registry_problem(method: str, scheme: str, headers: Headers) -> http.Response | None:
    """As `origin_problem`, for the registry: a body must also be JSON, which a plain HTML form cannot send."""
    if problem := origin_problem(scheme, headers):
        return problem
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method in ("PUT", "POST") and media_type != "application/json":
        return http.problem(415, "send the item as Content-Type: application/json")
    return None


def _is_loopback(host: str) -> bool:
    name, _, port = host.rpartition(":") if host[-1:] != "]" and ":" in host else (host, "", "")
    return name.lower() in _LOOPBACK and (port == "" or (port.isascii() and port.isdigit()))
