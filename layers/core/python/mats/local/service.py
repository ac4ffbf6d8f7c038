"""The HTTP service on loopback."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from mats.bootstrap.local import LocalSystem
from mats.edge import http
from mats.edge.caller import local_caller
from mats.edge.dispatch import respond, with_error_format
from mats.local.asgi import METHODS, origin_problem, raw_path, read_body
from mats.local.console import api, files
from mats.local.console.capability_list import RefreshThread
from mats.local.console.registry_service import RegistryService
from mats.local.worker import EnrichmentWorker
from mats.resources import swagger_ui

_THREADS = 256
"""Concurrent requests; each mostly waits for a model."""
_MAX_BODY_BYTES = 4 * http.MAX_BODY_BYTES
"""Bytes of a body that are read into memory; far above the limit of any endpoint."""

_MCP = "/mcp"
"""MCP has an origin check of its own, which admits pages of other programs on this machine."""

_PAGES = Path(__file__).parent / "static"

LOGGER = logging.getLogger("mats.service")


def application(local: LocalSystem) -> Starlette:
    app = replace(local.application, record_exposure=local.stores.exposure.record)
    caller, registry = local_caller(local.settings), RegistryService(local)

    @asynccontextmanager
    async def lifespan(starlette: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        worker, refresh = EnrichmentWorker(local), RefreshThread(registry.refresh)
        worker.start()
        refresh.start()
        starlette.state.refresh = refresh
        yield
        refresh.stop()
        worker.stop()

    async def public(request: Request) -> Response:
        body = await read_body(request, _MAX_BODY_BYTES)
        if request.url.path != _MCP and (refused := origin_problem(request.url.scheme, request.headers)):
            return _to_starlette(request, refused)
        parsed = http.Request(
            method=request.method,
            path=raw_path(request),
            query=parse_qs(request.url.query, keep_blank_values=True),
            headers=dict(request.headers),
            body=body,
            caller=caller,
        )
        answer = await anyio.to_thread.run_sync(respond, app, parsed)
        return Response(answer.body, answer.status, dict(answer.headers))

    routes = [
        *files.routes(),
        *api.routes(registry),
        Route("/docs", lambda request: FileResponse(_PAGES / "docs.html")),
        Mount("/docs/assets", StaticFiles(directory=swagger_ui())),
        Mount("/static", StaticFiles(directory=_PAGES)),
        Route("/{path:path}", public, methods=METHODS),
    ]
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={
            404: _not_found,
            405: _wrong_method,
            ClientDisconnect: _client_disconnected,
            Exception: _internal_error,
        },
    )


async def _client_disconnected(request: Request, error: Exception) -> Response:
    return Response(status_code=400)


async def _internal_error(request: Request, error: Exception) -> Response:
    LOGGER.error("internal error at %r", request.url.path, exc_info=error)
    return _problem(request, 500, "internal error; the log has the details")


async def _not_found(request: Request, error: Exception) -> Response:
    return _problem(request, 404, "there is nothing at this path; see /openapi.json")


async def _wrong_method(request: Request, error: Exception) -> Response:
    allowed = (getattr(error, "headers", None) or {}).get("Allow", "GET, HEAD")
    return _problem(request, 405, f"use {allowed}", {"Allow": allowed})


def _problem(request: Request, status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    return _to_starlette(request, http.problem(status, detail, headers=headers))


def _to_starlette(request: Request, answer: http.Response) -> Response:
    formatted = with_error_format(request.url.path, answer)
    return Response(formatted.body, formatted.status, dict(formatted.headers))
