"""`GET /metrics`, and the state of the service that it shows."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mats.bootstrap.local import LocalSystem
from mats.domain.errors import DependencyFailed
from mats.edge import http
from mats.local.access import Access
from mats.local.asgi import METHODS, origin_problem
from mats.local.console.list_row import WAITING, ListRow
from mats.local.console.registry_service import RegistryService
from mats.ports import ServiceState, SourceState

PATH = "/metrics"


def route(render: Callable[[], tuple[bytes, str]], access: Access) -> Route:
    """The endpoint. Where the service has tokens, the guard asks for one of them, as for every answer."""

    def answer() -> Response:
        try:
            content, media_type = render()
        except DependencyFailed as error:
            return _response(http.error_response(error))
        return Response(content, headers={"Content-Type": media_type, "Cache-Control": "no-store"})

    async def metrics(request: Request) -> Response:
        if problem := origin_problem(request.url.scheme, request.headers, access):
            return _response(problem)
        if request.method not in ("GET", "HEAD"):
            return _response(http.problem(405, "use GET", headers={"Allow": "GET"}))
        return await anyio.to_thread.run_sync(answer)

    return Route(PATH, metrics, methods=METHODS)


def read_state(local: LocalSystem, registry: RegistryService) -> ServiceState:
    """The state of the service. Raises DependencyFailed: the storage cannot be read."""
    stores, snapshot = local.stores, registry.snapshot()
    depth = stores.queue.depth()
    vectors = local.discover.retrieve.vectors
    return ServiceState(
        capabilities=Counter((row.kind or "unknown", _state(row)) for row in snapshot.rows),
        findable=snapshot.findable,
        waiting=depth.waiting,
        oldest_s=_age(local),
        dead=depth.dead,
        sources=Counter(map(_sync, stores.sources.all())),
        vectors=dict(vectors.found) if vectors else {},
        usage=local.models.spending(),
    )


def _state(row: ListRow) -> str:
    if row.error:
        return "rejected"
    if row.status == WAITING:
        return WAITING
    return "enriched" if row.enriched else "raw"


def _sync(state: SourceState) -> str:
    if state.run.error:
        return "failed"
    return "ok" if state.run.succeeded else "never"


def _age(local: LocalSystem) -> float:
    """Seconds since the first waiting change was made; 0 without any."""
    first = local.stores.queue.peek(0, 1)
    if not first:
        return 0.0
    passed = datetime.fromisoformat(local.clock.now()) - datetime.fromisoformat(first[0].time)
    return max(0.0, passed.total_seconds())


def _response(answer: http.Response) -> Response:
    return Response(answer.body, answer.status, dict(answer.headers))
