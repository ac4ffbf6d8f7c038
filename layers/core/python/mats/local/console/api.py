"""HTTP routes of the console: its files, and the registry as JSON."""

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

import anyio.to_thread
from pydantic import Field
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from mats.domain.capability.capability import Id
from mats.domain.capability.faults import RequestModel
from mats.domain.capability.registration import MAX_ITEM_BYTES
from mats.domain.errors import CapabilityError, Fault, RequestInvalid
from mats.edge import http
from mats.edge.requests import Parameters
from mats.local.access import METHODS, THIS_MACHINE, Access, raw_path, read_body, registry_problem
from mats.local.console.actions import MAX_BODY_BYTES as MAX_IMPORT_BYTES
from mats.local.console.actions import (
    ActionRequest,
    ImportRequest,
    LessonRequest,
    ReviewRequest,
    SynonymRequest,
    TrustQuery,
    TrustRequest,
)
from mats.local.console.registry_service import RegistryService
from mats.local.console.selection import ListQuery
from mats.local.console.use_counts import OutcomeQuery
from mats.local.preview.mirror import MirrorQuery
from mats.ports import Precondition
from mats.resources import resource

MAX_BODY_BYTES = 3 * MAX_ITEM_BYTES
"""Above the limit of an item, which may be sent indented or with every character escaped."""
CAPABILITIES = "/registry/capabilities/"
"""The id of a capability follows."""
_CONSOLE = resource("console")
_REPORT = resource("experiments/results/report")
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_PREVIEWS = 2
"""Concurrent previews and imports; others wait, so that searches stay fast."""
_STRAY_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")

P = TypeVar("P", bound=Parameters)


class Files(StaticFiles):
    """A folder, which need not exist; every response has the headers."""

    def __init__(self, folder: Path, headers: Mapping[str, str]) -> None:
        super().__init__(directory=folder, check_dir=False)
        self._headers = headers

    async def check_config(self) -> None:
        """Does nothing: a folder that does not exist has no files."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(self._headers)
        return response


def file_routes(console: Path = _CONSOLE, report: Path = _REPORT) -> list[BaseRoute]:
    headers = {**headers_of(console), "Cache-Control": "no-cache"}  # the browser revalidates by ETag
    files = Files(console, headers)

    async def index(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    return [
        Route("/", index, methods=METHODS),
        Mount("/console", files),
        Mount("/evaluation", Files(report, headers)),
    ]


def headers_of(console: Path) -> dict[str, str]:
    """The headers of all files of the console, here and in AWS."""
    headers: dict[str, str] = json.loads((console / "headers.json").read_text("utf-8"))
    return headers


class NoParameters(Parameters):
    """Every parameter is a fault."""


class DemandQuery(Parameters):
    days: Annotated[int, Field(ge=1, le=3650)] = 30


class RegistryRequest(NamedTuple):
    """A request that passed the origin check."""

    path: str
    query: bytes
    headers: Headers
    body: bytes

    @property
    def id(self) -> Id:
        return Id(percent_decode(self.path.removeprefix(CAPABILITIES).encode("latin-1"), "id"))

    @property
    def precondition(self) -> Precondition:
        return precondition(self.headers.get("if-match"), self.headers.get("if-none-match"))

    def item(self, most: int = MAX_BODY_BYTES) -> Any:
        """The value of the body, of at most this many bytes."""
        return http.parse_json(self.body, most)


Handler = Callable[[RegistryService, RegistryRequest], dict[str, Any]]


def _with_query(answer: Callable[[RegistryService, Any], dict[str, Any]], model: type[Parameters]) -> Handler:
    return lambda service, request: answer(service, parse_query(request.query, model))


def _without_parameters(answer: Callable[[RegistryService], dict[str, Any]]) -> Handler:
    return _with_query(lambda service, _: answer(service), NoParameters)


def _with_body(
    answer: Callable[[RegistryService, Any], dict[str, Any]], model: type[RequestModel], most: int = MAX_BODY_BYTES
) -> Handler:
    return lambda service, request: answer(service, model.parse(request.item(most)))


PATHS: Mapping[str, Mapping[str, Handler]] = {
    "/registry": {"GET": _without_parameters(RegistryService.overview)},
    "/registry/capabilities": {"GET": _with_query(RegistryService.page, ListQuery)},
    "/registry/exposure": {"GET": _without_parameters(RegistryService.exposure)},
    "/registry/sources": {"GET": _without_parameters(RegistryService.sources)},
    "/registry/demand": {"GET": _with_query(lambda service, query: service.demand(query.days), DemandQuery)},
    "/registry/mirror": {"GET": _with_query(RegistryService.mirror, MirrorQuery)},
    "/registry/home": {"GET": _without_parameters(RegistryService.home)},
    "/registry/outcomes": {"GET": _with_query(RegistryService.outcomes, OutcomeQuery)},
    "/registry/actions": {"POST": _with_body(lambda service, body: service.actions.run(body), ActionRequest)},
    "/registry/trust": {
        "GET": _with_query(lambda service, query: service.actions.trust_of(query), TrustQuery),
        "POST": _with_body(lambda service, body: service.actions.assign(body), TrustRequest),
    },
    "/registry/review": {
        "GET": _without_parameters(lambda service: service.actions.list_held()),
        "POST": _with_body(lambda service, body: service.actions.review(body), ReviewRequest),
    },
    "/registry/lessons": {
        "GET": _without_parameters(lambda service: service.actions.lessons()),
        "POST": _with_body(lambda service, body: service.actions.teach(body), LessonRequest),
    },
    "/registry/synonyms": {
        "GET": _without_parameters(lambda service: service.actions.synonyms()),
        "POST": _with_body(lambda service, body: service.actions.change_synonyms(body), SynonymRequest),
    },
    "/registry/import": {"POST": _with_body(RegistryService.import_documents, ImportRequest, MAX_IMPORT_BYTES)},
    "/registry/check": {"POST": lambda service, request: service.check(request.item())},
    "/registry/preview": {"POST": lambda service, request: service.preview(request.item())},
}
"""The handler of each method at each fixed path of the registry."""
_CAPABILITY: Mapping[str, Handler] = {
    "GET": lambda service, request: service.get(request.id),
    "PUT": lambda service, request: service.put(request.id, request.item(), request.precondition),
    "PATCH": lambda service, request: service.patch(request.id, request.item(), request.precondition),
    "DELETE": lambda service, request: service.remove(request.id, request.precondition),
}


class _Anything(StringConvertor):
    """The rest of a path, slashes and line breaks included: ids may hold them."""

    regex = "(?s:.+)"


register_url_convertor("anything", _Anything())


def routes(service: RegistryService, access: Access = THIS_MACHINE) -> list[BaseRoute]:
    guarded, slow = partial(_guarded_route, service, access), anyio.CapacityLimiter(_PREVIEWS)
    limiters = dict.fromkeys(("/registry/import", "/registry/preview", "/registry/mirror"), slow)
    return [
        *(guarded(path, handlers, limiters.get(path)) for path, handlers in PATHS.items()),
        guarded(CAPABILITIES + "{id:anything}", _CAPABILITY),
        guarded("/registry/{rest:anything}", {}),
    ]


def _guarded_route(
    service: RegistryService,
    access: Access,
    path: str,
    handlers: Mapping[str, Handler],
    limiter: anyio.CapacityLimiter | None = None,
) -> Route:
    most = MAX_IMPORT_BYTES if path == "/registry/import" else MAX_BODY_BYTES

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
        return await anyio.to_thread.run_sync(_handle, handler, service, checked, limiter=limiter)

    return Route(path, endpoint, methods=METHODS)


def _handle(handler: Handler, service: RegistryService, request: RegistryRequest) -> Response:
    try:
        content = json.dumps(handler(service, request), allow_nan=False)  # ASCII, which can hold lone surrogates, too
        return Response(content, headers={**_HEADERS, "Content-Type": "application/json"})
    except CapabilityError as error:
        return _response(http.error_response(error))


def _response(answer: http.Response) -> Response:
    return Response(answer.body, answer.status, {**_HEADERS, **answer.headers})


def parse_query(query: bytes, model: type[P]) -> P:
    """Parse a query string strictly: Starlette's own parser drops invalid encodings, which are faults here."""
    values: dict[str, list[str]] = {}
    for pair in filter(None, query.split(b"&")):
        name, _, value = pair.replace(b"+", b" ").partition(b"=")
        key = percent_decode(name, "")
        values.setdefault(key, []).append(percent_decode(value, key))
    return model.of(values)


def percent_decode(text: bytes, field: str) -> str:
    """Decode percent-encoded UTF-8; a fault names the field."""
    try:
        if _STRAY_PERCENT.search(text):
            raise ValueError
        return unquote_to_bytes(text).decode()
    except ValueError as error:
        raise RequestInvalid([Fault(field, "is not percent-encoded UTF-8; write a % itself as %25")]) from error


def precondition(if_match: str | None, if_none_match: str | None) -> Precondition:
    """The precondition of `If-Match` and `If-None-Match` (RFC 9110, 13.1); None where a header is absent."""
    expected, excluded = _etags(if_match), _etags(if_none_match)

    def holds(etag: str | None) -> bool:
        if if_match is not None and (etag is None or not expected & {"*", etag}):
            return False
        return if_none_match is None or etag is None or not excluded & {"*", etag}

    return holds


def _etags(header: str | None) -> set[str]:
    """The ETags of a header, without quotes; weak ones never match ours, which are strong."""
    parts = [part.strip() for part in (header or "").split(",")]
    return {part.strip('"') for part in parts if part and not part.startswith("W/")}
