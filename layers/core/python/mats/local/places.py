"""The paths of the service. Each has one spelling, and whatever is decided by a path is decided here, once.

A path is compared as it was sent: no byte of it is decoded, dropped or folded first. Only what stands for the `{id}` of
an endpoint may be percent-encoded, and may hold anything. Any other spelling is nobody's path, for everybody.
"""

import re
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from mats.edge import http
from mats.edge.routes import ROUTES
from mats.local.access import PLACE, Place, to_starlette
from mats.local.console import api

OPEN = frozenset({"/", "/docs", "/healthz", "/openapi.json"})
"""Paths that need no token; files of the release need none, either."""
_FIXED = OPEN | {"/metrics"}  # Paths beside those of endpoints, or open ones
_FOLDERS = ("/console/", "/docs/assets/", "/static/")
"""Files of the release: the same for every registry, and open."""
_FILE = re.compile(r"\w[\w.-]*", re.ASCII)


def place_of(path: str) -> Place | None:
    """The place of a path as it was sent; None if nothing has this spelling."""
    if path in _FIXED:
        return Place(path, is_open=path in OPEN)
    for folder in _FOLDERS:
        if path.startswith(folder) and _FILE.fullmatch(path.removeprefix(folder)):
            return Place(f"{folder}{{file}}", is_open=True)
    matching = [route for route in (*ROUTES, *api.ROUTES) if route.matches(path)]
    if not matching:
        return None
    template = matching[0].documented_path
    return Place(template, [route for route in matching if route.documented_path == template])


class FindPlace:
    """ASGI middleware: notes the place of each request for all that comes behind it; without a place, 404."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
            if place := place_of(path):
                scope[PLACE], scope["path"] = place, unquote(path)
            else:
                app = to_starlette(scope, http.problem(404, "there is nothing at this path; see /openapi.json"))
        await app(scope, receive, send)
