"""Working stand-ins for every port, in memory. The contract suites run on them, too, so they keep their promises."""

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from mats.adapters.clock import FOR_EVER, Retention
from mats.adapters.dynamodb.tables import to_row
from mats.adapters.threads import CallersThread
from mats.domain.capability.capability import Id, parts
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, PreconditionFailed
from mats.domain.profile.assignment import Assigned, resolve_all
from mats.domain.profile.index_fields import lexical_fields
from mats.domain.profile.index_keys import TRUST, TRUSTED_KEYS, index_keys, name_key
from mats.domain.profile.origin import Placed, place, version_of
from mats.domain.profile.profile import Profile, Status
from mats.domain.search.lookups import NameUse, Vector
from mats.domain.search.query import Filter
from mats.domain.search.scale import Scores, best_first
from mats.domain.text.spelling import nearest, word_of
from mats.domain.text.words import stem, words
from mats.ports import NO_LABELS, Item, Labels, RerankResult, Stored, Written
from tests.aws.items import MAX_BYTES, item_bytes


@dataclass
class FakeClock:
    """Stands still unless told to move."""

    time: str = "2026-01-01T00:00:00+00:00"
    ms: float = 0.0

    def now(self) -> str:
        return self.time

    def elapsed_ms(self) -> float:
        return self.ms


@dataclass
class CountingIds:
    """1, 2, 3 …"""

    given: int = 0

    def __call__(self) -> str:
        self.given += 1
        return str(self.given)


class MemoryRegistry:
    """Items in a dict; anything may be put past the contract with `items[...]`."""

    def __init__(self) -> None:
        self.items: dict[Id, Item] = {}

    def get(self, ids: Collection[Id]) -> Mapping[Id, Item]:
        return {id: self.items[id] for id in ids if id in self.items}

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        return {r.id: self._put(r) for r in registrations}

    def _put(self, registration: Registration) -> Placed:
        placed = self.placement(registration)
        if placed.writes:
            self.items[registration.id] = registration.item()
        return placed

    def placement(self, registration: Registration) -> Placed:
        before = self.items.get(registration.id)
        return place(before and version_of(before), version_of(registration.item()))

    def remove(self, id: Id) -> bool:
        return self.items.pop(id, None) is not None

    def remove_same(self, id: Id, item: Item) -> bool:
        if id in self.items and self.items[id] != item:
            raise PreconditionFailed(id)
        return self.remove(id)

    def ids(self, *, after: Id | None = None, namespace: str = "") -> Iterator[Id]:
        found = sorted(id for id in self.items if after is None or id > after)
        yield from (id for id in found if not namespace or id.startswith((f"{namespace}.", f"{namespace}/")))


class MemoryTrust:
    """Trust in a dict."""

    def __init__(self) -> None:
        self.given: dict[Id, Assigned] = {}

    def get(self, ids: Collection[Id]) -> Mapping[Id, Assigned]:
        return resolve_all(ids, self.rows)

    def rows(self, keys: Collection[Id]) -> Mapping[Id, Assigned]:
        return {key: self.given[key] for key in keys if key in self.given}

    def put(self, key: Id, assigned: Assigned) -> None:
        if assigned:
            self.given[key] = assigned
        else:
            self.given.pop(key, None)


class MemoryProfiles:
    """Profiles and their versions in dicts; a row that DynamoDB would refuse is refused."""

    def __init__(self, retention: Retention = FOR_EVER) -> None:
        self.kept: dict[Id, Stored] = {}
        self.earlier: dict[Id, list[tuple[Profile, int | None]]] = {}
        self.retention = retention

    def get(self, ids: Collection[Id]) -> Mapping[Id, Stored]:
        return {id: self.kept[id] for id in ids if id in self.kept}

    def save(self, changes: Sequence[Stored]) -> Collection[Id]:
        late = []
        for change in changes:
            id, before = change.profile.id, self.kept.get(change.profile.id)
            if (before.profile.rev if before else 0) != change.profile.rev - 1:
                late.append(id)
                continue
            row = to_row({**change.profile.model_dump(mode="json"), "row": "profile"})
            row |= {} if change.vector is None else {"vector": {"B": bytes(4 * len(change.vector))}}
            assert item_bytes(row) <= MAX_BYTES, f"{id} has {item_bytes(row):,} bytes"
            if before:
                self.earlier.setdefault(id, []).append((before.profile, self.retention.expires_at()))
            self.kept[id] = change
        return late

    def mark_indexed(self, revs: Mapping[Id, int]) -> None:
        for id, rev in revs.items():
            entry = self.kept.get(id)
            if entry and entry.profile.rev == rev:
                marked = entry.profile.model_copy(update={"indexed_rev": rev})
                self.kept[id] = replace(entry, profile=marked)

    def versions(self, id: Id) -> Sequence[Profile]:
        now = self.retention.now()
        return [profile for profile, expires in self.earlier.get(id, []) if expires is None or expires > now]

    def removals(self, namespace: str) -> Sequence[Profile]:
        gone = [id for id, entry in self.kept.items() if entry.profile.status is Status.DELETED]
        latest = [self.versions(id)[-1:] for id in gone if parts(id)[0] == namespace]
        return [profile for those in latest for profile in those]

    def erase(self, id: Id) -> int:
        if id in self.kept and self.kept[id].profile.status is not Status.DELETED:
            raise DependencyFailed("written again")
        return len(self.earlier.pop(id, []))

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        yield from sorted(id for id in self.kept if after is None or id > after)


class MemoryIndex:
    """Entries in a dict; the lexical score is the share of the terms that an entry holds."""

    name = "memory"

    def __init__(self, encoder: str = "") -> None:
        """Vectors of another encoder are compared with none; without a name, those of any are compared."""
        self.entries: dict[Id, Stored] = {}
        self.encoder = encoder

    def put(self, entries: Sequence[Stored]) -> None:
        for entry in entries:
            before = self.entries.get(entry.profile.id)
            if before is None or before.profile.rev < entry.profile.rev:
                self.entries[entry.profile.id] = entry

    @contextmanager
    def with_candidate(self, entry: Stored) -> "Iterator[MemoryIndex]":
        other = MemoryIndex()
        other.entries = {**self.entries, entry.profile.id: entry}
        yield other

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Scores:
        scores = {id: self._score(terms, entry) for id, entry in self._visible_to(admitted).items()}
        return _best({id: score for id, score in scores.items() if score > 0}, depth)

    def exact(self, keys: Collection[str], admitted: Filter, *, most: int) -> Sequence[Id]:
        held = {id: index_keys(entry.profile) for id, entry in self._visible_to(admitted).items()}
        found = [id for id, own in held.items() if not set(keys).isdisjoint(own)]
        return sorted(found, key=lambda id: -max(TRUST.get(key, 0) for key in held[id]))[:most]

    def count(self, admitted: Filter) -> int:
        return len(self._visible_to(admitted))

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Scores:
        return _best(self.cosine_of(vector, self._visible_to(admitted)), depth)

    def _is_comparable(self, entry: Stored) -> bool:
        return self.encoder in ("", entry.profile.encoder)

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Mapping[Id, float]:
        admitted = self._visible_to(None)
        return {id: self._score(terms, admitted[id]) for id in ids if id in admitted}

    def cosine_of(self, vector: Vector, ids: Collection[Id]) -> Mapping[Id, float]:
        admitted = self._visible_to(None)
        found = {id: admitted[id].vector for id in ids if id in admitted and self._is_comparable(admitted[id])}
        return {
            id: max(-1.0, min(1.0, sum(a * b for a, b in zip(vector, own, strict=True))))
            for id, own in found.items()
            if own is not None
        }

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        admitted = self._visible_to(None)
        return {id: admitted[id].profile for id in ids if id in admitted}

    def names(self, asked: Collection[str], admitted: Filter) -> Mapping[str, NameUse]:
        visible = self._visible_to(admitted)
        keys = {id: set(index_keys(entry.profile)) for id, entry in visible.items()}
        found = {}
        for name in asked:
            owned = {id for id, own in keys.items() if name_key(name) in own}
            words = name.split()
            others = {id for id, entry in visible.items() if self._score(words, entry) == 1.0} - owned
            trusted = {id for id in owned if not keys[id].isdisjoint(TRUSTED_KEYS)}
            spaces, known = ({visible[id].profile.namespace for id in ids} for ids in (owned, trusted))
            if owned:
                found[name] = NameUse(len(owned), len(others), spaces, known)
        return found

    def spellings(self, words: Collection[str], admitted: Filter) -> Mapping[str, str]:
        every = {term for entry in self._visible_to(admitted.visible).values() for term in _terms_of(entry)}
        seen = Counter(term for entry in self._visible_to(admitted).values() for term in _terms_of(entry))
        near = {
            word: nearest(word, {each: count for each, count in seen.items() if each[0] == word[0]})
            for word in words
            if stem(word) not in every
        }
        return {word: word_of(each) for word, each in near.items() if each}

    def namespaces(self, admitted: Filter) -> Collection[str]:
        return {entry.profile.namespace for entry in self._visible_to(admitted).values()}

    def page(self, admitted: Filter, *, after: Id | None, limit: int) -> Sequence[Id]:
        return [id for id in sorted(self._visible_to(admitted)) if after is None or id > after][:limit]

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        yield from (id for id in sorted(self.entries) if id > (after or ""))

    def revisions(self, ids: Collection[Id]) -> Mapping[Id, int]:
        return {id: self.entries[id].profile.rev for id in ids if id in self.entries}

    def purge(self, ids: Collection[Id]) -> None:
        for id in ids:
            if id in self.entries and not self.entries[id].profile.findable:
                del self.entries[id]

    def _visible_to(self, wanted: Filter | None) -> dict[Id, Stored]:
        return {
            id: entry
            for id, entry in self.entries.items()
            if entry.profile.findable and (wanted is None or _passes(entry.profile, wanted))
        }

    @staticmethod
    def _score(terms: Sequence[str], entry: Stored) -> float:
        held = {stem(word) for text in lexical_fields(entry.profile).values() for word in words(text)}
        return sum(stem(term) in held for term in terms) / len(terms) if terms else 0.0


def _terms_of(entry: Stored) -> set[str]:
    texts = lexical_fields(entry.profile).values() if entry.profile.findable else ()
    return {stem(word) for text in texts for word in words(text)}


def _passes(profile: Profile, wanted: Filter) -> bool:
    return (
        wanted.sees(profile.visible_to)
        and wanted.admits_kind(profile.kind)
        and wanted.admits_namespace(profile.namespace)
        and wanted.admits_tags(profile.filtered_tags)
        and (not wanted.scope.keys or not wanted.scope.keys.isdisjoint(index_keys(profile)))
        and wanted.scope.without_keys.isdisjoint(index_keys(profile))
    )


def _best(scores: Scores, depth: int) -> Scores:
    return {id: scores[id] for id in best_first(scores)[:depth]}


@dataclass
class FakeEncoder:
    """Bags of hashed words: texts that share words are close."""

    name: str = "fake-encoder"
    dimension: int = 32
    broken: bool = False
    encoded: list[str] = field(default_factory=list)

    def encode_query(self, text: str) -> Vector:
        return self.encode_documents([text])[0]

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        if self.broken:
            raise DependencyFailed("the encoder is down")
        self.encoded.extend(texts)
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        components = [1e-3] * self.dimension
        for word in words(text):
            components[int.from_bytes(hashlib.md5(stem(word).encode()).digest()[:4]) % self.dimension] += 1.0
        length = math.sqrt(sum(c * c for c in components))
        return array("f", (c / length for c in components))


@dataclass
class ScriptedWriter:
    """Writes what it is told to; an exception in the script is raised."""

    script: Callable[[Registration], Written | Exception]
    name: str = "fake-writer"
    prompt: str = "prompt-1"
    asked: list[Id] = field(default_factory=list)
    labels: list[Labels] = field(default_factory=list)

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        self.asked.append(registration.id)
        self.labels.append(labels)
        written = self.script(registration)
        if isinstance(written, Exception):
            raise written
        return written


@dataclass
class ScriptedReranker:
    """Thinks what it is told to; an exception in the script is raised."""

    script: Callable[[str, Sequence[Profile]], RerankResult | Exception]
    name: str = "fake-reranker"
    prompt: str = "prompt-1"
    asked: int = 0
    labels: list[Labels] = field(default_factory=list)

    def rerank(self, query: str, candidates: Sequence[Profile], labels: Labels = NO_LABELS) -> RerankResult:
        self.asked += 1
        self.labels.append(labels)
        result = self.script(query, candidates)
        if isinstance(result, Exception):
            raise result
        return result


def raising(error: Exception) -> Callable[..., Any]:
    """A function that only raises this."""

    def call(*_: object, **__: object) -> Any:
        raise error

    return call


AtOnce = CallersThread
"""Runs what is submitted there and then."""


class Never(Executor):
    """Takes work and never does it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        return Future()
