"""Reject requests from other hosts and from pages of other origins.

The service has no password. A page from elsewhere could still make a browser on this machine send requests: under a
host name that the page's owner points to this address (DNS rebinding), or straight to this address (cross-site request
forgery). The first has a foreign `Host`, the second a foreign `Origin`, and no page can forge either.
"""

from starlette.datastructures import Headers

from mats.edge import http

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_SAME_SITE = ("same-origin", "none")
"""`Sec-Fetch-Site` of the console's own requests and of typed addresses."""


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
    if method in ("PUT", "POST") and not _is_json(headers.get("content-type", "")):
        return http.problem(415, "send the item as Content-Type: application/json")
    return None


def _is_loopback(host: str) -> bool:
    name, _, port = host.rpartition(":") if host[-1:] != "]" and ":" in host else (host, "", "")
    return name.lower() in _LOOPBACK and (port == "" or (port.isascii() and port.isdigit()))


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"
