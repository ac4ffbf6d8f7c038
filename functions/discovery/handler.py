"""API Gateway event -> use case -> response."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from mats import bootstrap
from mats.bootstrap import Discovery
from mats.domain.capability import Id
from mats.domain.errors import CapabilityError, DependencyFailed
from mats.domain.profile import Profile
from mats.domain.query import ANYWHERE, Filter, Query, Scope
from mats.domain.shortlist import Shortlist
from mats.edge import ard, http, log, metrics
from mats.edge.answer import Answer, Capability, Health
from mats.edge.request import DiscoverRequest
from mats.settings import deployed, on_lambda

if TYPE_CHECKING:
    from mats.edge.mcp_tools import Asking


def handle(event: http.Event, context: object) -> dict[str, Any]:
    """What AWS calls."""
    return respond(event, _discovery()).to_proxy()


def respond(event: http.Event, discovery: Discovery) -> http.Response:
    """The response to one request."""
    response = _responded(event, discovery)
    return ard.in_its_shape(response) if ard.serves(http.path_of(event)) else response


def _responded(event: http.Event, discovery: Discovery) -> http.Response:
    try:
        return _routed(event, discovery)
    except CapabilityError as error:
        return _failed(error, event, discovery)


def _failed(error: CapabilityError, event: http.Event, discovery: Discovery) -> http.Response:
    """The problem it is to the caller; the operator hears what is not the caller's own."""
    response = http.failed(error, discreet=discovery.discreet)
    if response.status >= 500:
        discovery.metrics(metrics.FAILED)
        log.LOGGER.error("no answer at %r: %s", http.path_of(event), error)
    return response


def _routed(event: http.Event, discovery: Discovery) -> http.Response:
    path = http.path_of(event)
    route = _EXACTLY.get(path) or next((route for prefix, route in _BELOW.items() if path.startswith(prefix)), None)
    if route is None:
        return http.problem(404, f"there is nothing at {path[:200]}; see /openapi.json")
    if event.get("httpMethod") != route.method:
        return http.problem(405, f"use {route.method}", headers={"Allow": route.method})
    return route.answer(event, discovery)


def _described(event: http.Event, discovery: Discovery) -> http.Response:
    from mats.edge import openapi  # noqa: PLC0415 - for those who read it

    return http.Response(200, json.dumps(openapi.document()), {"Content-Type": "application/json"})


def _discovered(event: http.Event, discovery: Discovery) -> http.Response:
    wish = DiscoverRequest.of(http.body_of(event), http.parameters_of(event))
    shortlist = shortlist_for(event, discovery, wish)
    if wish.format is None:
        return http.ok(Answer.of(shortlist))
    from mats.edge.formats import ReadyMade  # noqa: PLC0415 - for those who want tools

    return http.ok(ReadyMade.of(shortlist, wish.format, wish.token_budget))


def _spoken_to(event: http.Event, discovery: Discovery) -> http.Response:
    from mats.edge import mcp_http  # noqa: PLC0415 - for those who speak MCP

    return mcp_http.respond(event, asking(event, discovery))


def _shown(event: http.Event, discovery: Discovery) -> http.Response:
    id = Id(http.path_of(event).removeprefix(_CAPABILITIES))
    return http.ok(Capability.of(profile_for(event, discovery, id)))


def _healthy(event: http.Event, discovery: Discovery) -> http.Response:
    discover = discovery.discover
    discover.retrieve.index.lexical(["health"], Filter(), depth=1)  # raises if the index does not answer
    return http.ok(
        Health(
            status="ok",
            index=discover.retrieve.index.name,
            encoder=discover.retrieve.encoder.name if discover.retrieve.encoder else None,
            reranker=discover.rerank.reranker.name if discover.rerank.reranker else None,
            weights=dict(discover.weights),
        )
    )


def _of_ard(endpoint: str) -> Callable[[http.Event, Discovery], http.Response]:
    """An endpoint of Agentic Resource Discovery, over what this caller may see."""

    def answered(event: http.Event, discovery: Discovery) -> http.Response:
        from mats.edge import ard_service  # noqa: PLC0415 - models that only its callers need

        registry = ard_service.Registry(
            search=lambda query, scope: shortlist_for(event, discovery, query, scope),
            look_up=lambda id: profile_for(event, discovery, id),
            browse=lambda admitted, wanted, after, limit: discovery.browse(
                replace(admitted, audiences=_audiences(event, discovery)), wanted, after=after, limit=limit
            ),
        )
        return ard_service.ENDPOINTS[endpoint](event, registry)

    return answered


@dataclass(frozen=True, slots=True)
class _Route:
    """The method a path wants, and what answers it."""

    method: str
    answer: Callable[[http.Event, Discovery], http.Response]


_CAPABILITIES = "/capabilities/"
_EXACTLY: Mapping[str, _Route] = {
    "/discover": _Route("POST", _discovered),
    "/healthz": _Route("GET", _healthy),
    "/mcp": _Route("POST", _spoken_to),
    "/openapi.json": _Route("GET", _described),
    **{path: _Route(method, _of_ard(path)) for path, method in ard.PATHS.items()},
}
_BELOW: Mapping[str, _Route] = {
    _CAPABILITIES: _Route("GET", _shown),
    ard.AGENT: _Route("GET", _of_ard(ard.AGENT)),
}
"""What follows these is an id, which may hold slashes."""


def shortlist_for(event: http.Event, discovery: Discovery, query: Query, scope: Scope = ANYWHERE) -> Shortlist:
    """What the caller of this request gets for a query, logged and measured; every face of discovery asks here.

    Raises:
        RequestInvalid: more is asked for than there are candidates.
        DependencyFailed: retrieval cannot be done now.
    """
    try:
        audiences, unknown = _audiences(event, discovery), ""
    except DependencyFailed as error:
        audiences, unknown = frozenset[str](), f"audiences: {error}"  # what everyone may see is still to be had
    shortlist = discovery.discover(query, audiences, scope)
    if unknown:
        shortlist = shortlist.without("audiences", unknown)
    log.decided(shortlist, audiences, spell_out=discovery.log_queries, scope=scope)
    discovery.metrics(metrics.of_answer(shortlist))
    return shortlist


def profile_for(event: http.Event, discovery: Discovery, id: Id) -> Profile:
    """The profile of a capability, if the caller of this request may see it.

    Raises:
        CapabilityNotFound: there is none, or not for this caller.
        DependencyFailed: the index did not answer, or who may see what cannot be looked up.
    """
    return discovery.look_up(id, _audiences(event, discovery))


def _audiences(event: http.Event, discovery: Discovery) -> frozenset[str]:
    """The audiences of the caller: those that an authorizer vouches for, and those of the role that signed.

    Raises:
        DependencyFailed: who may see what cannot be looked up now.
    """
    caller = http.caller_of(event)
    known = discovery.callers(caller) if discovery.callers and caller else frozenset[str]()
    return http.audiences_of(event) | known


def asking(event: http.Event, discovery: Discovery) -> "Asking":
    """What the caller of this request may ask over MCP, whatever carries it."""
    from mats.edge.mcp_tools import Asking  # noqa: PLC0415 - for those who speak MCP

    return Asking(
        search=lambda query: shortlist_for(event, discovery, query),
        look_up=lambda id: profile_for(event, discovery, id),
        failed=lambda error: str(json.loads(_failed(error, event, discovery).body)["detail"]),
    )


@cache
def _discovery() -> Discovery:
    """Wired once per execution environment."""
    return bootstrap.discovery(deployed(os.environ))


if on_lambda(os.environ):
    _discovery()  # in the time that Lambda gives for it, and once for all with SnapStart
