"""Who may ask over HTTP: somebody at this machine, and no page of anybody else's in a browser here.

The service has no password. A page from elsewhere could still make a browser on this machine send requests: under a
name of its own that it lets point here (DNS rebinding), or straight at this address (cross-site requests). The first
has a foreign `Host`, the second a foreign `Origin`, and no page can forge either.
"""

from starlette.datastructures import Headers

from mats.edge import http

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_OWN = ("same-origin", "none")
"""`Sec-Fetch-Site` of the console's own requests, and of what somebody typed."""


def foreign(scheme: str, headers: Headers) -> http.Response | None:
    """Why a request is not let in, if it is of somebody else's page; None if it is not."""
    hosts, origin, site = headers.getlist("host"), headers.get("origin"), headers.get("sec-fetch-site")
    if len(hosts) != 1 or not _is_loopback(hosts[0]):
        return http.problem(403, "this service answers under 127.0.0.1 and localhost only")
    if origin is not None and origin.lower() != f"{scheme}://{hosts[0]}".lower():
        return http.problem(403, "this service does not answer pages of another origin")
    if site is not None and site not in _OWN:
        return http.problem(403, "this service does not answer pages of another site")
    return None


def refusal(method: str, scheme: str, headers: Headers) -> http.Response | None:
    """Why a request to the registry is not let in; None if it is."""
    if refused := foreign(scheme, headers):
        return refused
    if method in ("PUT", "POST") and not _is_json(headers.get("content-type", "")):
        return http.problem(415, "send the item as Content-Type: application/json")
    return None


def _is_loopback(host: str) -> bool:
    name, _, port = host.rpartition(":") if host[-1:] != "]" and ":" in host else (host, "", "")
    return name.lower() in _LOOPBACK and (port == "" or (port.isascii() and port.isdigit()))


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"
