"""Requests of Agentic Resource Discovery: searches, lists, and their filters."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal, NoReturn

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from mats.domain.capability.capability import Kind
from mats.domain.capability.faults import RequestModel
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.profile import Profile
from mats.domain.ranking.query import QueryText, Scope
from mats.edge.ard.entries import PROTOCOLS, last_updated, media_type, namespace_of, own_type
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
        predicates.append(lambda profile: (time := last_updated(profile)) is not None and time > after)
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
            _reject(f"has no condition at character {position + 1}; write one such as type = '{own_type(Kind.TOOL)}'")
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
        requested = {kind: declared for kind, (type_, declared) in PROTOCOLS.items() if type_ in types}
        own = frozenset(kind for kind in Kind if own_type(kind) in types)
        kinds = own | requested.keys()
        if requested and all(requested.values()) and not own:
            tag_choices.add(frozenset().union(*requested.values()))
        predicates = [*predicates, lambda profile: media_type(profile) in types]
    namespaces = None if publishers is None else frozenset(filter(None, map(namespace_of, publishers)))
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
