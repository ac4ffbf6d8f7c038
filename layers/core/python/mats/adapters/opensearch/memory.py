"""The memory over an OpenSearch domain, read through `memory/_search` only."""

import contextlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from mats.adapters.opensearch.domain import Domain, Missing
from mats.adapters.opensearch.mapping import cosine, key, write_alias
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import TAUGHT, unpack_vector
from mats.domain.learning.remembered import LESSONS, Near, Remembered, with_lessons
from mats.domain.search.lookups import Vector
from mats.domain.text.words import clip

MEMORY = "memory"
_TEXT = 300  # Characters of a request that are kept for `why.used_for`
_FIELDS = ("query_id", "text", "caller", "audiences", "at", "used", "passed_over", "confirmed")
_BULK = 100
_IS_LESSON = {"prefix": {"query_id": TAUGHT}}

T = TypeVar("T")


def memory_body(dimension: int, *, aliases: Collection[str], replicas: str, refresh: str) -> dict[str, Any]:
    """Settings and strict mapping of the index, for vectors of this dimension; arguments as of `index_body`."""
    method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
    keyword, unsearched = {"type": "keyword"}, {"type": "keyword", "index": False, "doc_values": False}
    return {
        "aliases": {alias: {} for alias in aliases},
        "settings": {
            "index": {"knn": True, "number_of_shards": 1, "auto_expand_replicas": replicas, "refresh_interval": refresh}
        },
        "mappings": {
            "dynamic": "strict",
            "_source": {"excludes": ["vector"]},
            "properties": {
                **dict.fromkeys(("query_id", "caller", "used", "encoder"), keyword),
                **dict.fromkeys(("text", "audiences", "at", "passed_over"), unsearched),
                "confirmed": {"type": "boolean"},
                "vector": {"type": "knn_vector", "dimension": dimension, "method": method},
            },
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchMemory:
    """The ports `Memory` and `MemoryWriter`. The writer creates the index at its first request.

    There is an index for each dimension of vectors; an alias names the latest one, which is read. Vectors of another
    encoder stay in the index and are not found.
    """

    domain: Domain
    encoder: str
    dimension: int
    alias: str = MEMORY
    refresh: str = "false"  # As of `OpenSearchIndex`
    replicas: str = "0-2"

    def nearest(self, vector: Vector, *, depth: int, without: Collection[str] = ()) -> Sequence[Near]:
        """Approximate (HNSW), in one search: the better of both scores of a document is its only one."""

        def knn(count: int, **clauses: Any) -> dict[str, Any]:
            admitted = {"bool": {"filter": [{"term": {"encoder": self.encoder}}], **clauses}}
            return {"knn": {"vector": {"vector": vector.tolist(), "k": count, "filter": admitted}}}

        all_but = {"must_not": [{"terms": {"caller": sorted(without)}}]} if without else {}
        queries = [knn(depth, **all_but), knn(LESSONS, must=[_IS_LESSON])]
        body = {"query": {"dis_max": {"queries": queries}}, "size": depth + LESSONS, "_source": list(_FIELDS)}
        near: Sequence[Near] = self._search(_near, body, nothing=[])
        return with_lessons(
            (each for each in near if each.memory.caller not in without),
            (each for each in near if each.memory.is_lesson),
            depth,
        )

    def lesson(self, query_id: str) -> Mapping[Id, str]:
        this = [{"term": {"query_id": query_id}}, {"term": {"encoder": self.encoder}}]
        body = {"query": {"bool": {"filter": this}}, "size": 1, "_source": ["used", "at"]}
        nothing: Mapping[Id, str] = {}
        return self._search(_ids_used, body, nothing=nothing)

    def with_outcomes(self, ids: Collection[Id], caller: str, *, without: Collection[str] = ()) -> Mapping[Id, int]:
        wanted = sorted(ids)
        if not wanted:
            return {}
        sure = {"bool": {"should": [{"term": {"caller": caller}}, {"term": {"confirmed": True}}]}}
        others = {"bool": {"must_not": [{"terms": {"caller": sorted(without)}}]}}
        callers = {"filter": others, "aggs": {"count": {"cardinality": {"field": "caller"}}}}
        aggregations = {"callers": callers, "sure": {"filter": sure}}
        by_id = {"terms": {"field": "used", "include": wanted, "size": len(wanted)}, "aggs": aggregations}
        filters = [{"terms": {"used": wanted}}, {"term": {"encoder": self.encoder}}]
        searched = {"bool": {"filter": filters, "must_not": [_IS_LESSON]}}
        body = {"query": searched, "size": 0, "aggs": {"by_id": by_id}}
        return self._search(_ids_that_count, body, nothing={})

    def version(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def remember(self, memories: Sequence[Remembered], *, version: int) -> None:
        """Vectors of another dimension are left out."""
        documents = {memory.query_id: _document(memory) for memory in memories}
        fitting = {id: document for id, document in documents.items() if len(document["vector"]) == self.dimension}
        lines = [_action("index", id, version) + json.dumps(document) + "\n" for id, document in fitting.items()]
        try:
            self._write(lines)
        except Missing:
            self._create()
            self._write(lines)

    def forget(self, query_ids: Collection[str], *, version: int) -> None:
        with contextlib.suppress(Missing):
            self._write([_action("delete", query_id, version) for query_id in query_ids])

    def follow(self) -> None:
        """Read the index of this dimension from now on, if another one is read and this one is there."""
        behind = self.domain.behind(self.alias)
        if behind and behind != [self._index]:
            with contextlib.suppress(Missing):
                self.domain.point(self.alias, self._index)

    def _search(self, parse: Callable[[Mapping[str, Any]], T], body: Mapping[str, Any], *, nothing: T) -> T:
        """The response parsed by `parse`; `nothing` if there is no index, or of another dimension."""
        try:
            return self.domain.search(parse, self.alias, body, nothing=nothing)
        except DependencyFailed as error:
            if "invalid dimension" in str(getattr(error.__cause__, "info", "")):
                return nothing
            raise

    @property
    def _index(self) -> str:
        return f"{self.alias}-{self.dimension}"

    def _create(self) -> None:
        """Create the index of this dimension, and read it from now on.

        The first one has the alias from the beginning; to move it from one of another dimension takes a permission for
        aliases.
        """
        others = [index for index in self.domain.behind(self.alias) if index != self._index]
        aliases = [write_alias(self._index), *([] if others else [self.alias])]
        body = memory_body(self.dimension, aliases=aliases, replicas=self.replicas, refresh="1s")
        self.domain.create(self._index, body)
        if others:
            self.domain.point(self.alias, self._index)

    def _write(self, lines: Sequence[str]) -> None:
        """Raises Missing: there is no index of this dimension."""
        for start in range(0, len(lines), _BULK):
            part = "".join(lines[start : start + _BULK])
            self.domain.bulk(part, alias=write_alias(self._index), refresh=self.refresh)


def _action(name: str, query_id: str, version: int) -> str:
    meta = {"_id": key(Id(query_id)), "version": version, "version_type": "external_gte"}
    return json.dumps({name: meta}) + "\n"


def _document(memory: Remembered) -> dict[str, Any]:
    fields = {name: sorted(value) if isinstance(value, frozenset) else value for name, value in asdict(memory).items()}
    return {**fields, "text": clip(memory.text, _TEXT), "vector": unpack_vector(memory.vector)}


def _near(response: Mapping[str, Any]) -> Sequence[Near]:
    return [Near(cosine(hit["_score"]), _memory_of(hit["_source"])) for hit in response["hits"]["hits"]]


def _ids_used(response: Mapping[str, Any]) -> Mapping[Id, str]:
    found = (hit["_source"] for hit in response["hits"]["hits"])
    return {Id(id): each["at"] for each in found for id in each["used"]}


def _ids_that_count(response: Mapping[str, Any]) -> dict[Id, int]:
    """The capabilities with outcomes of the asking caller, of an operator, or of two callers."""
    buckets = response["aggregations"]["by_id"]["buckets"]
    counted = [each for each in buckets if each["callers"]["count"]["value"] > 1 or each["sure"]["doc_count"]]
    return {Id(each["key"]): each["sure"]["doc_count"] for each in counted}


def _memory_of(source: Mapping[str, Any]) -> Remembered:
    sets = {name: frozenset(map(Id, source[name])) for name in ("audiences", "used", "passed_over")}
    return Remembered(**{**{name: source[name] for name in _FIELDS}, **sets})
