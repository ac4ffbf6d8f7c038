"""The endpoints of Agentic Resource Discovery: searches with their filter, lists, entries, the manifest."""

import base64
import json
import re
from contextlib import suppress
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from mats.domain.capability.capability import Id, Kind
from mats.domain.capability.faults import RequestModel
from mats.domain.errors import CapabilityNotFound, Fault, RequestInvalid
from mats.domain.protocols.namespaces import is_ip
from mats.domain.search.query import Filter, Query, QueryText, Scope
from mats.edge.app import Application
from mats.edge.ard import entries as ard
from mats.edge.http import Request, Response, to_json
from mats.edge.schema import WHOLE, Parameters

_MAX_PAGE_SIZE, _MOST_LISTED = 100, 50
"""Entries of a page that may be asked for, and that are listed: so many of the largest are below the 6 MB of Lambda."""
_MAX_TOKEN = 8_000  # Characters. The token of the longest id has fewer.
_PRIVATE = "private, max-age=60"  # Responses depend on the caller's audiences
_PUBLIC = "public, max-age=3600"
_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
_TERMS = "https://agenticresourcediscovery.org/ns#"

P = TypeVar("P", str, int)
Value = Annotated[str, Field(min_length=1, max_length=1_000)]
Values = Annotated[
    list[Value],
    Field(min_length=1, max_length=50),
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class ArdFilter(RequestModel):
    """An entry has one of the values of every key. Keys may be spelled as terms of the ARD namespace."""

    type: Values | None = None
    tags: Values | None = None
    publisher: Values | None = None


def _as_terms(written: Any) -> Any:
    return {key.removeprefix(_TERMS): value for key, value in written.items()} if isinstance(written, dict) else written


class ArdQuery(RequestModel):
    """The text to search for, and a filter on entries."""

    context: Any = Field(default=None, alias="@context", description="Ignored: terms have their plain names.")
    text: QueryText
    filter: Annotated[ArdFilter, BeforeValidator(_as_terms)] = ArdFilter()


class ArdSearch(RequestModel):
    """The body of `POST /search`."""

    model_config = ConfigDict(alias_generator=to_camel)
    query: ArdQuery
    federation: Literal["auto", "referrals", "none"] = Field(
        default="auto", description="Has no effect on the search: no other registry is queried."
    )
    page_size: Annotated[int, Field(ge=1, le=_MAX_PAGE_SIZE, strict=True)] = 10
    page_token: str | None = None


class ArdListParameters(Parameters):
    """The parameters of `GET /agents`: neither filters nor orders, which are optional in ARD."""

    model_config = ConfigDict(alias_generator=to_camel)
    page_size: Annotated[int, Field(ge=1, le=_MAX_PAGE_SIZE), WHOLE] = 20
    page_token: str | None = Field(default=None, description="`pageToken` of the page before.")


def _narrow(wish: ArdFilter) -> tuple[frozenset[Kind], Scope]:
    """The kinds and the scope by which the index filters; no kinds if nothing satisfies the filter."""
    tag_choices = {frozenset(wish.tags)} if wish.tags else set()
    kinds = frozenset(Kind)
    if wish.type:
        requested = {kind: tags for kind, (type_, tags) in ard.PROTOCOLS.items() if type_ in wish.type}
        own = frozenset(kind for kind in Kind if ard.own_type(kind) in wish.type)
        kinds = own | requested.keys()
        if requested and all(requested.values()) and not own:
            tag_choices.add(frozenset().union(*requested.values()))
    namespaces = frozenset(filter(None, map(ard.namespace_of, wish.publisher or ())))
    if wish.publisher and not namespaces:
        kinds = frozenset()
    return kinds, Scope(namespaces, frozenset(tag_choices))


def search(application: Application, request: Request) -> Response:
    body = ArdSearch.parse(request.json())
    kinds, scope = _narrow(body.query.filter)
    types, begin = body.query.filter.type, parse_token(body.page_token, int) if body.page_token else 0
    results = []
    if kinds:
        query = Query(query=body.query.text, kinds=() if kinds == frozenset(Kind) else tuple(sorted(kinds)))
        results = list(application.search(request.caller, query, scope).results)
    if types:  # which the index does not know: a media type depends on the address
        results = [result for result in results if ard.media_type(result.candidate.profile) in types]
    results.sort(key=ard.relevance, reverse=True)
    end, base = begin + body.page_size, base_address(request)
    answer = ard.ArdSearchAnswer(
        results=[ard.ArdResult.of_result(result, base) for result in results[begin:end]],
        referrals=[] if body.federation == "referrals" else None,
        page_token=make_token(end) if end < len(results) else None,
    )
    return _response(answer)


def list_entries(application: Application, request: Request, wish: ArdListParameters) -> Response:
    after = Id(parse_token(wish.page_token, str)) if wish.page_token else None
    limit, base = min(wish.page_size, _MOST_LISTED), base_address(request)
    page = application.browse(request.caller, Filter(), lambda profile: True, after=after, limit=limit)
    items = [ard.ArdEntry.of(profile, base) for profile in page.profiles]
    token = None if page.following is None else make_token(page.following)
    return _response(ard.ArdList(items=items, page_token=token), _PRIVATE)


def get_entry(application: Application, request: Request) -> Response:
    identifier = unquote(request.path.removeprefix("/agents/"))
    if named := ard.parse_identifier(identifier):
        kind, id = named
        with suppress(CapabilityNotFound):
            profile = application.get(request.caller, id)
            if profile.kind is kind:
                return _response(ard.ArdEntry.of(profile, base_address(request)), _PRIVATE)
    raise CapabilityNotFound(identifier)


def manifest(application: Application, request: Request) -> Response:
    base = base_address(request)
    host = base.partition("://")[2].partition("/")[0].lower()
    name = host.partition(":")[0].rstrip(".")
    is_qualified = "." in name and not host.startswith("[") and not is_ip(name)
    entry = ard.ArdEntry(
        identifier=f"urn:air:{name if is_qualified else 'mats.localhost'}:registry:mats",
        display_name="mats",
        type=ard.REGISTRY,
        url=base,
        description="Finds the model, agent, tool or skill for a request, and invokes nothing.",
    )
    return _response(ard.ArdManifest(entries=[entry]), _PUBLIC)


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


def _response(answer: BaseModel, cache_control: str = "") -> Response:
    headers = {"Cache-Control": cache_control} if cache_control else {}
    body = to_json(answer, by_alias=True, exclude_none=True)
    return Response(200, body, {"Content-Type": "application/json", **headers})


def make_token(position: str | int) -> str:
    """The token of the page that begins behind an id, or a number of results. It authorizes nothing."""
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def parse_token(token: str, position_type: type[P]) -> P:
    """The position of a token. Raises RequestInvalid: it is no token of such a page."""
    with suppress(ValueError, RecursionError):
        padded = token + "=" * (-len(token) % 4)
        content = base64.b64decode(padded, altchars=b"-_", validate=True) if len(token) <= _MAX_TOKEN else b""
        position = json.loads(content)
        str(position).encode()  # fails for lone surrogates, which JSON can carry and no index can look up
        if type(position) is position_type and (isinstance(position, str) or position > 0):
            return position
    raise RequestInvalid([Fault("pageToken", "was not issued by this list or search; leave it out to start anew")])
