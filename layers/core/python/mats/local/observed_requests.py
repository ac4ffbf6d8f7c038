"""Requests as observers see them: each has an id, a route from a fixed list, and its time."""

import re
from collections.abc import Mapping
from functools import lru_cache

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mats.edge.routes import ROUTES
from mats.local.access import METHODS
from mats.local.console.api import CAPABILITIES, PATHS
from mats.ports import Answered, Clock, Ids, Observation, Observer, RequestHandled

OTHER = "other"
"""The route of a path that is nobody's, and the method that is no method."""
REQUEST_ID = "x-request-id"
_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_FIXED = frozenset({"/", "/metrics", "/docs", *PATHS})
_BELOW: Mapping[str, str] = {
    CAPABILITIES: f"{CAPABILITIES}{{id}}",
    "/console/": "/console/{file}",
    "/evaluation/": "/evaluation/{file}",
    "/docs/assets/": "/docs/assets/{file}",
    "/static/": "/static/{file}",
}
_SCOPE = "mats.request"


class CurrentRequest:
    """A request that is being answered: its id, and the answers it got so far."""

    def __init__(self, request_id: str) -> None:
        self.id = request_id
        self.answers: list[Answered] = []

    def keep(self, observation: Observation) -> None:
        """Keep an answer."""
        if isinstance(observation, Answered):
            self.answers.append(observation)


def current_request(scope: Scope) -> CurrentRequest:
    """The request of an ASGI scope."""
    request: CurrentRequest = scope[_SCOPE]
    return request


@lru_cache(maxsize=1_024)
def route_of(path: str) -> str:
    """The template of a percent-decoded path; `other` if it is no endpoint's."""
    if path in _FIXED:
        return path
    for prefix, template in _BELOW.items():
        if path.startswith(prefix):
            return template
    return next((route.documented_path for route in ROUTES if route.matches(path)), OTHER)


class ObservedRequests:
    """ASGI middleware, the outermost: tells an observer of every request that is answered."""

    def __init__(self, app: ASGIApp, observe: Observer, clock: Clock, ids: Ids) -> None:
        self._app, self._observe, self._clock, self._ids = app, observe, clock, ids

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, headers, status = self._clock.elapsed_ms(), Headers(scope=scope), 500
        given = headers.get(REQUEST_ID, "")  # the caller's own id of its request counts if it is a plain word
        current = scope[_SCOPE] = CurrentRequest(given if _ID.fullmatch(given) else self._ids())

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = current.id
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            method = scope["method"]
            self._observe(
                RequestHandled(
                    method=method if method in METHODS else OTHER,
                    route=route_of(scope["path"]),
                    status=status,
                    began_ms=began,
                    took_ms=self._clock.elapsed_ms() - began,
                    request_id=current.id,
                    carrier=_carrier(headers),
                    answers=current.answers,
                )
            )


def _carrier(headers: Headers) -> dict[str, str]:
    """The valid headers of a trace context."""
    parent = headers.get("traceparent", "")
    if not _TRACEPARENT.fullmatch(parent):
        return {}
    state = headers.get("tracestate")
    return {"traceparent": parent, **({"tracestate": state} if state else {})}
