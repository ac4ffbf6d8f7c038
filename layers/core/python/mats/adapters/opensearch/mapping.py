"""Mapping, documents and queries of the OpenSearch index: docs/decisions/0012.

All lexical fields are one text that repeats each field as many times as twice its weight; so the frequency of a word
is that of BM25F with whole weights (Robertson, Zaragoza & Taylor, CIKM 2004), and k1 is twice the usual 1.2.
"""

import hashlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from mats.domain.capability.capability import Id, Kind
from mats.domain.profile.index_fields import FIELD_WEIGHTS, lexical_fields
from mats.domain.profile.index_keys import TRUST, TRUSTED_KEYS, index_keys, name_key
from mats.domain.search.bm25 import in_reference
from mats.domain.search.lookups import Vector
from mats.domain.search.query import Filter
from mats.domain.text.words import stem
from mats.ports import Stored, Target

VERSION = 1  # Version of this module; after an increment, run `mats reindex`

EVERYONE = ""  # Value of `audiences` for a capability visible to everyone; it cannot be the name of an audience

_MERGES: Mapping[str, Any] = {"segments_per_tier": 2, "max_merge_at_once": 2, "floor_segment": "64mb"}
"""Few segments: every one is a graph to search, and searches are far more frequent than writes."""
_SEARCHED = 400  # Entries that a search of a graph keeps on its way: the fewer the graphs, the more they need (0061)
FINDABLE: dict[str, Any] = {"term": {"findable": True}}  # The clause that leaves out tombstones
_TIMES_WEIGHT = 2
_K1, _B = 1.2, 0.75
_SUGGESTED = 10
_LONGEST_TOKEN = 200  # Characters; Lucene refuses a document with a token of more than 32,766 bytes
_ANALYSIS: Mapping[str, Any] = {
    "analyzer": {
        "words": {
            "type": "custom",
            "tokenizer": "letters_and_digits",
            "filter": ["lowercase", "asciifolding", "whole", "porter_stem"],
        }
    },
    "tokenizer": {"letters_and_digits": {"type": "pattern", "pattern": r"[^\p{L}\p{M}\p{N}\p{Co}]+"}},
    "filter": {"whole": {"type": "truncate", "length": _LONGEST_TOKEN}},
}


def write_alias(index: str) -> str:
    """The alias for writes; OpenSearch would create a missing index by name, but not if an alias is required."""
    return f"{index}-write"


def index_body(dimension: int | None, *, aliases: Collection[str], replicas: str, refresh: str) -> dict[str, Any]:
    """Settings, aliases and strict mapping of an index for vectors of this dimension; None: without vectors.

    `replicas` is the minimum and maximum number of copies, depending on the number of nodes: `0-2`; `refresh` the
    maximum delay until searches see a write: `1s`.
    """
    keyword = {"type": "keyword"}
    properties: dict[str, Any] = {
        **dict.fromkeys(("id", "kind", "namespaces", "tags", "audiences", "encoder"), keyword),
        "rev": {"type": "long"},
        "findable": {"type": "boolean"},
        "text": {"type": "text", "analyzer": "words", "similarity": "weighted", "index_options": "freqs"},
        "profile": {"type": "object", "enabled": False},
    }
    if dimension:
        method = {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"}
        properties["vector"] = {"type": "knn_vector", "dimension": dimension, "method": method}
    return {
        "aliases": {alias: {} for alias in aliases},
        "settings": {
            "index": {
                "knn": True,
                "number_of_shards": 1,
                "auto_expand_replicas": replicas,
                "refresh_interval": refresh,
                "merge": {"policy": dict(_MERGES)},
                "gc_deletes": "0s",  # own tombstones reject late writes; a purged id is free at once
                "similarity": {"weighted": {"type": "BM25", "k1": _K1 * _TIMES_WEIGHT, "b": _B}},
            },
            "analysis": _ANALYSIS,
        },
        "mappings": {
            "dynamic": "strict",
            "_meta": {"version": VERSION},
            "_source": {"excludes": ["vector", "text"]},
            "properties": properties,
        },
    }


def key(id: Id) -> str:
    """The `_id` of a document: OpenSearch allows 512 bytes, and a name may be longer."""
    return hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()


def document(entry: Stored, target: Target) -> dict[str, Any]:
    """The document of a profile; a tombstone if it is not findable.

    Vectors of other encoders than the index's are not comparable and are left out.
    """
    profile = entry.profile
    if not profile.findable:
        return {"id": profile.id, "rev": profile.rev, "findable": False}
    audiences = [EVERYONE] if profile.visible_to is None else list(profile.visible_to)
    found: dict[str, Any] = {
        "id": profile.id,
        "rev": profile.rev,
        "findable": True,
        "kind": profile.kind,
        # `com.acme.pay` is in `com.acme` and `com`, too
        "namespaces": list(accumulate(profile.namespace.split("."), "{}.{}".format)),
        "tags": [*profile.filtered_tags, *map(_key_tag, index_keys(profile))],
        "audiences": audiences,
        "encoder": profile.encoder,
        "text": " ".join(_by_weight(lexical_fields(profile))),
        "profile": profile.model_dump(mode="json", exclude_defaults=True),
    }
    if entry.vector is not None and profile.encoder == target.encoder:
        found["vector"] = [float(f"{component:.9g}") for component in entry.vector]  # enough for a float32
    return found


def _by_weight(fields: Mapping[str, str]) -> Iterator[str]:
    for name, weight in FIELD_WEIGHTS.items():
        if fields[name]:
            yield from [fields[name]] * round(weight * _TIMES_WEIGHT)


def filter_clauses(wanted: Filter) -> list[dict[str, Any]]:
    """The clauses of a filter: findable, visible to the caller, and matching the query's filters."""
    clauses: list[dict[str, Any]] = [
        FINDABLE,
        {"terms": {"audiences": [EVERYONE, *sorted(wanted.audiences - {EVERYONE})]}},
    ]
    if wanted.kinds:
        clauses.append({"terms": {"kind": sorted(Kind(kind) for kind in wanted.kinds)}})
    if wanted.namespaces:
        clauses.append({"terms": {"namespaces": sorted(wanted.namespaces)}})
    if wanted.scope.exact_namespaces:
        exact = [{"prefix": {"id": f"{namespace}/"}} for namespace in sorted(wanted.scope.exact_namespaces)]
        clauses.append({"bool": {"should": exact, "minimum_should_match": 1}})
    if wanted.scope.keys:
        clauses.append(any_key(wanted.scope.keys))
    if wanted.scope.without_keys:
        clauses.append({"bool": {"must_not": any_key(wanted.scope.without_keys)}})
    clauses += [{"terms": {"tags": choice}} for choice in sorted(map(sorted, wanted.scope.tag_choices))]
    return clauses + [{"term": {"tags": tag}} for tag in sorted(wanted.tags)]


def any_word(terms: Sequence[str]) -> dict[str, Any]:
    return {"match": {"text": {"query": " ".join(terms), "operator": "or"}}}


def holders(terms: Sequence[str]) -> dict[str, Any]:
    """The aggregations that count entries, and those with each of these words, in this order by name."""
    counted = [{"match_all": {}}, *(any_word([term]) for term in terms)]
    return {f"{place:04}": {"filter": query} for place, query in enumerate(counted)}


def any_weighted_word(terms: Sequence[str], holding: Sequence[int], documents: int) -> dict[str, Any]:
    """As `any_word` over so many entries, with the worth of each word in a registry of at least REFERENCE."""
    boosts = [_worth(*in_reference(held, documents)) / _worth(held, documents) for held in holding]
    words = [{"match": {"text": {"query": term, "boost": boost}}} for term, boost in zip(terms, boosts, strict=True)]
    return {"bool": {"should": words, "minimum_should_match": 1}}


def _worth(holding: float, documents: float) -> float:
    """Lucene's idf."""
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))


def nearest(vector: Vector, count: int, clauses: list[dict[str, Any]]) -> dict[str, Any]:
    """The `count` nearest by cosine among the documents that match the clauses."""
    wanted = {
        "vector": vector.tolist(),
        "k": count,
        "filter": every(clauses),
        "method_parameters": {"ef_search": max(count, _SEARCHED)},
    }
    return {"knn": {"vector": wanted}}


def any_key(keys: Collection[str]) -> dict[str, Any]:
    """The clause for capabilities with one of these keys."""
    return {"terms": {"tags": sorted(map(_key_tag, keys))}}


def _key_tag(key: str) -> str:
    """A key among the tags; a line break is in no tag of an owner."""
    return f"{key[0]}\n{key[1:]}"


BY_TRUST = [{"constant_score": {"filter": any_key([key]), "boost": worth}} for key, worth in TRUST.items()]
"""Clauses that score a capability by its trust."""
_SPACES: Mapping[str, Any] = {"terms": {"field": "namespaces", "size": 1_000}}
ALL_NAMESPACES = {"terms": {"field": "namespaces", "size": 10_000}}
"""The aggregation that `namespaces_in` reads."""


def owners_of(name: str) -> dict[str, Any]:
    """The aggregation of the capabilities with a name."""
    trusted = {"filter": any_key(TRUSTED_KEYS), "aggs": {"spaces": _SPACES}}
    return {"filter": any_key([name_key(name)]), "aggs": {"spaces": _SPACES, "trusted": trusted}}


def elsewhere(name: str) -> dict[str, Any]:
    """The aggregation of the other capabilities whose text has the words of a name."""
    text = {"match": {"text": {"query": name, "analyzer": "whitespace", "operator": "and"}}}
    return {"filter": {"bool": {"filter": text, "must_not": any_key([name_key(name)])}}}


def stems_near(words: Collection[str]) -> dict[str, Any]:
    """A search for stems that are near to words, also to those that some entry has."""
    term = {
        "field": "text", "analyzer": "whitespace", "max_edits": 2, "min_word_length": 3, "size": _SUGGESTED,
        "suggest_mode": "always",
    }  # fmt: skip
    return {"size": 0, "suggest": {word: {"text": f"{stem(word)} {word}", "term": term} for word in words}}


def stems_suggested(found: Mapping[str, Any]) -> dict[str, list[str]]:
    """The stems that the response to `stems_near` suggests for each word, if any."""
    options = {
        word: [each["text"] for one in ones for each in one["options"]] for word, ones in found["suggest"].items()
    }
    return {word: stems for word, stems in options.items() if stems}


def namespaces_in(found: Mapping[str, Any]) -> frozenset[str]:
    """The namespaces with entries of their own, among those that are counted with all below them."""
    counts = {each["key"]: each["doc_count"] for each in found["buckets"]}
    below: dict[str, int] = {}
    for space, count in counts.items():
        parent = space.rpartition(".")[0]
        below[parent] = below.get(parent, 0) + count
    return frozenset(space for space, count in counts.items() if count > below.get(space, 0))


def every(clauses: list[dict[str, Any]]) -> dict[str, Any]:
    """A query that matches what matches each of these, without a score."""
    return {"bool": {"filter": clauses}}


def among(ids: Collection[Id]) -> list[dict[str, Any]]:
    """The clauses for the findable ones of these ids."""
    return [FINDABLE, {"terms": {"id": list(ids)}}]


def bm25_factor(engine: str) -> float:
    """Factor that makes a BM25 score of this version one of OpenSearch 2; later ones leave out the constant k1 + 1."""
    return 1.0 if int(engine.partition(".")[0]) < 3 else _K1 * _TIMES_WEIGHT + 1


def cosine(score: float) -> float:
    """The cosine behind a score of Lucene's k-NN, (1 + cosine) / 2."""
    return max(-1.0, min(1.0, 2 * score - 1))
