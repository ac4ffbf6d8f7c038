"""Assignments of operators: trust of a capability, trust and verified provider of a namespace. docs/decisions/0037.

A row is stored under the id of a capability, or under the pattern of a namespace: `com.stripe.*` with the name `*`
stands for com.stripe and everything below it. No capability can have such an id.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Self

from mats.domain.capability.capability import Id, capability_id, parts
from mats.domain.text.fence import find_hidden

_BELOW = ".*"
_EVERY = "*"
_NAMESPACE = re.compile(r"(?=.{1,200}$)[a-z0-9-]+(\.[a-z0-9-]+)*")
"""As in a valid registration; another one has no rows, whose keys could be too long for a table."""


class Policy(StrEnum):
    """Which changes of registrations wait for an operator."""

    AUTO = "auto"  # Dangerous changes of what is rated
    REVIEW = "review"  # All, and what is new
    OPEN = "open"  # None


_FINGERPRINT = re.compile("[0-9a-f]{8,128}")
_MOST_REJECTED = 50  # Rejected registrations of a capability that are remembered
MAX_PROVIDER = 200  # Characters
UNRATED_TRUST = 50  # What an unrated capability counts as beside others


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """Trust, provider and decisions of operators: of one row, or resolved for a capability."""

    trust: int | None = None  # 0 to 100
    provider: str = ""  # The verified one, or empty
    cleared: str = ""  # Fingerprint of a registration whose flags an operator has cleared, or empty
    approved: str = ""  # Fingerprint of one that is to be shown, or empty
    rejected: tuple[str, ...] = ()  # Fingerprints of those that are not to be shown, the latest last
    policy: Policy | None = None  # Which changes wait for an operator; None: as for the namespace

    def __bool__(self) -> bool:
        return bool(self.to_row())

    @property
    def is_rated(self) -> bool:
        return self.trust is not None or bool(self.provider)

    @property
    def is_trusted(self) -> bool:
        """True if operators trust it more than an unrated one, or verified who its owner is."""
        return bool(self.provider) if self.trust is None else self.trust > UNRATED_TRUST

    def to_row(self) -> dict[str, int | str]:
        """The attributes that have a value, as stores and exports write them; `parse_row` reads them."""
        row = {**asdict(self), "rejected": " ".join(self.rejected)}
        return {name: value for name, value in row.items() if value not in (None, "")}

    def approve(self, digest: str) -> Self:
        """The assignment once an operator has approved the registration with this fingerprint."""
        return replace(self, approved=digest, rejected=tuple(each for each in self.rejected if each != digest))

    def reject(self, digest: str) -> Self:
        """The assignment once an operator has rejected the registration with this fingerprint."""
        return replace(self, rejected=(*(each for each in self.rejected if each != digest), digest)[-_MOST_REJECTED:])

    def take_over(self, other: Self) -> Self:
        """Another row in place of this one; what was decided about registrations here stays."""
        approved, rejected = other.approved or self.approved, dict.fromkeys((*other.rejected, *self.rejected))
        rejected.pop(other.approved, None)
        policy = other.policy or self.policy
        return replace(other, approved=approved, rejected=tuple(rejected)[-_MOST_REJECTED:], policy=policy)

    def withdraw(self) -> Self:
        """The assignment without trust, provider and cleared flags; decisions about registrations stay."""
        return replace(self, trust=None, provider="", cleared="")


NOTHING_ASSIGNED = Assigned()


def pattern_id(namespace: str) -> Id:
    """The key of the row for a namespace and everything below it."""
    return capability_id(namespace + _BELOW, _EVERY)


def namespace_of_pattern(id: Id) -> str | None:
    """The namespace that a row is for; None if its key is the id of a capability."""
    pattern, name = parts(id)
    namespace = pattern.removesuffix(_BELOW)
    is_pattern = name == _EVERY and pattern.endswith(_BELOW) and _NAMESPACE.fullmatch(namespace)
    return namespace if is_pattern else None


def parse_target(text: str) -> Id:
    """The key of a row from `namespace/name` or `namespace.*`. Raises ValueError: it is neither."""
    if "/" not in text:
        namespace = text.removesuffix(_BELOW)
        if namespace == text or not _NAMESPACE.fullmatch(namespace):
            raise ValueError(f"must be namespace/name, or a namespace such as com.acme.*; not {text[:60]!r}")
        return pattern_id(namespace)
    return Id(text)


def row_keys(id: Id) -> Iterator[Id]:
    """The keys of the rows that concern a capability: its own, then its namespaces', nearest first."""
    yield id
    namespace = parts(id)[0]
    while _NAMESPACE.fullmatch(namespace):
        yield pattern_id(namespace)
        namespace = namespace.rpartition(".")[0]


def resolve(id: Id, rows: Mapping[Id, Assigned]) -> Assigned:
    """The assignment of a capability: trust of the nearest row that has it, provider of the nearest namespace with one.

    A provider in the row of a capability does not count: it is verified for a namespace.
    """
    own, *namespaces = (rows.get(key, NOTHING_ASSIGNED) for key in row_keys(id))
    trusts = (row.trust for row in (own, *namespaces) if row.trust is not None)
    providers = (row.provider for row in namespaces if row.provider)
    policies = (row.policy for row in (own, *namespaces) if row.policy)
    return replace(own, trust=next(trusts, None), provider=next(providers, ""), policy=next(policies, None))


def resolve_all(ids: Collection[Id], read: Callable[[Collection[Id]], Mapping[Id, Assigned]]) -> dict[Id, Assigned]:
    """The assignment of each of these, with one read of the rows that concern them."""
    rows = read(list(dict.fromkeys(key for id in ids for key in row_keys(id))))
    return {id: resolve(id, rows) for id in ids}


def of_operators(assigned: Mapping[Id, Assigned]) -> frozenset[Id]:
    """Those with trust or a verified provider, which whoever writes them would inherit."""
    return frozenset(id for id, each in assigned.items() if each.is_rated)


def parse_row(row: Mapping[str, object]) -> Assigned:
    """The valid part of a stored row, which an operator may have written by hand."""
    trust, provider = row.get("trust"), row.get("provider")
    stated = {name: str(row.get(name, "")) for name in ("cleared", "approved")}
    rejected = tuple(each for each in str(row.get("rejected", "")).split() if _FINGERPRINT.fullmatch(each))
    policy = next((each for each in Policy if each == row.get("policy")), None)
    return Assigned(
        trust=trust if isinstance(trust, int) and not isinstance(trust, bool) and 0 <= trust <= 100 else None,
        provider=provider.strip() if isinstance(provider, str) and is_provider(provider) else "",
        policy=policy,
        rejected=rejected[-_MOST_REJECTED:],
        **{name: text for name, text in stated.items() if _FINGERPRINT.fullmatch(text)},
    )


def is_provider(text: str) -> bool:
    """True if this can be the name of a provider: on one line, not too long, and as visible as an owner's must be."""
    breaks = any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in text)
    return bool(text.strip()) and len(text) <= MAX_PROVIDER and not breaks and not find_hidden(text, allow_shaping=True)
