"""The HTTP service on loopback: turns requests into API Gateway events for the discovery handler."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from functions.discovery.handler import respond
from mats.bootstrap.local import Local
from mats.edge import ard, http
from mats.local.console import api, files
from mats.local.console.desk import Desk
from mats.local.console.guard import foreign
from mats.local.console.keeper import Keeper
from mats.local.envelope import proxy_request
from mats.local.pump import Pump
from mats.local.wire import METHODS, body, raw_path
from mats.resources import swagger_ui

_THREADS = 256
"""Requests answered at once; each mostly waits for a model."""
_LONGEST_BODY = 4 * http.MAX_BODY_BYTES
"""What is kept of a body, well past what the handler refuses anyway."""

_MCP = "/mcp"
"""Pages of other programs on this machine may speak MCP; its own rule says so."""

_PAGES = Path(__file__).parent / "static"

LOGGER = logging.getLogger("mats.service")


def application(local: Local) -> Starlette:
    """The ASGI application over one local registry."""
    discovery, desk = local.discovery, Desk(local)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        pump, keeper = Pump(local), Keeper(desk.look)
        pump.start()
        keeper.start()
        app.state.keeper = keeper
        yield
        keeper.stop()
        pump.stop()

    async def public(request: Request) -> Response:
        try:
            sent = await body(request, _LONGEST_BODY)
        except ClientDisconnect:
            return Response(status_code=400)
        if request.url.path != _MCP and (refused := foreign(request.url.scheme, request.headers)):
            return shaped(request, refused)
        event = proxy_request(
            request.method, raw_path(request), request.headers, sent, local.settings.audiences, query=request.url.query
        )
        answer = await anyio.to_thread.run_sync(respond, event, discovery)
        return Response(answer.body, answer.status, dict(answer.headers))

    async def bug(request: Request, error: Exception) -> Response:
        LOGGER.error("a bug of ours at %r", request.url.path, exc_info=error)
        return problem(request, 500, "a bug of ours; the log has the details")

    async def nowhere(request: Request, error: Exception) -> Response:
        return problem(request, 404, "there is nothing at this path; see /openapi.json")

    async def wrong_method(request: Request, error: Exception) -> Response:
        allowed = (getattr(error, "headers", None) or {}).get("Allow", "GET, HEAD")
        return problem(request, 405, f"use {allowed}", {"Allow": allowed})

    def problem(request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
        return shaped(request, http.problem(status, detail, headers=headers))

    def shaped(request: Request, answer: http.Response) -> Response:
        answer = ard.in_its_shape(answer) if ard.serves(request.url.path) else answer
        return Response(answer.body, answer.status, dict(answer.headers))

    routes = [
        *files.routes(),
        *api.routes(desk),
        Route("/docs", lambda request: FileResponse(_PAGES / "docs.html")),
        Mount("/docs/assets", StaticFiles(directory=swagger_ui())),
        Mount("/static", StaticFiles(directory=_PAGES)),
        Route("/{path:path}", public, methods=METHODS),
    ]
    return Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={404: nowhere, 405: wrong_method, Exception: bug}
    )
