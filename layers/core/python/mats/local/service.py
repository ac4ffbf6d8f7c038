"""The HTTP service: API, console, metrics and pages, with their threads."""

import json
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import anyio.to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mats.bootstrap.local import LocalSystem, open_metrics
from mats.edge import http, openapi
from mats.edge.http import Caller, local_caller
from mats.edge.route import TokenScope
from mats.edge.routes import ROUTES, respond
from mats.local.access import (
    METHODS,
    THIS_MACHINE,
    Access,
    TokenGuard,
    header_fields,
    origin_problem,
    place_at,
    raw_path,
    read_body,
    to_starlette,
    token_of,
)
from mats.local.console import api
from mats.local.console.capability_list import RefreshThread
from mats.local.console.registry_service import RegistryService
from mats.local.console.selection import WAITING, ListRow
from mats.local.places import OPEN, FindPlace
from mats.local.worker import EnrichmentWorker
from mats.ports import Clock, Ids, Observer, RequestHandled, ServiceState
from mats.resources import swagger_ui
from mats.usecases.models import RecentVectors

OTHER = "other"  # The route of a path that is nobody's, and the method that is no method
REQUEST_ID = "x-request-id"
_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_SCOPE = "mats.request_id"


class ObservedRequests:
    """ASGI middleware, the outermost: tells an observer of every request that is answered."""

    def __init__(self, app: ASGIApp, observe: Observer, clock: Clock, ids: Ids) -> None:
        self._app, self._observe, self._clock, self._ids = app, observe, clock, ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = self._clock.elapsed_ms(), 500
        given = Headers(scope=scope).get(REQUEST_ID, "")  # the caller's own id counts if it is a plain word
        request_id = scope[_SCOPE] = given if _ID.fullmatch(given) else self._ids()

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                answered = MutableHeaders(scope=message)
                answered[REQUEST_ID] = request_id
                answered.setdefault("X-Content-Type-Options", "nosniff")
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            method = scope["method"]
            self._observe(
                RequestHandled(
                    method=method if method in METHODS else OTHER,
                    route=place.template if (place := place_at(scope)) else OTHER,
                    status=status,
                    took_ms=self._clock.elapsed_ms() - began,
                    request_id=request_id,
                )
            )


_THREADS = 256  # Concurrent requests; each mostly waits for a model
_MAX_BODY_BYTES = 4 * http.MAX_BODY_BYTES
"""Bytes of a body that are read into memory; far above the limit of any endpoint."""

_MCP = "/mcp"  # MCP has an origin check of its own, which admits pages of other programs on this machine

_PAGES = Path(__file__).parent / "static"
_DOCS_POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'"
"""Swagger UI styles elements, and has icons in its style sheet."""

LOGGER = logging.getLogger("mats.service")


def application(
    local: LocalSystem, access: Access = THIS_MACHINE, after_listing: Callable[[], None] = lambda: None
) -> Starlette:
    """The service; `after_listing` is called once, when the console's list is complete."""
    caller, registry = local_caller(local.settings), RegistryService(local)
    metrics = open_metrics(partial(read_state, local, registry))

    @asynccontextmanager
    async def lifespan(starlette: Starlette) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS
        local.observers.append(metrics)
        worker, refresh = EnrichmentWorker(local), RefreshThread(registry.capabilities.refresh, after_listing)
        worker.start()
        refresh.start()
        starlette.state.refresh = refresh
        yield
        refresh.stop()
        worker.stop()
        local.observers.remove(metrics)

    routes = [
        *api.file_routes(),
        *api.routes(registry, access),
        _metrics_route(metrics.render, access),
        Route(
            "/docs",
            lambda request: FileResponse(_PAGES / "docs.html", headers={"Content-Security-Policy": _DOCS_POLICY}),
        ),
        Mount("/docs/assets", StaticFiles(directory=swagger_ui())),
        Mount("/static", StaticFiles(directory=_PAGES)),
        Route("/{path:path}", _endpoint(local, caller, access), methods=METHODS),
    ]
    observed = Middleware(ObservedRequests, observe=local.observe, clock=local.clock, ids=local.discover.ids)
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[observed, Middleware(FindPlace), Middleware(TokenGuard, access=access)],
        exception_handlers={
            404: _not_found,
            405: _wrong_method,
            ClientDisconnect: _client_disconnected,
            Exception: _internal_error,
        },
    )


@cache
def _openapi() -> http.Response:
    document = json.dumps(openapi.document((*ROUTES, *api.ROUTES), open_paths=OPEN))
    return http.Response(200, document, {"Content-Type": "application/json"})


def _endpoint(local: LocalSystem, caller: Caller, access: Access) -> Callable[[Request], Awaitable[Response]]:
    """The handler of every path of the API."""
    app = local.application

    async def answer(request: Request) -> Response:
        body = await read_body(request, _MAX_BODY_BYTES)
        token = token_of(request.scope)
        headers = header_fields(request.headers)
        named: dict[str, Any] = {}  # What a token changes of the user of this machine
        if token:
            named = {"sees_internal_errors": token.scope is TokenScope.OPERATE, "subject": token.caller}
        hosts = request.headers.getlist("host")
        if request.url.path == _MCP and not access.is_shared and (len(hosts) != 1 or not access.knows(hosts[0])):
            return to_starlette(request.scope, http.problem(403, "unknown host: use 127.0.0.1 or localhost"))
        if access.is_shared or request.url.path != _MCP:
            if refused := origin_problem(request.url.scheme, request.headers, access):
                return to_starlette(request.scope, refused)
            headers.pop("origin", None)
        parsed = http.Request(
            method="GET" if request.method == "HEAD" else request.method,  # uvicorn drops the body of its answer
            path=raw_path(request),
            query=parse_qs(request.url.query, keep_blank_values=True),
            headers=headers,
            body=body,
            caller=replace(caller, request_id=request.scope[_SCOPE], **named),
        )
        may_report = not token or token.scope.includes(TokenScope.REPORT)
        answering = app if may_report else replace(app, feedback=None)
        if parsed.method == "GET" and parsed.path == "/openapi.json":
            answered = _openapi()
        else:
            answered = await anyio.to_thread.run_sync(respond, answering, parsed)
        return Response(answered.body, answered.status, dict(answered.headers))

    return answer


def _metrics_route(render: Callable[[], bytes], access: Access) -> Route:
    """`GET /metrics`. Where the service has tokens, the guard asks for one of them, as for every answer."""

    async def answer(request: Request) -> Response:
        if problem := origin_problem(request.url.scheme, request.headers, access):
            return to_starlette(request.scope, problem)
        if request.method not in ("GET", "HEAD"):
            return _problem(request, 405, "use GET", {"Allow": "GET"})
        content = await anyio.to_thread.run_sync(render)
        return Response(content, headers={"Content-Type": "text/plain; version=0.0.4", "Cache-Control": "no-store"})

    return Route("/metrics", answer, methods=METHODS)


def _state(row: ListRow) -> str:
    if row.error or row.status == WAITING:
        return "rejected" if row.error else WAITING
    return "enriched" if row.enriched else "raw"


def read_state(local: LocalSystem, registry: RegistryService) -> ServiceState:
    """The state of the service, for its metrics. Raises DependencyFailed: the storage cannot be read."""
    stores, snapshot = local.stores, registry.capabilities.current()
    depth, oldest = stores.queue.depth(), stores.queue.peek(0, 1)
    encoder, now = local.discover.encoder, datetime.fromisoformat(local.clock.now())
    recent = encoder.recent.cache_info() if isinstance(encoder, RecentVectors) else None
    age = now - datetime.fromisoformat(oldest[0].time) if oldest else timedelta()
    return ServiceState(
        capabilities=Counter((row.kind or "unknown", _state(row)) for row in snapshot.rows),
        findable=snapshot.findable,
        waiting=depth.waiting,
        oldest_s=max(0.0, age.total_seconds()),
        dead=depth.dead,
        sources=Counter(
            "failed" if (run := state.run).error else "ok" if run.succeeded else "never"
            for state in stores.sources.all()
        ),
        vectors={True: recent.hits, False: recent.misses} if recent else {},
        usage=local.models.spending(),
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
    return to_starlette(request.scope, http.problem(status, detail, headers=headers))
