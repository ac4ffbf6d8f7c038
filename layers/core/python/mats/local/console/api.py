"""The registry over HTTP, for the console: requests in, JSON out."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import anyio.to_thread
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mats.domain.capability import Id
from mats.domain.errors import CapabilityError, KindConflict
from mats.domain.registration import MAX_ITEM_BYTES
from mats.edge import http
from mats.local.asgi import METHODS, raw_path, read_body
from mats.local.console.asked import decoded, nothing, wanted
from mats.local.console.conditions import condition
from mats.local.console.desk import Desk, Overtaken
from mats.local.console.guard import refusal

MAX_BODY_BYTES = 3 * MAX_ITEM_BYTES
"""A registration may be written at length: indented, or with every character escaped."""
_LONGEST_BODY = MAX_BODY_BYTES + 1
_CAPABILITIES = "/registry/capabilities/"
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_PREVIEWS = 2
"""Worked on at the same time; the others wait, and searches do not suffer."""


class Asked(NamedTuple):
    """A request, let in."""

    path: str
    query: bytes
    headers: Headers
    body: bytes

    @property
    def id(self) -> Id:
        """The id that the path ends with."""
        return Id(decoded(self.path.removeprefix(_CAPABILITIES).encode("latin-1"), "id"))

    @property
    def item(self) -> Any:
        """The item that was sent."""
        return http.parse_json(self.body, MAX_BODY_BYTES)

    @property
    def condition(self) -> Callable[[str | None], bool]:
        """Under which condition it is to be written."""
        return condition(self.headers.get("if-match"), self.headers.get("if-none-match"))


Handler = Callable[[Asked], dict[str, Any]]


class _Anything(StringConvertor):
    """The rest of a path, line breaks and all: whatever is registered can be looked at."""

    regex = "(?s:.+)"


register_url_convertor("anything", _Anything())


def routes(desk: Desk) -> list[BaseRoute]:
    """Where the registry is served."""
    previews = anyio.CapacityLimiter(_PREVIEWS)
    return [
        _route("/registry", {"GET": _unasked(desk.overview)}),
        _route("/registry/capabilities", {"GET": lambda asked: desk.page(wanted(asked.query))}),
        _route("/registry/exposure", {"GET": _unasked(desk.exposure)}),
        _route("/registry/check", {"POST": lambda asked: desk.check(asked.item)}),
        _route("/registry/preview", {"POST": lambda asked: desk.preview(asked.item)}, previews),
        _route(
            _CAPABILITIES + "{id:anything}",
            {
                "GET": lambda asked: desk.one(asked.id),
                "PUT": lambda asked: desk.put(asked.id, asked.item, asked.condition),
                "DELETE": lambda asked: desk.remove(asked.id, asked.condition),
            },
        ),
        _route("/registry/{rest:anything}", {}),
    ]


def _unasked(answer: Callable[[], dict[str, Any]]) -> Handler:
    """A handler that needs to know nothing."""

    def handle(asked: Asked) -> dict[str, Any]:
        nothing(asked.query)
        return answer()

    return handle


def _route(path: str, handlers: Mapping[str, Handler], limiter: anyio.CapacityLimiter | None = None) -> Route:
    async def endpoint(request: Request) -> Response:
        try:
            sent = await read_body(request, _LONGEST_BODY)
        except ClientDisconnect:
            return Response(status_code=400)
        refused = refusal(request.method, request.url.scheme, request.headers)
        if refused is None:
            asked = Asked(raw_path(request), request.scope["query_string"], request.headers, sent)
            handler = handlers.get("GET" if request.method == "HEAD" else request.method)
            if handler is not None:
                return await anyio.to_thread.run_sync(partial(_answered, handler, asked), limiter=limiter)
            refused = _no_such(handlers)
        return _response(refused)

    return Route(path, endpoint, methods=METHODS)


def _no_such(handlers: Mapping[str, Handler]) -> http.Response:
    if not handlers:
        return http.problem(404, "there is nothing at this path of the registry")
    allowed = ", ".join(handlers)
    return http.problem(405, f"use {allowed}", headers={"Allow": allowed})


def _answered(handler: Handler, asked: Asked) -> Response:
    try:
        return Response(_json(handler(asked)), headers={**_HEADERS, "Content-Type": "application/json"})
    except Overtaken as error:
        return _response(http.problem(412, str(error)))
    except KindConflict as error:
        return _response(http.problem(409, str(error), error.faults))
    except CapabilityError as error:
        return _response(http.error_response(error))


def _json(value: dict[str, Any]) -> str:
    """The JSON of an answer, in ASCII: so it can repeat even halves of characters."""
    return json.dumps(value, allow_nan=False)


def _response(answer: http.Response) -> Response:
    return Response(answer.body, answer.status, {**_HEADERS, **answer.headers})
