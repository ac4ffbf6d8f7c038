"""The search index port over an OpenSearch domain."""

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from threading import Event
from typing import Any

from mats.adapters.opensearch import mapping
from mats.adapters.opensearch.domain import Domain, Missing
from mats.domain.capability.capability import Id
from mats.domain.profile.index_keys import name_key
from mats.domain.profile.profile import Profile
from mats.domain.search.bm25 import REFERENCE
from mats.domain.search.lookups import NameUse, Vector
from mats.domain.search.query import Filter
from mats.domain.search.scale import Scores, best_first
from mats.domain.text.spelling import nearest, word_of
from mats.domain.text.words import stem
from mats.ports import Stored, Target

ALIAS = "capabilities"
LOGGER = logging.getLogger("mats")
_SLACK = 16  # Hits requested beyond the depth, so that ties at the cut are broken by id
_BULK = 200
_BULK_BYTES = 5_000_000  # Limit of a bulk request in bytes: small nodes accept 10 MB; a single entry is far smaller
_PAGE = 5_000
_BY_ID = {"sort": [{"id": "asc"}], "track_total_hits": False}
_PATIENT_S = 30
_GUARDED_S = 0.5
"""`gc_deletes: 0` frees a deleted id when OpenSearch's clock has moved on, which it does every 0.2 seconds."""


@dataclass(frozen=True, slots=True)
class OpenSearchIndex:
    """Searches the index behind the alias; writes to every target, so that each can be promoted at any time.

    `targets` are read for each write, after the profiles were saved: an index that is added later is filled from the
    profiles, so no write is missed.
    """

    domain: Domain
    targets: Callable[[], Sequence[Target]]
    restore: Callable[[Target], None] = lambda target: None
    encoder: str = ""
    read: str = ALIAS
    refresh: str = "false"
    """`true`: searches see a write at once; otherwise within a second, without a wait in the write."""
    engine: str = "2.19"  # Version of OpenSearch
    _grown: Event = field(default_factory=Event)
    """Set once the index has REFERENCE entries, in which words are not counted before each search."""

    @property
    def name(self) -> str:
        """Engine and version of the mapping."""
        return f"opensearch-{mapping.VERSION}"

    def put(self, entries: Sequence[Stored]) -> None:
        """Write to every target; a target that is missing, because its domain was replaced, is created again, empty."""
        for target in self.targets() if entries else ():
            try:
                self.fill(target, entries)
            except Missing:
                self.restore(target)
                self.fill(target, entries)

    def fill(self, target: Target, entries: Sequence[Stored]) -> None:
        """Write revisions to one index; an older or equal one is a no-op.

        Raises Missing: there is no such index. DependencyFailed: some were not written; the others were.
        """
        for part in _parts(entries, target):
            self.domain.bulk(part, alias=mapping.write_alias(target.name), refresh=self.refresh)

    def lexical(self, terms: Sequence[str], admitted: Filter, *, depth: int) -> Scores:
        if not terms:
            return {}
        query = {"bool": {"must": self._any_word(terms), "filter": mapping.filter_clauses(admitted)}}
        return _best(dict(self._bm25(query, depth + _SLACK)), depth)

    def exact(self, keys: Collection[str], admitted: Filter, *, most: int) -> Sequence[Id]:
        """Of equal trust, the first by id. Entries of an earlier release are found after `mats reindex`."""
        if not keys:
            return []
        clauses = [*mapping.filter_clauses(admitted), mapping.any_key(keys)]
        query = {"bool": {"filter": clauses, "should": mapping.BY_TRUST}}
        return self._ids(query, most, sort=["_score", {"id": "asc"}])

    def count(self, admitted: Filter) -> int:
        """Entries of an earlier release have no keys of days before `mats reindex`."""
        found = self._aggregate(mapping.filter_clauses(admitted), {"all": {"filter": {"match_all": {}}}})
        return int(found["all"]["doc_count"]) if found else 0

    def neural(self, vector: Vector, admitted: Filter, *, depth: int) -> Scores:
        """Approximate (HNSW)."""
        clauses = [*mapping.filter_clauses(admitted), {"term": {"encoder": self.encoder}}]
        query = mapping.nearest(vector, depth + _SLACK, clauses)
        found = self._search(query, depth + _SLACK)
        return _best({id: mapping.cosine(score) for id, score in found}, depth)

    def bm25_of(self, terms: Sequence[str], ids: Collection[Id]) -> Mapping[Id, float]:
        if not ids:
            return {}
        either = {"should": [self._any_word(terms)]} if terms else {}
        return dict(self._bm25({"bool": {"filter": mapping.among(ids), **either}}, len(ids)))

    def cosine_of(self, vector: Vector, ids: Collection[Id]) -> Mapping[Id, float]:
        """Exact, because k is the number of ids."""
        if not ids:
            return {}
        clauses = [*mapping.among(ids), {"term": {"encoder": self.encoder}}]
        found = self._search(mapping.nearest(vector, len(ids), clauses), len(ids))
        return {id: mapping.cosine(score) for id, score in found}

    def fetch(self, ids: Collection[Id]) -> Mapping[Id, Profile]:
        if not ids:
            return {}
        try:
            found = self.domain.documents(self.read, [mapping.key(id) for id in ids], fields="profile")
        except Missing:
            return {}
        profiles = [
            Profile.model_validate(each["_source"]["profile"]) for each in found if "profile" in each["_source"]
        ]
        return {profile.id: profile for profile in profiles}

    def names(self, asked: Collection[str], admitted: Filter) -> Mapping[str, NameUse]:
        """With a second search if there are any."""
        clauses = mapping.filter_clauses(admitted)
        having = [*clauses, mapping.any_key(list(map(name_key, asked)))]
        numbers = {str(number): name for number, name in enumerate(asked)}
        found = self._aggregate(having, {number: mapping.owners_of(name) for number, name in numbers.items()})
        known = {number: use for number, use in found.items() if use["doc_count"]}
        others = self._aggregate(clauses, {number: mapping.elsewhere(numbers[number]) for number in known})
        return {
            numbers[number]: NameUse(
                int(use["doc_count"]),
                int(others[number]["doc_count"]),
                mapping.namespaces_in(use["spaces"]),
                mapping.namespaces_in(use["trusted"]["spaces"]),
            )
            for number, use in known.items()
        }

    def spellings(self, words: Collection[str], admitted: Filter) -> Mapping[str, str]:
        """With two more searches if a word is unknown."""
        counts = self._count_having(admitted.visible, map(stem, words))
        if not (unknown := [word for word in words if counts and not counts[stem(word)]]):
            return {}
        nothing: dict[str, list[str]] = {}
        options = self.domain.search(mapping.stems_suggested, self.read, mapping.stems_near(unknown), nothing=nothing)
        seen = self._count_having(admitted, chain.from_iterable(options.values()))
        near = {word: nearest(word, {each: seen[each] for each in stems}) for word, stems in options.items() if seen}
        return {word: word_of(each) for word, each in near.items() if each}

    def _count_having(self, admitted: Filter, stems: Iterable[str]) -> Mapping[str, int]:
        """The number of entries that the filter admits whose text has each of these; empty if there is no index."""
        wanted = {each: {"filter": {"term": {"text": each}}} for each in stems}
        counts = self._aggregate(mapping.filter_clauses(admitted), wanted)
        return {each: int(count["doc_count"]) for each, count in counts.items()}

    def namespaces(self, admitted: Filter) -> Collection[str]:
        found = self._aggregate(mapping.filter_clauses(admitted), {"spaces": mapping.ALL_NAMESPACES})
        return mapping.namespaces_in(found["spaces"]) if found else ()

    def _aggregate(self, clauses: list[dict[str, Any]], wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """The result of each of these aggregations over the matches; empty if there is no index."""
        if not wanted:
            return {}
        body = {"size": 0, "query": mapping.every(clauses), "aggs": wanted}
        return self.domain.search(lambda response: dict(response["aggregations"]), self.read, body, nothing={})

    def page(self, admitted: Filter, *, after: Id | None, limit: int) -> Sequence[Id]:
        return self._ids(mapping.every(mapping.filter_clauses(admitted)), limit, after=after)

    def _ids(
        self,
        query: Mapping[str, Any],
        most: int,
        *,
        after: Id | None = None,
        timeout_s: float | None = None,
        **order: Any,
    ) -> list[Id]:
        """The first ids that match, by id if no other order is given; none if there is no index."""
        start = {} if after is None else {"search_after": [after]}
        body = {"size": most, "query": query, **_BY_ID, **_only("id"), **order, **start}
        return self.domain.search(_ids, self.read, body, timeout_s=timeout_s, nothing=[])

    def ids(self, *, after: Id | None = None) -> Iterator[Id]:
        """With the index behind the alias; of writes within the last second some may be missing."""
        while page := self._ids(mapping.every([]), _PAGE, after=after, timeout_s=_PATIENT_S):
            yield from page
            after = page[-1]

    def revisions(self, ids: Collection[Id]) -> Mapping[Id, int]:
        try:
            return self.revisions_in(self.read, ids)
        except Missing:
            return {}

    def revisions_in(self, index: str, ids: Collection[Id]) -> Mapping[Id, int]:
        """The same, of one index. Raises Missing: there is no such index."""
        keys = [mapping.key(id) for id in ids]
        found = self.domain.documents(index, keys, fields="id,rev", timeout_s=_PATIENT_S) if keys else []
        return {Id(each["_source"]["id"]): int(each["_source"]["rev"]) for each in found}

    def purge(self, ids: Collection[Id]) -> None:
        """Delete the tombstones from every target."""
        clauses = [{"term": {"findable": False}}, {"terms": {"id": list(ids)}}]
        targets = self.targets() if ids else ()
        for target in targets:
            self.domain.refresh(target.name)  # delete-by-query searches for them
            self.domain.delete_where(target.name, {"bool": {"filter": clauses}})
        if targets:
            time.sleep(_GUARDED_S)

    def _any_word(self, terms: Sequence[str]) -> dict[str, Any]:
        """A query for any of these words; in a small index each is worth what it is in a reference."""
        if self._grown.is_set():
            return mapping.any_word(terms)
        found = self._aggregate([mapping.FINDABLE], mapping.holders(terms))
        documents, *holding = [int(found[name]["doc_count"]) for name in sorted(found)] or [0] * (len(terms) + 1)
        if documents >= REFERENCE:
            self._grown.set()
        return mapping.any_weighted_word(terms, holding, documents)

    def _bm25(self, query: Mapping[str, Any], size: int) -> list[tuple[Id, float]]:
        factor = mapping.bm25_factor(self.engine)
        return [(id, score * factor) for id, score in self._search(query, size)]

    def _search(self, query: Mapping[str, Any], size: int) -> list[tuple[Id, float]]:
        """Ids and scores, best first; empty if there is no index."""
        body = {"size": size, "query": query, "track_total_hits": False, **_only("id")}
        try:
            return self.domain.search(_scores, self.read, body)
        except Missing as error:
            LOGGER.warning(
                "nothing is indexed yet, or the domain is new and `mats reconcile` has to fill it: %s", error
            )
            return []


def _ids(response: Mapping[str, Any]) -> list[Id]:
    return [Id(hit["fields"]["id"][0]) for hit in response["hits"]["hits"]]


def _scores(response: Mapping[str, Any]) -> list[tuple[Id, float]]:
    return list(zip(_ids(response), (float(hit["_score"]) for hit in response["hits"]["hits"]), strict=True))


def _only(*fields: str) -> dict[str, Any]:
    """Return only these fields, from doc values instead of stored documents."""
    return {"_source": False, "stored_fields": "_none_", "docvalue_fields": list(fields)}


def _best(scores: Scores, depth: int) -> Scores:
    return {id: scores[id] for id in best_first(scores)[:depth]}


def _parts(entries: Sequence[Stored], target: Target) -> Iterator[str]:
    """The bodies of bulk requests, each within the limit of small nodes."""
    part: list[str] = []
    size = 0
    for entry in entries:
        profile = entry.profile
        about = {"_id": mapping.key(profile.id), "version": profile.rev, "version_type": "external"}
        action = f"{json.dumps({'index': about})}\n{json.dumps(mapping.document(entry, target))}\n"
        if part and (size + len(action) > _BULK_BYTES or len(part) == _BULK):
            yield "".join(part)
            part, size = [], 0
        part.append(action)
        size += len(action)  # JSON in ASCII: a character is a byte
    if part:
        yield "".join(part)
