"""What Agentic Resource Discovery is asked: searches, lists, and the filters of both."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NoReturn, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator
from pydantic.alias_generators import to_camel

from mats.domain.capability import Kind
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.faults import request_of
from mats.domain.profile import Profile
from mats.domain.query import Query, Scope
from mats.edge.ard.entries import PROTOCOLS, media_type, own_type, updated
from mats.edge.ard.identifiers import namespace_of

CONTEXT = "https://agenticresourcediscovery.org/context/v1"
_TERMS = "https://agenticresourcediscovery.org/ns#"
_LARGEST_PAGE = 100

Value = Annotated[str, Field(min_length=1, max_length=1_000)]
Values = Annotated[
    list[Value],
    Field(min_length=1, max_length=50),
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    WithJsonSchema({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class _Asked(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True)


class ArdQuery(_Asked):
    """What is wanted, and of which entries."""

    context: Any = Field(default=None, alias="@context", description="Binds the prefixes that filter keys use.")
    text: Annotated[str, Field(min_length=1, max_length=2_000)]
    filter: Annotated[dict[str, Values], Field(max_length=20)] = Field(
        default={}, description="Any of the values of a key, and every key: `type`, `tags`, `publisher`."
    )

    @field_validator("text")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("must not be blank")
        return value


class ArdSearch(_Asked):
    """The body of `POST /search`."""

    query: ArdQuery
    federation: Literal["auto", "referrals", "none"] = Field(
        default="auto", description="No other registry is asked, whatever is said here."
    )
    page_size: Annotated[int, Field(ge=1, le=_LARGEST_PAGE, strict=True)] = 10
    page_token: str | None = None

    @classmethod
    def parse(cls, body: Any) -> Self:
        """The search a request body holds.

        Raises:
            RequestInvalid: with every fault.
        """
        return request_of(body, cls, _HINTS)


_HINTS = {
    "limit": "is not a known attribute; did you mean `pageSize`?",
    "kinds": "is not a known attribute; did you mean `query.filter.type`?",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries may answer; `rest` is what an index cannot be asked for and has to be looked at."""

    kinds: frozenset[Kind] = frozenset(Kind)
    scope: Scope = Scope()
    rest: Sequence[Callable[[Profile], bool]] = ()
    nothing: bool = False
    """No entry of ours can be meant."""

    def admits(self, profile: Profile) -> bool:
        """Whether an entry that the index admitted is wanted."""
        return all(admits(profile) for admits in self.rest)

    def asking(self, text: str) -> Query:
        """A query for these."""
        return Query(query=text, kinds=() if self.kinds == frozenset(Kind) else tuple(sorted(self.kinds)))


def wanted_by(query: ArdQuery) -> Wanted:
    """What the filter of a search asks for.

    Raises:
        RequestInvalid: it names a term that entries cannot be filtered by.
    """
    given: dict[str, frozenset[str]] = {}
    bound = _bound(query.context) if query.filter else {}
    for key, values in query.filter.items():
        term, field = _term(key, bound), f"query.filter.{key[:60]}"
        if term not in ("type", "tags", "publisher"):
            raise RequestInvalid([Fault(field, "cannot be filtered by; type, tags, publisher can")])
        if term in given:
            raise RequestInvalid([Fault(field, f"says twice what {term} is to be")])
        given[term] = frozenset(values)
    return _wanted(given.get("type"), given.get("publisher"), given.get("tags"))


@dataclass(frozen=True, slots=True)
class Listing:
    """What `GET /agents` is asked."""

    wanted: Wanted
    filter: str
    page_size: int = 20
    page_token: str | None = None

    @classmethod
    def parse(cls, parameters: Mapping[str, Sequence[str]]) -> Self:
        """The list that the parameters of a query string ask for; those that are not ARD's are passed over.

        Raises:
            RequestInvalid: one of them cannot be used.
        """
        known = {name: values for name, values in parameters.items() if name in _PARAMETERS}
        if twice := [name for name, values in known.items() if len(values) > 1]:
            raise RequestInvalid([Fault(name, "is given twice") for name in twice])
        given = {name: values[0] for name, values in known.items() if values}
        if "orderBy" in given:
            raise RequestInvalid([Fault("orderBy", "is not supported: the order is always that of the ids")])
        size = given.get("pageSize", "20")
        if not re.fullmatch(r"[0-9]{1,3}", size) or not 1 <= int(size) <= _LARGEST_PAGE:
            raise RequestInvalid([Fault("pageSize", f"must be a whole number from 1 to {_LARGEST_PAGE}")])
        expression = given.get("filter", "")
        return cls(_listed(expression), expression, int(size), given.get("pageToken") or None)


_PARAMETERS = ("filter", "orderBy", "pageSize", "pageToken")
_LONGEST_FILTER = 4_000
_CONDITION = re.compile(
    r"""\s*(?P<field>[A-Za-z]+)\s*(?P<operator>[=>])\s*('(?P<a>[^']*)'|"(?P<b>[^"]*)"|(?P<c>[^\s'"]+))(?:\s+|\Z)"""
)
_AND = re.compile(r"AND\s+(?=\S)", re.IGNORECASE)


def _listed(expression: str) -> Wanted:
    """What a filter expression asks for: conditions joined by AND, commas between values of which any will do."""
    given = _conditions(expression) if expression.strip() else {}
    if "createdAfter" in given:
        _refuse("createdAfter cannot be used: when an entry was created is not kept; updatedAfter can")
    if unknown := given.keys() - {"displayName", "type", "publisherId", "updatedAfter"}:
        _refuse(f"{min(unknown)} is not known; displayName, type, publisherId, updatedAfter are")
    rest: list[Callable[[Profile], bool]] = []
    if "displayName" in given:
        part = given["displayName"].casefold()
        rest.append(lambda profile: part in profile.name.casefold())
    if "updatedAfter" in given:
        after = _time(given["updatedAfter"])
        rest.append(lambda profile: (time := updated(profile)) is not None and time > after)
    return _wanted(_any_of(given.get("type")), _any_of(given.get("publisherId")), None, rest)


def _conditions(expression: str) -> dict[str, str]:
    if len(expression) > _LONGEST_FILTER:
        _refuse(f"it is longer than {_LONGEST_FILTER:,} characters")
    found: dict[str, str] = {}
    position = 0
    while True:
        condition = _CONDITION.match(expression, position)
        if condition is None:
            _refuse(f"at character {position + 1} there is no condition such as type = '{own_type(Kind.TOOL)}'")
        field, value = condition["field"], next(v for v in condition.group("a", "b", "c") if v is not None)
        if condition["operator"] == ">" and not field.endswith("After"):
            _refuse(f"{field} can only be equal to something")
        if field in found:
            _refuse(f"{field} is given twice; put a comma between values of which any will do")
        found[field] = value
        if condition.end() == len(expression):
            return found
        joined = _AND.match(expression, condition.end())
        if joined is None:
            _refuse(f"at character {condition.end() + 1} there is neither AND nor the end")
        position = joined.end()


def _refuse(why: str) -> NoReturn:
    raise RequestInvalid([Fault("filter", why)])


def _any_of(values: str | None) -> frozenset[str] | None:
    return None if values is None else frozenset(value.strip() for value in values.split(","))


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        _refuse(f"{text[:60]!r} is no time of ISO 8601")
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _wanted(
    types: Collection[str] | None,
    publishers: Collection[str] | None,
    tags: frozenset[str] | None,
    rest: Sequence[Callable[[Profile], bool]] = (),
) -> Wanted:
    """The index is asked for all that it can tell; whether an entry has an address, it cannot."""
    choices = set[frozenset[str]]() if tags is None else {tags}
    kinds = frozenset(Kind)
    if types is not None:
        spoken = [PROTOCOLS[kind] for kind in PROTOCOLS if PROTOCOLS[kind][0] in types]
        kinds = frozenset(k for k in Kind if own_type(k) in types or (k in PROTOCOLS and PROTOCOLS[k][0] in types))
        if spoken and all(said for _, said in spoken) and not any(own_type(kind) in types for kind in Kind):
            choices.add(frozenset().union(*(said for _, said in spoken)))
        rest = [*rest, lambda profile: media_type(profile) in types]
    homes = None if publishers is None else {namespace_of(publisher) for publisher in publishers} - {None}
    scope = Scope(frozenset(home for home in homes or () if home is not None), frozenset(choices))
    return Wanted(kinds, scope, rest, nothing=not kinds or homes == set())


def _term(key: str, bound: Mapping[str, str]) -> str:
    """The term of ARD's own that a filter key means; else the key as it is."""
    prefix, colon, rest = key.partition(":")
    if key in bound:
        key = bound[key]
    elif colon and prefix in bound:
        key = bound[prefix] + rest
    return key.removeprefix(_TERMS)


def _bound(context: Any) -> dict[str, str]:
    """Terms and prefixes that a context binds. Contexts elsewhere are not fetched."""
    bound: dict[str, str] = {}
    for part in context if isinstance(context, list) else [context]:
        if isinstance(part, dict) and all(isinstance(iri, str) for iri in part.values()):
            bound |= part
        elif part not in (None, CONTEXT):
            why = f"must bind names to addresses; only {CONTEXT} is known by its address"
            raise RequestInvalid([Fault("query.@context", why)])
    return bound
