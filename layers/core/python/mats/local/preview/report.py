"""Preview of a registration: its profile, its rank for queries, the capabilities that outrank it and why.

Production discovery searches the index with the candidate in it, in a transaction that is rolled back. The reranker is
not called, because that costs a call per query: places are those of an answer without it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, time
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id, Kind
from mats.domain.capability.registration import Registration
from mats.domain.capability.suspicion import LONG as TOO_LONG
from mats.domain.errors import DependencyFailed, ReplyUnusable
from mats.domain.profile.index_fields import embedded_text, explain
from mats.domain.profile.origin import Placed, place, version_of
from mats.domain.profile.profile import Profile
from mats.domain.protocols.catalogue import invocation_of
from mats.domain.protocols.descriptors import A2A, MCP
from mats.domain.ranking.blend import Signal, Verdict
from mats.domain.ranking.query import Filter, Query
from mats.domain.shortlist.rank import Result, Shortlist
from mats.domain.text.words import clip, content_words, first_sentence, query_terms, split_identifier, words
from mats.domain.trust.near_duplicates import SIMILARITY, Wording
from mats.edge.snippets.capability import WAYS_TO_CALL
from mats.ports import CandidateIndex, Registry, SearchIndex, Stored, TrustBook, Vector
from mats.usecases.discover import Discover, Rerank
from mats.usecases.enrich import ProfileMaker
from mats.usecases.stages import Budgets, CircuitBreaker

DUPLICATE_COSINE = 0.95
"""Minimum cosine of near-duplicates.

Chosen by the nearest pairs of 2,400 profiles under all-MiniLM-L6-v2: above it they differ in a number or a word, below
it increasingly in purpose. Not measured for other encoders.
"""
THRESHOLDS = {"cosine": DUPLICATE_COSINE, "overlap": SIMILARITY}
_MAX_QUERIES, _MAX_COMPETITORS, _MAX_DUPLICATES = 5, 5, 5
_SEARCHED = 20  # Terms of the candidate's text that are searched, and hits of each side of retrieval that are compared
_NO_DIFFERENCE = 0.0005


class TriedQuery(NamedTuple):
    """A query and its origin: the owner's or the writer's examples, or derived from the text."""

    text: str
    origin: str


def choose_queries(registration: Registration, profile: Profile) -> list[TriedQuery]:
    """The owner's examples, else the writer's, else the description, the name and the tags."""
    for texts, origin in (
        (registration.examples, "its examples"),
        (profile.enrichment.positive_examples, "the writer's examples"),
    ):
        if texts:
            return [TriedQuery(clip(text, 2_000), origin) for text in texts[:_MAX_QUERIES]]
    description = first_sentence(profile.source.description, 200) if profile.source else ""
    tags = " ".join(tag for tag in registration.tags if tag not in (MCP, A2A))
    derived = [
        TriedQuery(description, "derived from its description"),
        TriedQuery(clip(split_identifier(registration.name), 200), "derived from its name"),
        TriedQuery(clip(tags, 200), "derived from its tags"),
    ]
    return [query for query in derived if content_words(query.text)]


def without_example(profile: Profile, example: str) -> Profile:
    examples = profile.enrichment.positive_examples
    others = tuple(text for text in examples if text != example)
    by_owner = sum(text != example for text in examples[: profile.owner_examples])
    enrichment = profile.enrichment.model_copy(update={"positive_examples": others})
    return profile.model_copy(update={"enrichment": enrichment, "owner_examples": by_owner})


@dataclass(frozen=True, slots=True, kw_only=True)
class Competitor:
    id: Id
    place: int
    score: float
    signals: Mapping[Signal, float]
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicate:
    """A near-duplicate of the candidate. The cosine is None if one of the two has no vector.

    `overlap` is the share of words that the texts of the two owners, or their descriptions, have in common, in [0, 1].
    """

    id: Id
    cosine: float | None
    overlap: float
    same_namespace: bool
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPreview:
    """The answer to a query: the candidate's place in it, counted from 1, or None.

    An owner's example matches the candidate word for word; `place_unaided` is the place without that example in the
    profile, as for another request of this kind. `matched` and `outranked_by` are those of that case.
    """

    query: str
    origin: str
    place: int | None
    place_unaided: int | None
    looked_at: int
    verdict: Verdict
    score: float | None
    signals: Mapping[Signal, float]
    matched: tuple[str, ...]
    outranked_by: tuple[Competitor, ...]


def competitors(ranked: Sequence[Result], candidate: Profile, query: str) -> tuple[Competitor, ...]:
    """The first capabilities ranked above the candidate; if it is not ranked, the first of all."""
    place = next((n for n, result in enumerate(ranked) if result.id == candidate.id), None)
    own, before = (ranked[place], ranked[:place]) if place is not None else (None, ranked)
    found = []
    for n, result in enumerate(before[:_MAX_COMPETITORS], start=1):
        why = (*_by_signals(result, own), *_by_words(result.candidate.profile, candidate, query))
        signals, why = result.signals, why or ("ranks first by its id",)
        found.append(Competitor(id=result.id, place=n, score=result.score, signals=signals, why=why))
    return tuple(found)


_ADVANTAGES = {
    Signal.RETRIEVAL: "is nearer in words and meaning",
    Signal.BM25: "has more of the words, or rarer ones",
    Signal.QUALITY: "has more trust",
    Signal.INTENT: "matches the type asked for better",
    Signal.LLM: "was scored higher by the reranker",
}


def _by_signals(result: Result, own: Result | None) -> Iterator[str]:
    """The signals in which a competitor is ahead, largest weighted difference first."""
    if own is None:
        yield "is nearer in words and meaning: retrieval did not find the candidate"
        return
    weight = {signal: result.weights.get(signal, 0.0) for signal in result.signals}
    gains = {s: weight[s] * (result.signals[s] - own.signals.get(s, 0.0)) for s in result.signals}
    for signal in sorted((s for s in gains if gains[s] > _NO_DIFFERENCE), key=lambda s: (-gains[s], s)):
        mine = f"{own.signals[signal]:.2f}" if signal in own.signals else "none"
        yield f"{_ADVANTAGES[signal]} ({signal} {result.signals[signal]:.2f} against {mine})"


def _by_words(competitor: Profile, candidate: Profile, query: str) -> Iterator[str]:
    terms = query_terms(query)
    ours, theirs = explain(terms, candidate), explain(terms, competitor)
    more = [word for word in theirs.matched if word not in ours.matched]
    if more:
        yield f"contains {', '.join(more[:5])}, which the candidate lacks"


def near_duplicates(
    index: SearchIndex, candidate: Profile, vector: Vector | None, admitted: Filter
) -> tuple[NearDuplicate, ...]:
    """Near-duplicates by meaning or by words, nearest first."""
    text = f"{split_identifier(candidate.name)} {candidate.source.description if candidate.source else ''}"
    wording = Wording.of(candidate)
    found = {*index.lexical(query_terms(text)[:_SEARCHED], admitted, depth=_SEARCHED)}
    if vector is not None:
        found |= {*index.neural(vector, admitted, depth=_SEARCHED)}
    others = index.fetch(found - {candidate.id})
    cosines = index.cosine_of(vector, list(others)) if vector is not None else {}
    compared = [
        NearDuplicate(
            id=id,
            cosine=cosines.get(id),
            overlap=wording.similarity(Wording.of(other)),
            same_namespace=other.namespace == candidate.namespace,
            description=clip(other.source.description if other.source else "", 200),
        )
        for id, other in others.items()
        if admitted.sees(other.visible_to)
    ]
    alike = [one for one in compared if (one.cosine or 0) >= DUPLICATE_COSINE or one.overlap >= SIMILARITY]
    return tuple(sorted(alike, key=lambda one: (-(one.cosine or 0), -one.overlap, one.id))[:_MAX_DUPLICATES])


SPARSE = 8  # A description with fewer content words is sparse
LONG = 1_500  # Characters of a description that an encoder may truncate (docs/decisions/0003)
EXAMPLES = 2
_NEAR_TOP = 3


class Weight(StrEnum):
    MUST = "must"  # It will be rejected, or flagged as suspicious
    SHOULD = "should"  # It will be found less often
    COULD = "could"


class Advice(NamedTuple):
    flag: str
    weight: Weight
    what: str
    fix: str


_FIXES = {
    "suspicious": (Weight.MUST, "remove this text; until then, every answer with it carries this warning"),
    "taken id": (Weight.MUST, "choose another name, or remove it first"),
    "very long": (
        Weight.SHOULD,
        "shorten it: answers with it carry a warning, and the reranker reads only its beginning",
    ),
    "no description": (Weight.SHOULD, "add a `description`: its task and its users, in the words of a request"),
    "sparse": (Weight.SHOULD, "add a second sentence with its input, its output and its use"),
    "no examples": (Weight.SHOULD, "add two to five requests it serves, as a user would type them"),
    "no schema": (
        Weight.SHOULD,
        "add `input_schema`, the JSON Schema of its input; parameter names and descriptions are searched, too",
    ),
    "long description": (
        Weight.COULD,
        "describe its task in the first two sentences: an encoder may truncate later ones",
    ),
    "few examples": (Weight.COULD, "add one or two with other words"),
    "opaque name": (Weight.COULD, "name it after its task; if it cannot be renamed, describe the task fully"),
    "undescribed parameters": (
        Weight.COULD,
        "add a `description` to each property: it is searched, and models need it to fill the parameter",
    ),
    "replaces": (Weight.COULD, "check that it is yours"),
}
"""The weight of each flag, and how to improve."""


def _advice(flag: str, what: str) -> Advice:
    weight, fix = _FIXES[flag]
    return Advice(flag, weight, what, fix)


def about_registration(registration: Registration, profile: Profile) -> Iterator[Advice]:
    """Advice about the registration by itself."""
    for reason in profile.suspicious:
        if reason.startswith(TOO_LONG):
            yield _advice("very long", f"all its text together {reason}")
        else:
            yield _advice("suspicious", f"its text {reason}")
    content = set(content_words(registration.description))
    if not content:
        yield _advice("no description", "its `description` is empty")
    elif len(content) < SPARSE:
        yield _advice("sparse", f"its description has {len(content)} content words")
    elif len(registration.description) > LONG:
        yield _advice("long description", f"its description has {len(registration.description):,} characters")
    if not profile.enrichment.positive_examples:
        yield _advice("no examples", "its `examples` are empty")
    elif len(registration.examples) < EXAMPLES and not profile.enriched:
        yield _advice("few examples", "it has one example only")
    if not any(len(word) > 2 and not word.isdigit() for word in words(split_identifier(registration.name))):
        yield _advice("opaque name", f"its name {registration.name[:60]!r} contains no word")
    schema = registration.input_schema
    if registration.kind is Kind.TOOL and schema is None:
        yield _advice("no schema", "without `input_schema`, models are told that the tool takes any object")
    if schema and (bare := parameters_without_description(schema)):
        named = ", ".join(f"`{name[:40]}`" for name in bare[:5]) + (" and others" if len(bare) > 5 else "")
        yield _advice("undescribed parameters", f"parameters without a description: {named}")
    if invocation_of(registration) is None:
        fix = WAYS_TO_CALL[registration.kind]
        yield Advice("no way to call", Weight.COULD, "nothing in it says how it is called", fix)


def about_id(placed: Placed, registration: Registration) -> Iterator[Advice]:
    if placed is Placed.OTHER_KIND:
        yield _advice("taken id", f"{registration.id} is registered as another kind")
    elif placed is Placed.CHANGED:
        yield _advice("replaces", f"{registration.id} is registered and would be replaced")


def about_places(queries: Iterable[QueryPreview]) -> Iterator[Advice]:
    """Advice about queries whose answer does not have the candidate first without this example."""
    for one in queries:
        if one.place_unaided == 1:
            continue
        where = f"at place {one.place_unaided}" if one.place_unaided else f"not among the first {one.looked_at}"
        aided = ", unless it contains the query word for word" if one.place != one.place_unaided else ""
        lacking = [word for word in query_terms(one.query) if word not in one.matched]
        fix = f"add {', '.join(lacking[:5])} to its description" if lacking else "describe how it differs from others"
        weight = Weight.COULD if one.place_unaided and one.place_unaided <= _NEAR_TOP else Weight.SHOULD
        yield Advice("outranked", weight, f"{clip(one.query, 80)!r} finds it {where}{aided}", fix)


def about_duplicates(duplicates: Iterable[NearDuplicate]) -> Iterator[Advice]:
    for one in duplicates:
        if one.same_namespace:
            fix = "register only one of the two, or describe in both how they differ"
        else:
            fix = (
                "if both are the same, register only one; if not, describe how they differ; if the other copied it, an "
                "operator can say so: mats trust ID 60"
            )
        near = "" if one.cosine is None else f"cosine {one.cosine:.2f}, "
        what = f"it is similar to {one.id} ({near}{one.overlap:.0%} of the words in common)"
        yield Advice("near-duplicate", Weight.SHOULD, what, fix)


def parameters_without_description(schema: Mapping[str, Any]) -> Sequence[str]:
    """Properties of a schema that have neither a description nor choices nor properties of their own."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return []
    explaining = ("description", "title", "enum", "examples", "const", "properties")
    return [
        str(n) for n, p in properties.items() if not (isinstance(p, Mapping) and any(key in p for key in explaining))
    ]


_BUDGETS = Budgets(retrieve_ms=20_000)  # No caller waits online


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewReport:
    profile: Profile
    placed: Placed
    described_by: str
    encoded: str  # The text for the encoder
    queries: tuple[QueryPreview, ...]
    duplicates: tuple[NearDuplicate, ...]
    advice: tuple[Advice, ...]
    without: tuple[str, ...]  # The models that were missing or failed, and why

    def to_json(self) -> dict[str, Any]:
        profile = self.profile
        return {
            "id": profile.id,
            "kind": profile.kind,
            "placed": self.placed,
            "profile": {
                "described_by": self.described_by,
                **profile.enrichment.model_dump(mode="json"),
                "trust": profile.trust,
                "lifecycle": profile.lifecycle,
                "encoded_text": self.encoded,
            },
            "queries": [_round_all(asdict(one)) for one in self.queries],
            "near_duplicates": [_round_all(asdict(one)) for one in self.duplicates],
            "thresholds": THRESHOLDS,
            "advice": [one._asdict() for one in self.advice],
            "without": self.without,
        }


def _round_all(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _round_all(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_round_all(entry) for entry in value]
    return round(value, 4) if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class _EncodedQueries:
    """An encoder with precomputed vectors of some queries: no model is called while the write lock is held."""

    name: str
    dimension: int
    vectors: Mapping[str, Vector]

    def encode_query(self, text: str) -> Vector:
        if text not in self.vectors:
            raise DependencyFailed("the encoder did not answer: try again")
        return self.vectors[text]

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        return [self.vectors.get(text) for text in texts]


def offline(discover: Discover, texts: Iterable[str], known: Mapping[str, Vector] = MappingProxyType({})) -> Discover:
    """Discovery without a reranker, with the vectors of these queries, of which some may be known."""
    retrieve, vectors = discover.retrieve, dict(known)
    if encoder := retrieve.encoder:
        for text in texts:
            try:
                vectors[text] = vectors.get(text) or encoder.encode_query(text)
            except DependencyFailed:
                break  # the answer is marked as degraded
        encoded = _EncodedQueries(encoder.name, encoder.dimension, vectors)
        retrieve = replace(retrieve, encoder=encoded, breaker=CircuitBreaker())
    stages = replace(discover.stages, budgets=_BUDGETS)
    return replace(discover, retrieve=retrieve, rerank=Rerank(reranker=None), stages=stages)


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview registrations. Competitors are limited to those that the caller may see; the candidate is not."""

    discover: Discover
    index: CandidateIndex
    maker: ProfileMaker
    registry: Registry
    trust: TrustBook

    def __call__(self, registration: Registration, audiences: Collection[str] = ()) -> PreviewReport:
        """The preview of a registration for a caller who belongs to these audiences."""
        without: list[str] = []
        profile, described_by = self._profile(registration, without)
        # of a new one, later than that of any other
        indexed = self.index.fetch([profile.id]).get(profile.id)
        first_registered = (
            indexed.first_registered if indexed else datetime.combine(datetime.now(UTC), time.max, UTC).isoformat()
        )
        placed_as = {"visible_to": None, "first_registered": first_registered}
        candidate = self._candidate(profile.model_copy(update=placed_as), without)
        tried = choose_queries(registration, profile)
        discover = offline(self.discover, [query.text for query in tried])
        queries = tuple(self._try(query, candidate, discover, audiences) for query in tried)
        before = self.registry.get([registration.id]).get(registration.id)
        placed = place(version_of(before) if before else None, version_of(registration.item()))
        admitted = Filter(audiences=frozenset(audiences))
        duplicates = near_duplicates(self.index, candidate.profile, candidate.vector, admitted)
        found = (
            *about_id(placed, registration),
            *about_registration(registration, profile),
            *about_places(queries),
            *about_duplicates(duplicates),
        )
        return PreviewReport(
            profile=profile,
            placed=placed,
            described_by=described_by,
            encoded=embedded_text(profile),
            queries=queries,
            duplicates=duplicates,
            advice=tuple(sorted(found, key=lambda one: list(Weight).index(one.weight))),
            without=tuple(without),
        )

    def _profile(self, registration: Registration, without: list[str]) -> tuple[Profile, str]:
        """The profile by the writer; the fallback is the raw profile."""
        assigned = self.trust.get([registration.id])[registration.id]
        if not self.maker.describes(registration) or self.maker.writer is None:
            return self.maker.raw(registration, assigned), "its owner"
        try:
            return self.maker.describe(registration, assigned), self.maker.writer.name
        except (DependencyFailed, ReplyUnusable) as error:
            without.append(f"the writer: {error}")
            return self.maker.raw(registration, assigned), "its owner"

    def _candidate(self, profile: Profile, without: list[str]) -> Stored:
        """The profile with its vector, if the encoder answers."""
        if self.maker.encoder is None:
            without.append("the encoder: none is configured, so only words are compared")
            return Stored(profile)
        try:
            [vector] = self.maker.encode([profile])
        except DependencyFailed as error:
            without.append(f"the encoder: {error}")
            return Stored(profile)
        return self.maker.to_stored(profile, vector)

    def _try(
        self, query: TriedQuery, candidate: Stored, discover: Discover, audiences: Collection[str]
    ) -> QueryPreview:
        """Search a query with the candidate in the index, and with the candidate without that example."""
        asked, bare = Query(query=query.text), without_example(candidate.profile, query.text)
        with self.index.with_candidate(candidate) as index:
            answer = unaided = ask(discover, index, asked, audiences)
        if bare != candidate.profile:
            with self.index.with_candidate(self._candidate(bare, [])) as index:
                unaided = ask(discover, index, asked, audiences)
        (place, own), (place_unaided, _) = _own(answer, bare.id), _own(unaided, bare.id)
        return QueryPreview(
            query=query.text,
            origin=query.origin,
            place=place,
            place_unaided=place_unaided,
            looked_at=len(answer.ranked),
            verdict=answer.verdict,
            score=own.score if own else None,
            signals=own.signals if own else {},
            matched=explain(query_terms(query.text), bare).matched,
            outranked_by=competitors(unaided.ranked, bare, query.text),
        )


def preview_over(local: LocalSystem) -> Preview:
    stores = local.stores
    return Preview(local.discover, stores.index, local.profile_maker, stores.registry, stores.trust)


def ask(discover: Discover, index: SearchIndex, query: Query, audiences: Collection[str]) -> Shortlist:
    over = replace(discover, retrieve=replace(discover.retrieve, index=index))
    return over(query, audiences)


def _own(answer: Shortlist, id: Id) -> tuple[int | None, Result | None]:
    ranked = enumerate(answer.ranked, start=1)
    return next(((place, result) for place, result in ranked if result.id == id), (None, None))
