"""HTTP routes of the registry, for the console."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import anyio.to_thread
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import MAX_ITEM_BYTES
from mats.domain.errors import CapabilityError
from mats.edge import http
from mats.local.access import THIS_MACHINE, Access
from mats.local.asgi import METHODS, raw_path, read_body, registry_problem
from mats.local.console.actions import ActionRequest, TrustQuery, TrustRequest, parse_body
from mats.local.console.imports import MAX_BODY_BYTES as MAX_IMPORT_BYTES
from mats.local.console.imports import ImportRequest
from mats.local.console.outcomes import OutcomeQuery
from mats.local.console.parameters import (
    DemandQuery,
    NoParameters,
    parse_query,
    percent_decode,
    precondition,
)
from mats.local.console.registry_service import RegistryService
from mats.local.console.selection import ListQuery
from mats.ports import Precondition

MAX_BODY_BYTES = 3 * MAX_ITEM_BYTES
"""Above the limit of an item, which may be sent indented or with every character escaped."""
_CAPABILITIES = "/registry/capabilities/"
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_PREVIEWS = 2
"""Concurrent previews; others wait, so that searches stay fast."""


class RegistryRequest(NamedTuple):
    """A request that passed the origin check."""

    path: str
    query: bytes
    headers: Headers
    body: bytes

    @property
    def id(self) -> Id:
        return Id(percent_decode(self.path.removeprefix(_CAPABILITIES).encode("latin-1"), "id"))

    @property
    def item(self) -> Any:
        return http.parse_json(self.body, MAX_BODY_BYTES)

    @property
    def large_item(self) -> Any:
        """The body of a route with a higher limit."""
        return http.parse_json(self.body, MAX_IMPORT_BYTES)

    @property
    def precondition(self) -> Precondition:
        return precondition(self.headers.get("if-match"), self.headers.get("if-none-match"))


Handler = Callable[[RegistryRequest], dict[str, Any]]


class _Anything(StringConvertor):
    """The rest of a path, slashes and line breaks included: ids may hold them."""

    regex = "(?s:.+)"


register_url_convertor("anything", _Anything())


def routes(service: RegistryService, access: Access = THIS_MACHINE) -> list[BaseRoute]:
    previews = anyio.CapacityLimiter(_PREVIEWS)
    _route, actions = partial(_guarded_route, access), service.actions
    return [
        _route("/registry", {"GET": _without_parameters(service.overview)}),
        _route("/registry/capabilities", {"GET": lambda request: service.page(parse_query(request.query, ListQuery))}),
        _route("/registry/exposure", {"GET": _without_parameters(service.exposure)}),
        _route("/registry/sources", {"GET": _without_parameters(service.sources)}),
        _route("/registry/demand", {"GET": lambda request: service.demand(parse_query(request.query, DemandQuery))}),
        _route("/registry/home", {"GET": _without_parameters(service.home)}),
        _route(
            "/registry/outcomes", {"GET": lambda request: service.outcomes(parse_query(request.query, OutcomeQuery))}
        ),
        _route("/registry/actions", {"POST": lambda request: actions.run(parse_body(request.item, ActionRequest))}),
        _route(
            "/registry/trust",
            {
                "GET": lambda request: actions.trust_of(parse_query(request.query, TrustQuery)),
                "POST": lambda request: actions.assign(parse_body(request.item, TrustRequest)),
            },
        ),
        _route(
            "/registry/import",
            {"POST": lambda request: service.import_documents(parse_body(request.large_item, ImportRequest))},
            previews,
            MAX_IMPORT_BYTES,
        ),
        _route("/registry/check", {"POST": lambda request: service.check(request.item)}),
        _route("/registry/preview", {"POST": lambda request: service.preview(request.item)}, previews),
        _route(
            _CAPABILITIES + "{id:anything}",
            {
                "GET": lambda request: service.get(request.id),
                "PUT": lambda request: service.put(request.id, request.item, request.precondition),
                "DELETE": lambda request: service.remove(request.id, request.precondition),
            },
        ),
        _route("/registry/{rest:anything}", {}),
    ]


def _without_parameters(answer: Callable[[], dict[str, Any]]) -> Handler:
    def handle(request: RegistryRequest) -> dict[str, Any]:
        parse_query(request.query, NoParameters)
        return answer()

    return handle


def _guarded_route(
    access: Access,
    path: str,
    handlers: Mapping[str, Handler],
    limiter: anyio.CapacityLimiter | None = None,
    most: int = MAX_BODY_BYTES,
) -> Route:
    async def endpoint(request: Request) -> Response:
        body = await read_body(request, most + 1)
        if problem := registry_problem(request.method, request.url.scheme, request.headers, access):
            return _response(problem)
        handler = handlers.get("GET" if request.method == "HEAD" else request.method)
        if not handlers:
            return _response(http.problem(404, "there is nothing at this path of the registry"))
        if handler is None:
            allowed = ", ".join(handlers)
            return _response(http.problem(405, f"use {allowed}", headers={"Allow": allowed}))
        checked = RegistryRequest(raw_path(request), request.scope["query_string"], request.headers, body)
        return await anyio.to_thread.run_sync(partial(_handle, handler, checked), limiter=limiter)

    return Route(path, endpoint, methods=METHODS)


def _handle(handler: Handler, request: RegistryRequest) -> Response:
    try:
        content = json.dumps(handler(request), allow_nan=False)  # ASCII, which can hold lone surrogates, too
        return Response(content, headers={**_HEADERS, "Content-Type": "application/json"})
    except CapabilityError as error:
        return _response(http.error_response(error))


def _response(answer: http.Response) -> Response:
    return Response(answer.body, answer.status, {**_HEADERS, **answer.headers})
