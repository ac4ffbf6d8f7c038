"""The endpoints of Agentic Resource Discovery (v0.91): docs/ard.md says how the specification is read."""

import hashlib
import ipaddress
import json
import re
from typing import NoReturn
from urllib.parse import unquote

from pydantic import BaseModel

from mats.domain.capability import Id
from mats.domain.errors import CapabilityNotFound, Fault, RequestInvalid
from mats.domain.query import Filter
from mats.domain.shortlist import Result
from mats.edge.app import Application
from mats.edge.ard import page_tokens
from mats.edge.ard.entries import (
    REGISTRY,
    ArdEntry,
    ArdList,
    ArdManifest,
    ArdResult,
    ArdSearchAnswer,
    relevance,
)
from mats.edge.ard.identifiers import named
from mats.edge.ard.requests import ArdSearch, Listing, wanted_by
from mats.edge.http import Request, Response, problem

_ENTRY = "/agents/"
_PRIVATE = "private, max-age=60"
"""An answer is for its caller alone."""
_PUBLIC = "public, max-age=3600"
_MOST_BYTES = 4_000_000
"""Of one page; Lambda answers with at most 6 MB."""
_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def search(application: Application, request: Request) -> Response:
    """`POST /search`: what is relevant, most relevant first."""
    asked = ArdSearch.parse(request.json())
    wanted = wanted_by(asked.query)
    same = json.dumps([asked.query.text, asked.query.filter])
    begin = page_tokens.offset(asked.page_token, same) if asked.page_token else 0
    found: list[Result] = []
    if not wanted.nothing:
        shortlist = application.search(request.caller, wanted.asking(asked.query.text), wanted.scope)
        found = [result for result in shortlist.results if wanted.admits(result.candidate.profile)]
    found.sort(key=relevance, reverse=True)
    end = begin + asked.page_size
    base = base_of(request)
    answer = ArdSearchAnswer(
        results=[ArdResult.found(result, base) for result in found[begin:end]],
        referrals=[] if asked.federation == "referrals" else None,
        page_token=page_tokens.written(end, same) if end < len(found) else None,
    )
    return Response(200, _json(answer), {"Content-Type": "application/json"})


def list_entries(application: Application, request: Request) -> Response:
    """`GET /agents`: everything, in order of id."""
    asked = Listing.parse(request.query)
    after = Id(page_tokens.place(asked.page_token, asked.filter)) if asked.page_token else None
    wanted, base = asked.wanted, base_of(request)
    if wanted.nothing:
        return _cached(request, ArdList(items=[]), _PRIVATE)
    admitted = Filter(kinds=wanted.kinds, scope=wanted.scope)
    page = application.browse(request.caller, admitted, wanted.admits, after=after, limit=asked.page_size)
    items: list[ArdEntry] = []
    following, size = page.following, 0
    for profile in page.profiles:
        entry = ArdEntry.of(profile, base)
        size += len(_json(entry).encode())
        if items and size > _MOST_BYTES:
            following = page.profiles[len(items) - 1].id
            break
        items.append(entry)
    token = None if following is None else page_tokens.written(following, asked.filter)
    return _cached(request, ArdList(items=items, page_token=token), _PRIVATE)


def get_entry(application: Application, request: Request) -> Response:
    """`GET /agents/{identifier}`: one entry, by its exact identifier."""
    identifier = _identifier(request)
    meant = named(identifier)
    if meant is None:
        raise CapabilityNotFound(identifier)
    try:
        profile = application.get(request.caller, meant.id)
    except CapabilityNotFound as error:
        raise CapabilityNotFound(identifier) from error
    if profile.kind is not meant.kind:
        raise CapabilityNotFound(identifier)
    return _cached(request, ArdEntry.of(profile, base_of(request)), _PRIVATE)


def manifest(application: Application, request: Request) -> Response:
    """`GET /.well-known/ard.json`: where this registry is."""
    base = base_of(request)
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
    return _cached(request, ArdManifest(entries=[entry]), _PUBLIC)


def explore(application: Application, request: Request) -> Response:
    """`POST /explore`: optional, and not here."""
    return problem(501, "exploring is optional, and this registry has it not; use /search or /agents")


def base_of(request: Request) -> str:
    """The address of this registry as its caller knows it, with a slash at the end.

    API Gateway says its host and what comes before the path. Elsewhere it is the Host header's, which only its own
    sender gets to see.
    """
    if request.domain:
        return f"https://{request.domain}{request.prefix}/"
    host = request.header("Host") or ""
    scheme = "https" if request.header("X-Forwarded-Proto") == "https" else "http"
    return f"{scheme}://{host if _HOST.fullmatch(host) else 'localhost'}{request.prefix}/"


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


def _identifier(request: Request) -> str:
    """The identifier in the path, decoded exactly once."""
    written = request.path.removeprefix(_ENTRY) if request.path.startswith(_ENTRY) else ""
    if _BROKEN_ESCAPE.search(written):
        _unreadable()
    try:
        return unquote(written, errors="strict")
    except UnicodeDecodeError:
        _unreadable()


def _unreadable() -> NoReturn:
    raise RequestInvalid([Fault("identifier", "is not percent-encoded UTF-8")])


def _cached(request: Request, answer: BaseModel, control: str) -> Response:
    """The answer; or that the one the caller has is still good."""
    body = _json(answer)
    tag = f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"'
    headers = {"Cache-Control": control, "ETag": tag}
    known = [one.strip().removeprefix("W/") for one in (request.header("If-None-Match") or "").split(",")]
    if tag in known or "*" in known:
        return Response(304, "", headers)
    return Response(200, body, {"Content-Type": "application/json", **headers})


def _json(answer: BaseModel) -> str:
    return answer.model_dump_json(by_alias=True, exclude_none=True)
