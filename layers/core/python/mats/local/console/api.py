"""HTTP routes of the console: its files, and the registry as JSON."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar
from urllib.parse import unquote_to_bytes

import anyio.to_thread
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from mats.domain.capability.capability import Id
from mats.domain.capability.faults import RequestModel
from mats.domain.capability.registration import MAX_ITEM_BYTES, Registration
from mats.domain.errors import CapabilityError, Fault, RequestInvalid
from mats.edge import http
from mats.edge import route as edge
from mats.edge.route import BodySpec, TokenScope
from mats.edge.schema import Parameters, Problem
from mats.local.access import METHODS, THIS_MACHINE, Access, raw_path, read_body, registry_problem, token_of
from mats.local.console import requests
from mats.local.console.registry_service import RegistryService
from mats.local.console.selection import ListQuery
from mats.local.use import UseQuery
from mats.ports import Precondition
from mats.resources import resource

MAX_BODY_BYTES = 3 * MAX_ITEM_BYTES
"""Above the limit of an item, which may be sent indented or with every character escaped."""
CAPABILITIES = "/registry/capabilities/"  # The id of a capability follows
_CONSOLE = resource("console")
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_PREVIEWS = 2  # Concurrent previews and imports; others wait, so that searches stay fast
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


def file_routes(console: Path = _CONSOLE) -> list[BaseRoute]:
    headers = {**headers_of(console), "Cache-Control": "no-cache"}  # the browser revalidates by ETag
    files = Files(console, headers)

    async def index(request: Request) -> Response:
        return await files.get_response("index.html", request.scope)

    return [Route("/", index, methods=METHODS), Mount("/console", files)]


def headers_of(console: Path) -> dict[str, str]:
    """The headers of all files of the console, here and in AWS."""
    headers: dict[str, str] = json.loads((console / "headers.json").read_text("utf-8"))
    return headers


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

    def item(self) -> Any:
        return http.parse_json(self.body, MAX_BODY_BYTES)


_PROBLEM = BodySpec("What is wrong, and what to do.", (Problem,), "application/problem+json")
_ANSWERS = {200: BodySpec("Done."), **dict.fromkeys((401, 403, 404, 409, 412, 413, 415, 422, 503), _PROBLEM)}
Handler: TypeAlias = Callable[[RegistryService, RegistryRequest], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryRoute(edge.Route):
    """An endpoint of the registry; a path may have several. Its answer is a JSON object."""

    handler: str = ""
    tag: str = "registry"
    scope: TokenScope = TokenScope.WRITE
    responses: Mapping[int, BodySpec] = field(default_factory=lambda: _ANSWERS)
    answer: Handler
    most: int = MAX_BODY_BYTES  # Bytes of a body
    is_slow: bool = False


def _route(
    method: str,
    name: str,
    operation_id: str,
    summary: str,
    answer: Callable[..., dict[str, Any]],
    model: type[RequestModel] | None = None,
    **more: Any,
) -> RegistryRoute:
    """GET has its query parsed as the model, POST its body; without one a body is a registration, passed as it is."""
    is_query = method == "GET"

    def respond(service: RegistryService, request: RegistryRequest) -> dict[str, Any]:
        if is_query:
            parsed = parse_query(request.query, query)
            return answer(service, parsed) if model else answer(service)
        item = http.parse_json(request.body, route.most)
        return answer(service, model.parse(item) if model else item)

    query: Any = model or Parameters  # without fields: every parameter is a fault
    spec: Any = {"query": query} if is_query else {"request": BodySpec("", (model or Registration,))}
    route = RegistryRoute(
        method=method,
        path=f"/registry{name}",
        operation_id=operation_id,
        summary=summary,
        answer=respond,
        **spec,
        **more,
    )
    return route


_ID = "`namespace/name`. `If-Match` with the `etag` of GET, or `If-None-Match: *`, make a write conditional."
_PATCH = BodySpec("A JSON Merge Patch (RFC 7396).", media_type="application/merge-patch+json")
_OPERATE = TokenScope.OPERATE
_S = RegistryService
_item = partial(RegistryRoute, path=f"{CAPABILITIES}{{id+}}", path_description=_ID)
ROUTES: tuple[RegistryRoute, ...] = (
    _item(method="GET", operation_id="getRegistration", summary="Show a registration and what became of it",
          answer=lambda s, r: s.get(r.id)),
    _item(method="PUT", operation_id="putRegistration", summary="Register, or replace the whole registration",
          answer=lambda s, r: s.put(r.id, r.item(), r.precondition), request=BodySpec("", (Registration,))),
    _item(method="PATCH", operation_id="editRegistration", summary="Change a registration in part",
          answer=lambda s, r: s.patch(r.id, r.item(), r.precondition), request=_PATCH),
    _item(method="DELETE", operation_id="removeRegistration", summary="Remove a registration",
          answer=lambda s, r: s.remove(r.id, r.precondition)),
    _route("GET", "/capabilities", "listRegistrations", "List registrations", _S.page, ListQuery),
    _route("POST", "/import", "importDocuments", "Register what documents describe", _S.import_documents,
           requests.ImportRequest, most=requests.MAX_BODY_BYTES, is_slow=True),
    _route("POST", "/capabilities", "registerBatch", "Register up to 256, each by itself", _S.register_batch,
           requests.BatchRequest, most=requests.MAX_BODY_BYTES, is_slow=True),
    _route("POST", "/preview", "previewRegistration", "Show who would find it", _S.preview, is_slow=True),
    _route("GET", "/trust", "getTrust", "Show what is assigned to a target", _S.trust_of, requests.TrustQuery),
    _route("POST", "/trust", "assignTrust", "Change what is assigned to it", _S.assign, requests.TrustRequest,
           scope=_OPERATE),
    _route("GET", "/review", "listHeld", "List what waits for an operator", _S.list_held),
    _route("POST", "/review", "review", "Approve or reject it", _S.review, requests.ReviewRequest, scope=_OPERATE),
    _route("GET", "/lessons", "listLessons", "List what operators taught", _S.lessons),
    _route("POST", "/lessons", "teach", "Teach what serves a request", _S.teach, requests.LessonRequest,
           scope=_OPERATE),
    _route("GET", "", "overview", "Count capabilities and changes", _S.overview),
    _route("GET", "/use", "use", "Report what was found, and what nothing served", _S.use, UseQuery, is_slow=True),
)  # fmt: skip


class _Anything(StringConvertor):
    regex = "(?s:.+)"  # The rest of a path, slashes and line breaks included: ids may hold them


register_url_convertor("anything", _Anything())


def routes(service: RegistryService, access: Access = THIS_MACHINE) -> list[BaseRoute]:
    slow, owners = anyio.CapacityLimiter(_PREVIEWS), service.for_owners()
    at: dict[str, dict[str, RegistryRoute]] = {}
    for route in ROUTES:
        at.setdefault(route.path.replace("+}", ":anything}"), {})[route.method] = route

    def guard(path: str, methods: Mapping[str, RegistryRoute]) -> Route:
        async def endpoint(request: Request) -> Response:
            body = await read_body(request, max(route.most for route in methods.values()) + 1)
            if problem := registry_problem(request.method, request.url.scheme, request.headers, access):
                return _response(problem)
            route = methods.get("GET" if request.method == "HEAD" else request.method)
            if route is None:
                allowed = ", ".join(methods)
                return _response(http.problem(405, f"use {allowed}", headers={"Allow": allowed}))
            token = token_of(request.scope)
            asked = service if token is None or token.scope is TokenScope.OPERATE else owners
            checked = RegistryRequest(raw_path(request), request.scope["query_string"], request.headers, body)
            limiter = slow if route.is_slow else None
            return await anyio.to_thread.run_sync(_handle, route.answer, asked, checked, limiter=limiter)

        return Route(path, endpoint, methods=METHODS)

    return [guard(path, methods) for path, methods in at.items()]


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
