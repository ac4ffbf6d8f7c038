"""The endpoints of Agentic Resource Discovery (v0.91): docs/ard.md says how the specification is read."""

import hashlib
import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import unquote

from pydantic import BaseModel

from mats.domain.capability import Id
from mats.domain.errors import CapabilityNotFound, Fault, RequestInvalid
from mats.domain.profile import Profile
from mats.domain.query import Filter, Query, Scope
from mats.domain.shortlist import Shortlist
from mats.edge import ard_tokens as tokens
from mats.edge import http
from mats.edge.ard import AGENT
from mats.edge.ard_entry import (
    REGISTRY,
    ArdEntry,
    ArdList,
    ArdManifest,
    ArdResult,
    ArdSearchAnswer,
    relevance,
)
from mats.edge.ard_names import named
from mats.edge.ard_request import ArdSearch, Listing, wanted_by
from mats.usecases.browse import Page

_PRIVATE = "private, max-age=60"
"""An answer is for its caller alone."""
_PUBLIC = "public, max-age=3600"
_MOST_BYTES = 4_000_000
"""Of one page; Lambda answers with at most 6 MB."""
_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Registry:
    """What the endpoints ask, each for the caller of one request."""

    search: Callable[[Query, Scope], Shortlist]
    look_up: Callable[[Id], Profile]
    browse: Callable[[Filter, Callable[[Profile], bool], Id | None, int], Page]


def search(event: http.Event, registry: Registry) -> http.Response:
    """`POST /search`: what is relevant, most relevant first."""
    asked = ArdSearch.parse(http.body_of(event))
    wanted = wanted_by(asked.query)
    same = json.dumps([asked.query.text, asked.query.filter])
    begin = tokens.offset(asked.page_token, same) if asked.page_token else 0
    results = () if wanted.nothing else registry.search(wanted.asking(asked.query.text), wanted.scope).results
    found = sorted((r for r in results if wanted.admits(r.candidate.profile)), key=relevance, reverse=True)
    end = begin + asked.page_size
    base = base_of(event)
    answer = ArdSearchAnswer(
        results=[ArdResult.found(result, base) for result in found[begin:end]],
        referrals=[] if asked.federation == "referrals" else None,
        page_token=tokens.written(end, same) if end < len(found) else None,
    )
    return http.Response(200, _json(answer), {"Content-Type": "application/json"})


def listed(event: http.Event, registry: Registry) -> http.Response:
    """`GET /agents`: everything, in order of id."""
    asked = Listing.parse(http.parameters_of(event))
    after = Id(tokens.place(asked.page_token, asked.filter)) if asked.page_token else None
    wanted, base = asked.wanted, base_of(event)
    if wanted.nothing:
        return _cached(event, ArdList(items=[]), _PRIVATE)
    page = registry.browse(Filter(kinds=wanted.kinds, scope=wanted.scope), wanted.admits, after, asked.page_size)
    items: list[ArdEntry] = []
    following, size = page.following, 0
    for profile in page.profiles:
        entry = ArdEntry.of(profile, base)
        size += len(_json(entry).encode())
        if items and size > _MOST_BYTES:
            following = page.profiles[len(items) - 1].id
            break
        items.append(entry)
    token = None if following is None else tokens.written(following, asked.filter)
    return _cached(event, ArdList(items=items, page_token=token), _PRIVATE)


def shown(event: http.Event, registry: Registry) -> http.Response:
    """`GET /agents/{identifier}`: one entry, by its exact identifier."""
    identifier = _identifier(event)
    meant = named(identifier)
    if meant is None:
        raise CapabilityNotFound(identifier)
    try:
        profile = registry.look_up(meant.id)
    except CapabilityNotFound as error:
        raise CapabilityNotFound(identifier) from error
    if profile.kind is not meant.kind:
        raise CapabilityNotFound(identifier)
    return _cached(event, ArdEntry.of(profile, base_of(event)), _PRIVATE)


def well_known(event: http.Event, registry: Registry) -> http.Response:
    """`GET /.well-known/ard.json`: where this registry is."""
    base = base_of(event)
    entry = ArdEntry(
        identifier=f"urn:air:{_publisher(base)}:registry:mats",
        display_name="mats",
        type=REGISTRY,
        url=base,
        description="Finds the model, agent, tool or skill for a request, and invokes nothing.",
        representative_queries=[
            "which tool can do this step of my task?",
            "find an agent that takes over a whole request",
            "is there a model or a skill for this kind of work?",
        ],
    )
    return _cached(event, ArdManifest(entries=[entry]), _PUBLIC)


def explored(event: http.Event, registry: Registry) -> http.Response:
    """`POST /explore`: optional, and not here."""
    return http.problem(501, "exploring is optional, and this registry has it not; use /search or /agents")


ENDPOINTS: Mapping[str, Callable[[http.Event, Registry], http.Response]] = {
    "/search": search, "/explore": explored, "/agents": listed, AGENT: shown, "/.well-known/ard.json": well_known,
}  # fmt: skip


def base_of(event: http.Event) -> str:
    """The address of this registry as its caller knows it, with a slash at the end.

    API Gateway says its host and what comes before the path. Elsewhere it is the Host header's, which only its own
    sender gets to see.
    """
    context = event.get("requestContext") or {}
    path, full = str(event.get("path") or "/"), str(context.get("path") or "")
    before = full.removesuffix(path) if full.endswith(path) else ""
    if context.get("domainName"):
        return f"https://{context['domainName']}{before}/"
    host = http.header_of(event, "Host") or ""
    scheme = "https" if http.header_of(event, "X-Forwarded-Proto") == "https" else "http"
    return f"{scheme}://{host if _HOST.fullmatch(host) else 'localhost'}{before}/"


def _publisher(base: str) -> str:
    """The host of an address, if it is a fully qualified name; else one that is reserved."""
    host = base.partition("://")[2].partition("/")[0].rpartition("@")[2].lower()
    name = host.partition(":")[0].rstrip(".")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        if "." in name and not host.startswith("["):
            return name
    return "mats.localhost"


def _identifier(event: http.Event) -> str:
    """The identifier in the path, decoded exactly once."""
    raw = str(event.get("path"))
    written = raw.removeprefix(AGENT) if raw.startswith(AGENT) else ""
    if _BROKEN_ESCAPE.search(written):
        _unreadable()
    try:
        return unquote(written, errors="strict")
    except UnicodeDecodeError:
        _unreadable()


def _unreadable() -> NoReturn:
    raise RequestInvalid([Fault("identifier", "is not percent-encoded UTF-8")])


def _cached(event: http.Event, answer: BaseModel, control: str) -> http.Response:
    """The answer; or that the one the caller has is still good."""
    body = _json(answer)
    tag = f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"'
    headers = {"Cache-Control": control, "ETag": tag}
    known = [one.strip().removeprefix("W/") for one in (http.header_of(event, "If-None-Match") or "").split(",")]
    if tag in known or "*" in known:
        return http.Response(304, "", headers)
    return http.Response(200, body, {"Content-Type": "application/json", **headers})


def _json(answer: BaseModel) -> str:
    return answer.model_dump_json(by_alias=True, exclude_none=True)
