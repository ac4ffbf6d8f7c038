"""The endpoints of Agentic Resource Discovery."""

import base64
import hashlib
import json
import re
from contextlib import suppress
from typing import TypeVar
from urllib.parse import unquote

from pydantic import BaseModel

from mats.domain.capability.capability import Id, Kind
from mats.domain.errors import CapabilityNotFound, Fault, RequestInvalid
from mats.domain.protocols.protocol import is_ip
from mats.domain.ranking.query import Filter, Query
from mats.domain.shortlist.rank import Result
from mats.edge.app import Application
from mats.edge.ard import entries as ard
from mats.edge.ard.requests import ArdListParameters, ArdSearch, list_filter, search_filter
from mats.edge.http import Request, Response, problem, to_json

P = TypeVar("P", str, int)

_ENTRY = "/agents/"
_MAX_TOKEN = 8_000  # Characters. The token of the longest id has fewer.
_PRIVATE = "private, max-age=60"  # Responses depend on the caller's audiences
_PUBLIC = "public, max-age=3600"
_MAX_PAGE_BYTES = 4_000_000  # Bytes of a page. Lambda's responses are limited to 6 MB.
_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def search(application: Application, request: Request) -> Response:
    body = ArdSearch.parse(request.json())
    entries = search_filter(body.query)
    same = json.dumps([body.query.text, body.query.filter])
    begin = parse_token(body.page_token, same, int) if body.page_token else 0
    results: list[Result] = []
    if not entries.matches_nothing:
        kinds = () if entries.kinds == frozenset(Kind) else tuple(sorted(entries.kinds))
        shortlist = application.search(request.caller, Query(query=body.query.text, kinds=kinds), entries.scope)
        results = [result for result in shortlist.results if entries.accepts(result.candidate.profile)]
    results.sort(key=ard.relevance, reverse=True)
    end = begin + body.page_size
    base = base_address(request)
    answer = ard.ArdSearchAnswer(
        results=[ard.ArdResult.of_result(result, base) for result in results[begin:end]],
        referrals=[] if body.federation == "referrals" else None,
        page_token=make_token(end, same) if end < len(results) else None,
    )
    return Response(200, _json(answer), {"Content-Type": "application/json"})


def list_entries(application: Application, request: Request, wish: ArdListParameters) -> Response:
    entries, base = list_filter(wish.filter), base_address(request)
    after = Id(parse_token(wish.page_token, wish.filter, str)) if wish.page_token else None
    if entries.matches_nothing:
        return _cacheable(request, ard.ArdList(items=[]), _PRIVATE)
    admitted = Filter(kinds=entries.kinds, scope=entries.scope)
    page = application.browse(request.caller, admitted, entries.accepts, after=after, limit=wish.page_size)
    items: list[ard.ArdEntry] = []
    following, size = page.following, 0
    for profile in page.profiles:
        entry = ard.ArdEntry.of(profile, base)
        size += len(_json(entry).encode())
        if items and size > _MAX_PAGE_BYTES:
            following = page.profiles[len(items) - 1].id
            break
        items.append(entry)
    token = None if following is None else make_token(following, wish.filter)
    return _cacheable(request, ard.ArdList(items=items, page_token=token), _PRIVATE)


def get_entry(application: Application, request: Request) -> Response:
    written = request.path.removeprefix(_ENTRY) if request.path.startswith(_ENTRY) else ""
    try:
        if _BROKEN_ESCAPE.search(written):
            raise ValueError
        identifier = unquote(written, errors="strict")  # once
    except ValueError as error:
        raise RequestInvalid([Fault("identifier", "is not percent-encoded UTF-8")]) from error
    if named := ard.parse_identifier(identifier):
        kind, id = named
        with suppress(CapabilityNotFound):
            profile = application.get(request.caller, id)
            if profile.kind is kind:
                return _cacheable(request, ard.ArdEntry.of(profile, base_address(request)), _PRIVATE)
    raise CapabilityNotFound(identifier)


def manifest(application: Application, request: Request) -> Response:
    base = base_address(request)
    host = base.partition("://")[2].partition("/")[0].rpartition("@")[2].lower()
    name = host.partition(":")[0].rstrip(".")
    is_qualified = "." in name and not host.startswith("[") and not is_ip(name)
    entry = ard.ArdEntry(
        identifier=f"urn:air:{name if is_qualified else 'mats.localhost'}:registry:mats",
        display_name="mats",
        type=ard.REGISTRY,
        url=base,
        description="Finds the model, agent, tool or skill for a request, and invokes nothing.",
        representative_queries=[
            "which tool can do this step of my task?",
            "find an agent that takes over a whole request",
            "is there a model or a skill for this kind of work?",
        ],
    )
    return _cacheable(request, ard.ArdManifest(entries=[entry]), _PUBLIC)


def explore(application: Application, request: Request) -> Response:
    return problem(501, "this registry does not implement /explore, which is optional; use /search or /agents")


def base_address(request: Request) -> str:
    """The address under which the caller reached this registry, with a trailing slash.

    Behind API Gateway it is the domain and the path prefix of the stage; elsewhere it comes from the `Host` header, and
    only the sender of that header sees the result.
    """
    if request.domain:
        return f"https://{request.domain}{request.prefix}/"
    host = request.header("Host") or ""
    scheme = "https" if request.header("X-Forwarded-Proto") == "https" else "http"
    return f"{scheme}://{host if _HOST.fullmatch(host) else 'localhost'}{request.prefix}/"


def _cacheable(request: Request, answer: BaseModel, control: str) -> Response:
    """The response with an ETag, or 304 if the caller has it already."""
    body = _json(answer)
    tag = f'"{hashlib.sha256(body.encode()).hexdigest()[:32]}"'
    headers = {"Cache-Control": control, "ETag": tag}
    known = [one.strip().removeprefix("W/") for one in (request.header("If-None-Match") or "").split(",")]
    if tag in known or "*" in known:
        return Response(304, "", headers)
    return Response(200, body, {"Content-Type": "application/json", **headers})


def _json(answer: BaseModel) -> str:
    return to_json(answer, by_alias=True, exclude_none=True)


def make_token(position: str | int, request: str) -> str:
    """The token of the page that begins at a position: an id, or a number of results.

    It is bound to its request, and authorizes nothing: each page is filtered by the audiences of its caller.
    """
    checksum = hashlib.sha256(json.dumps([request, position]).encode()).hexdigest()[:16]
    content = json.dumps([checksum, position], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def parse_token(token: str, request: str, position_type: type[P]) -> P:
    """The position where the page begins: the last id of the page before, or the number of earlier results.

    Raises RequestInvalid: the token was not issued for this request.
    """
    with suppress(ValueError, TypeError, RecursionError):
        padded = token + "=" * (-len(token) % 4)
        content = base64.b64decode(padded, altchars=b"-_", validate=True) if len(token) <= _MAX_TOKEN else b""
        _, position = json.loads(content)
        str(position).encode()  # fails for lone surrogates, which JSON can carry and no index can look up
        is_position = isinstance(position, str) or (position > 0 and position is not True)
        if isinstance(position, position_type) and is_position and token == make_token(position, request):
            return position
    raise RequestInvalid([Fault("pageToken", "was not issued for this request; leave it out to start anew")])
