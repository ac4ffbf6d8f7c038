"""The endpoints of Agentic Resource Discovery: searches and lists with their filters, entries, the manifest."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, NoReturn, TypeVar
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from mats.domain.capability.capability import Id, Kind
from mats.domain.capability.faults import RequestModel
from mats.domain.errors import CapabilityNotFound, Fault, RequestInvalid
from mats.domain.profile.profile import Profile
from mats.domain.protocols.protocol import is_ip
from mats.domain.search.candidate import Result
from mats.domain.search.query import Filter, Query, QueryText, Scope
from mats.edge.app import Application
from mats.edge.ard import entries as ard
from mats.edge.http import Request, Response, problem, to_json
from mats.edge.schema import WHOLE, Parameters

CONTEXT = "https://agenticresourcediscovery.org/context/v1"
_TERMS = "https://agenticresourcediscovery.org/ns#"
_MAX_LENGTH = 4_000
_CONDITION = re.compile(
    r"""\s*(?P<field>[A-Za-z]+)\s*(?P<operator>[=>])\s*('(?P<a>[^']*)'|"(?P<b>[^"]*)"|(?P<c>[^\s'"]+))(?:\s+|\Z)"""
)
_AND = re.compile(r"AND\s+(?=\S)", re.IGNORECASE)
_LIST_FIELDS = ("displayName", "type", "publisherId", "updatedAfter")
_MAX_PAGE_SIZE = 100

Value = Annotated[str, Field(min_length=1, max_length=1_000)]
Values = Annotated[
    list[Value],
    Field(min_length=1, max_length=50),
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class ArdQuery(RequestModel):
    """The text to search for, and a filter on entries."""

    context: Any = Field(default=None, alias="@context", description="Binds the prefixes that filter keys use.")
    text: QueryText
    filter: Annotated[dict[str, Values], Field(max_length=20)] = Field(
        default={}, description="An entry has one of the values of every key: `type`, `tags`, `publisher`."
    )


class ArdSearch(RequestModel):
    """The body of `POST /search`."""

    model_config = ConfigDict(alias_generator=to_camel)
    hints: ClassVar = {
        "limit": "is not a known attribute; did you mean `pageSize`?",
        "kinds": "is not a known attribute; did you mean `query.filter.type`?",
    }
    query: ArdQuery
    federation: Literal["auto", "referrals", "none"] = Field(
        default="auto", description="Has no effect on the search: no other registry is queried."
    )
    page_size: Annotated[int, Field(ge=1, le=_MAX_PAGE_SIZE, strict=True)] = 10
    page_token: str | None = None


def _reject_order(value: str) -> str:
    raise ValueError("is not supported: entries are always in order of id")


class ArdListParameters(Parameters):
    """The parameters of `GET /agents`."""

    model_config = ConfigDict(alias_generator=to_camel, extra="ignore")
    filter: str = Field(default="", description="`displayName`, `type`, `publisherId`, `updatedAfter`, joined by AND.")
    page_size: Annotated[int, Field(ge=1, le=_MAX_PAGE_SIZE), WHOLE] = 20
    page_token: str | None = Field(default=None, description="`pageToken` of the page before.")
    order_by: SkipJsonSchema[Annotated[str, AfterValidator(_reject_order)] | None] = None


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Conditions on entries: what the index can filter by, and predicates for what it cannot."""

    kinds: frozenset[Kind]
    scope: Scope
    predicates: Sequence[Callable[[Profile], bool]]
    matches_nothing: bool  # No entry can satisfy the conditions, so the index need not be queried

    def accepts(self, profile: Profile) -> bool:
        return all(predicate(profile) for predicate in self.predicates)


def search_filter(query: ArdQuery) -> EntryFilter:
    """The filter of a search. Raises RequestInvalid: a key is unknown or repeated."""
    conditions: dict[str, frozenset[str]] = {}
    bindings = _context_bindings(query.context) if query.filter else {}
    for key, values in query.filter.items():
        term, field = _resolve_term(key, bindings), f"query.filter.{key[:60]}"
        if term not in ("type", "tags", "publisher"):
            raise RequestInvalid([Fault(field, "is not a filter; use type, tags or publisher")])
        if term in conditions:
            raise RequestInvalid([Fault(field, f"gives {term} more than once: give it once")])
        conditions[term] = frozenset(values)
    return _entry_filter(conditions.get("type"), conditions.get("publisher"), conditions.get("tags"))


def list_filter(expression: str) -> EntryFilter:
    """The filter of a list: conditions joined by AND; commas separate alternative values.

    Raises RequestInvalid: the expression cannot be parsed, or names an unknown field.
    """
    conditions = _parse_conditions(expression) if expression.strip() else {}
    if "createdAfter" in conditions:
        _reject("createdAfter is not supported: creation times are not stored; use updatedAfter")
    if unknown := conditions.keys() - set(_LIST_FIELDS):
        _reject(f"{min(unknown)} is unknown; use {', '.join(_LIST_FIELDS)}")
    predicates: list[Callable[[Profile], bool]] = []
    if "displayName" in conditions:
        part = conditions["displayName"].casefold()
        predicates.append(lambda profile: part in profile.name.casefold())
    if "updatedAfter" in conditions:
        try:
            written = datetime.fromisoformat(conditions["updatedAfter"])
        except ValueError:
            _reject(f"{conditions['updatedAfter'][:60]!r} is not an ISO 8601 time")
        after = written if written.tzinfo else written.replace(tzinfo=UTC)
        predicates.append(lambda profile: (time := ard.last_updated(profile)) is not None and time > after)
    choices = {name: frozenset(value.strip() for value in values.split(",")) for name, values in conditions.items()}
    return _entry_filter(choices.get("type"), choices.get("publisherId"), None, predicates)


def _parse_conditions(expression: str) -> dict[str, str]:
    if len(expression) > _MAX_LENGTH:
        _reject(f"must have at most {_MAX_LENGTH:,} characters")
    conditions: dict[str, str] = {}
    position = 0
    while True:
        condition = _CONDITION.match(expression, position)
        if condition is None:
            _reject(
                f"has no condition at character {position + 1}; write one such as type = '{ard.own_type(Kind.TOOL)}'"
            )
        field, value = condition["field"], next(v for v in condition.group("a", "b", "c") if v is not None)
        if condition["operator"] == ">" and not field.endswith("After"):
            _reject(f"cannot compare {field} with >; use =")
        if field in conditions:
            _reject(f"gives {field} more than once; separate alternative values by commas")
        conditions[field] = value
        if condition.end() == len(expression):
            return conditions
        conjunction = _AND.match(expression, condition.end())
        if conjunction is None:
            _reject(f"needs AND or the end at character {condition.end() + 1}")
        position = conjunction.end()


def _reject(message: str) -> NoReturn:
    raise RequestInvalid([Fault("filter", message)])


def _entry_filter(
    types: Collection[str] | None,
    publishers: Collection[str] | None,
    tags: frozenset[str] | None,
    predicates: Sequence[Callable[[Profile], bool]] = (),
) -> EntryFilter:
    """The filter of these conditions; None stands for no condition.

    The index filters by kind, namespace and tags. Whether an entry has an address decides its media type, and only a
    predicate can tell.
    """
    tag_choices = set[frozenset[str]]() if tags is None else {tags}
    kinds = frozenset(Kind)
    if types is not None:
        requested = {kind: declared for kind, (type_, declared) in ard.PROTOCOLS.items() if type_ in types}
        own = frozenset(kind for kind in Kind if ard.own_type(kind) in types)
        kinds = own | requested.keys()
        if requested and all(requested.values()) and not own:
            tag_choices.add(frozenset().union(*requested.values()))
        predicates = [*predicates, lambda profile: ard.media_type(profile) in types]
    namespaces = None if publishers is None else frozenset(filter(None, map(ard.namespace_of, publishers)))
    scope = Scope(namespaces or frozenset(), frozenset(tag_choices))
    matches_nothing = not kinds or (namespaces is not None and not namespaces)
    return EntryFilter(kinds, scope, predicates, matches_nothing)


def _resolve_term(key: str, bindings: Mapping[str, str]) -> str:
    """The ARD term behind a filter key, by the context's bindings; the key itself if nothing binds it."""
    prefix, colon, rest = key.partition(":")
    if key in bindings:
        key = bindings[key]
    elif colon and prefix in bindings:
        key = bindings[prefix] + rest
    return key.removeprefix(_TERMS)


def _context_bindings(context: Any) -> dict[str, str]:
    """The terms and prefixes that a JSON-LD context binds. Remote contexts are not fetched."""
    bindings: dict[str, str] = {}
    for part in context if isinstance(context, list) else [context]:
        if isinstance(part, dict) and all(isinstance(iri, str) for iri in part.values()):
            bindings |= part
        elif part not in (None, CONTEXT):
            message = f"must map names to addresses; the only known remote context is {CONTEXT}"
            raise RequestInvalid([Fault("query.@context", message)])
    return bindings


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
