"""API Gateway event -> use case -> response."""

import json
import os
from collections.abc import Callable
from functools import cache
from typing import Any

from mats import bootstrap
from mats.bootstrap import Discovery
from mats.domain.capability import Id
from mats.domain.errors import CapabilityError, DependencyFailed
from mats.domain.query import Filter, Query
from mats.edge import http, log, metrics, openapi
from mats.edge.answer import Answer, Capability, Health
from mats.settings import deployed, on_lambda

_CAPABILITIES = "/capabilities/"


def handle(event: http.Event, context: object) -> dict[str, Any]:
    """What AWS calls."""
    return respond(event, _discovery()).to_proxy()


def respond(event: http.Event, discovery: Discovery) -> http.Response:
    """The response to one request."""
    try:
        return _routed(event, discovery)
    except CapabilityError as error:
        response = http.failed(error, discreet=discovery.discreet)
        if response.status >= 500:
            discovery.metrics(metrics.FAILED)
            log.LOGGER.error("no answer at %s: %s", http.path_of(event), error)
        return response


def _routed(event: http.Event, discovery: Discovery) -> http.Response:
    path = http.path_of(event)
    method, answer = _routes(event, path, discovery)
    if answer is None:
        return http.problem(404, f"there is nothing at {path[:200]}; see /openapi.json")
    if event.get("httpMethod") != method:
        return http.problem(405, f"use {method}", headers={"Allow": method})
    return answer()


def _routes(event: http.Event, path: str, discovery: Discovery) -> tuple[str, Callable[[], http.Response] | None]:
    """The method a path wants and what answers it."""
    match path:
        case "/discover":
            return "POST", lambda: _discovered(event, discovery)
        case "/healthz":
            return "GET", lambda: http.ok(_health(discovery))
        case "/openapi.json":
            return "GET", _described
        case _ if path.startswith(_CAPABILITIES):
            id = Id(path.removeprefix(_CAPABILITIES))
            return "GET", lambda: http.ok(Capability.of(discovery.look_up(id, _audiences(event, discovery))))
    return "", None


def _described() -> http.Response:
    return http.Response(200, json.dumps(openapi.document()), {"Content-Type": "application/json"})


def _discovered(event: http.Event, discovery: Discovery) -> http.Response:
    query = Query.parse(http.body_of(event))
    try:
        audiences, unknown = _audiences(event, discovery), ""
    except DependencyFailed as error:
        audiences, unknown = frozenset[str](), f"audiences: {error}"  # what everyone may see is still to be had
    shortlist = discovery.discover(query, audiences)
    if unknown:
        shortlist = shortlist.without("audiences", unknown)
    log.decided(shortlist, audiences, spell_out=discovery.log_queries)
    discovery.metrics(metrics.of_answer(shortlist))
    return http.ok(Answer.of(shortlist))


def _audiences(event: http.Event, discovery: Discovery) -> frozenset[str]:
    """The audiences of the caller: those that an authorizer vouches for, and those of the role that signed.

    Raises:
        DependencyFailed: who may see what cannot be looked up now.
    """
    caller = http.caller_of(event)
    known = discovery.callers(caller) if discovery.callers and caller else frozenset[str]()
    return http.audiences_of(event) | known


def _health(discovery: Discovery) -> Health:
    discover = discovery.discover
    discover.index.lexical(["health"], Filter(), depth=1)  # raises if the index does not answer
    return Health(
        status="ok",
        index=discover.index.name,
        encoder=discover.encoder.name if discover.encoder else None,
        reranker=discover.reranker.name if discover.reranker else None,
    )


@cache
def _discovery() -> Discovery:
    """Wired once per execution environment."""
    return bootstrap.discovery(deployed(os.environ))


if on_lambda(os.environ):
    _discovery()  # in the time that Lambda gives for it, and once for all with SnapStart
