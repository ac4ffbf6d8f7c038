"""The HTTP service on loopback: turns requests into API Gateway events for the discovery handler."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import distribution
from pathlib import Path

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from functions.discovery.handler import respond
from local.envelope import proxy_request
from local.pump import Pump
from mats.bootstrap.local import Local
from mats.edge import ard, http

_THREADS = 256
"""Requests answered at once; each mostly waits for a model."""
_LONGEST_BODY = 4 * http.MAX_BODY_BYTES
"""What is kept of a body, well past what the handler refuses anyway."""

_PAGES = Path(__file__).parent / "static"

LOGGER = logging.getLogger("mats.service")


def application(local: Local) -> Starlette:
    """The ASGI application over one local registry."""
    discovery = local.discovery

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        pump = Pump(local)
        pump.start()
        yield
        pump.stop()

    async def api(request: Request) -> Response:
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        event = proxy_request(
            request.method, _raw_path(request), request.headers, body, local.settings.audiences, query=request.url.query
        )
        answer = await anyio.to_thread.run_sync(respond, event, discovery)
        return Response(answer.body, answer.status, dict(answer.headers))

    async def bug(request: Request, error: Exception) -> Response:
        LOGGER.error("a bug of ours at %r", request.url.path, exc_info=error)
        return problem(request, 500, "a bug of ours; the log has the details")

    async def nowhere(request: Request, error: Exception) -> Response:
        return problem(request, 404, "there is nothing at this path; see /openapi.json")

    def problem(request: Request, status: int, detail: str) -> Response:
        answer = http.problem(status, detail)
        answer = ard.in_its_shape(answer) if ard.serves(request.url.path) else answer
        return Response(answer.body, answer.status, dict(answer.headers))

    routes = [
        Route("/", lambda request: RedirectResponse("/docs")),
        Route("/docs", lambda request: FileResponse(_PAGES / "docs.html")),
        Mount("/docs/assets", StaticFiles(directory=_swagger_ui())),
        Mount("/static", StaticFiles(directory=_PAGES)),
        Route("/{path:path}", api, methods=["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
    ]
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: nowhere, Exception: bug})


def _swagger_ui() -> Path:
    """The folder of Swagger UI's files; the package carries nothing else that is used."""
    files = distribution("drf-spectacular-sidecar")
    return Path(str(files.locate_file("drf_spectacular_sidecar/static/drf_spectacular_sidecar/swagger-ui-dist")))


def _raw_path(request: Request) -> str:
    raw: bytes = request.scope.get("raw_path") or request.url.path.encode()
    return raw.decode("latin-1")


async def _body(request: Request) -> bytes:
    """The body; of an overlong one only so much that the handler can refuse it, but all of it is taken off the wire."""
    read = bytearray()
    async for chunk in request.stream():
        read += chunk[: _LONGEST_BODY - len(read)]
    return bytes(read)
