"""Retrieval: lexical and neural search for a request and its parts, fused into k candidates, and what memory adds."""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from threading import Lock
from typing import Generic, TypeVar

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import taught_id
from mats.domain.learning.remembered import nearest_first
from mats.domain.learning.voting import RULE, Votes, crowding, fuse_votes, shifts, vote
from mats.domain.profile.index_fields import pairs_found
from mats.domain.profile.profile import Profile
from mats.domain.ranking.blend import Scale, Scores, best_first, fuse
from mats.domain.ranking.named import (
    MOST_READ,
    NO_PRODUCTS,
    TRUSTED_KEYS,
    Exactness,
    NameUse,
    Products,
    asked_keys,
    asked_names,
    exact_first,
    listed_spaces,
    nearest_spaces,
    products_named,
)
from mats.domain.ranking.query import Filter, is_listing
from mats.domain.shortlist.fitness import Fitness
from mats.domain.shortlist.rank import Candidate, Steps, take_in_turn
from mats.domain.shortlist.trace import Trace
from mats.domain.text.variants import correct, may_be_misspelt
from mats.domain.text.words import clip, pairs, query_terms
from mats.domain.trust.near_duplicates import (
    NEW_SHARE,
    find_echoes,
    find_newcomers,
    limit_near_duplicates,
    limit_newcomers,
    place_rated,
)
from mats.ports import Encoder, LanguageBound, Memory, SearchIndex, Vector
from mats.usecases.stages import CircuitBreaker, Stage, Stages, finish

T = TypeVar("T")
_GUESSED = 0.7  # Weight of a word that a misspelt one is taken for
_REWRITTEN = 0.9  # Weight of BM25 for a synonym, against that for the word of the request itself


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalQuery:
    """The texts by which a request is searched."""

    terms: Sequence[str]  # Its words
    guessed: Sequence[str] = ()  # What those of them that the registry does not have may mean
    rewrites: Sequence[str] = ()  # The request in synonyms

    def search(self, index: SearchIndex, admitted: Filter, *, depth: int) -> Scores:
        """Scores of the best by the words or, a little less, by synonyms, and by what misspelt words may mean."""
        found = index.lexical(self.terms, admitted, depth=depth)
        for rewrite in self.rewrites:
            found = _better(found, index.lexical(query_terms(rewrite), admitted, depth=depth))
        if self.guessed:
            return self.widen(found, index, admitted, depth=depth)
        return {id: found[id] for id in best_first(found)[:depth]} if self.rewrites else found

    def widen(self, found: Scores, index: SearchIndex, admitted: Filter, *, depth: int) -> Scores:
        """These scores with those by what misspelt words may mean, for the hits of either."""
        guesses = index.lexical(self.guessed, admitted, depth=depth)
        known = {**index.bm25_of(self.terms, [id for id in guesses if id not in found]), **found}
        more = index.bm25_of(self.guessed, [id for id in found if id not in guesses])
        return _sum_of(known, {**guesses, **more})

    def of(self, index: SearchIndex, ids: Collection[Id]) -> Scores:
        found = index.bm25_of(self.terms, ids)
        if self.guessed:
            found = _sum_of(found, index.bm25_of(self.guessed, ids))
        for rewrite in self.rewrites:
            found = _better(found, index.bm25_of(query_terms(rewrite), ids))
        return found


def _sum_of(known: Scores, guesses: Scores) -> dict[Id, float]:
    return {id: known.get(id, 0.0) + _GUESSED * guesses.get(id, 0.0) for id in {**known, **guesses}}


def _better(scores: Scores, rewritten: Scores) -> dict[Id, float]:
    weighed = {id: _REWRITTEN * score for id, score in rewritten.items()}
    return {**weighed, **{id: max(score, weighed.get(id, 0.0)) for id, score in scores.items()}}


@dataclass(frozen=True, slots=True)
class Recent(Generic[T]):
    """Values by the keys used last, each for some time. Safe to share between threads."""

    most: int = 1_024  # Vectors of 1,024 components take some 4 MB
    fresh_ms: float = math.inf
    now_ms: Callable[[], float] = lambda: 0.0
    found: Counter[bool] = field(default_factory=Counter)  # How often a value was asked for and known, or not known
    _kept: OrderedDict[Hashable, tuple[float, T]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            at, kept = self._kept.get(key, (-math.inf, None))
            value = kept if self.now_ms() - at <= self.fresh_ms else None
            self.found[value is not None] += 1
            if value is not None:
                self._kept.move_to_end(key)
            return value

    def put(self, key: Hashable, value: T) -> None:
        with self._lock:
            self._kept[key] = self.now_ms(), value
            self._kept.move_to_end(key)
            while len(self._kept) > self.most:
                self._kept.popitem(last=False)


_SPARE = 2  # Times as many requests are read as may vote, since not all count


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Reads the memory: the votes of remembered requests on a new one."""

    memory: Memory

    def votes(self, vector: Vector, caller: str) -> Votes | None:
        """Those of the nearest requests that count for a caller; of others, too, if those of one crowd these out."""
        depth = _SPARE * RULE.neighbours
        near = list(self.memory.nearest(vector, depth=depth))
        if not near:
            return None
        crowd = crowding(near, caller)
        if crowd and len(near) == depth:
            known = {each.memory.query_id for each in near}
            others = self.memory.nearest(vector, depth=depth, without=crowd)
            near = nearest_first([*near, *(each for each in others if each.memory.query_id not in known)])
        return vote(near, caller)

    def complete(self, votes: Votes, ids: Collection[Id], caller: str, stages: Stages, trace: Trace) -> Votes | None:
        """The votes with those of these that have outcomes; None, with a fault in the trace, if that cannot be read."""
        asked = {*ids, *votes.used}
        reported = finish(
            stages.start("reported", lambda: self.memory.with_outcomes(asked, caller, without=votes.alone)), trace
        )
        return None if reported is None else votes.with_counts(reported)


_MOST_RATED = 1_000  # Capabilities that operators trust, of a registry, that are known beside a request
_WITNESSES = 2  # Of the last hits, which say whether the first ones are new: all of these may be of one flood
_MOST_NAMESPACES = 20
_LEXICAL_SHARE = 0.6  # Of the lexical side in the fusion of the two
_WINDOW = 60  # The first hits, among which candidates are found
MOST_OF_PRODUCTS = 3  # Capabilities of products that a request names that are candidates, whatever else is found
_BY_SYNONYMS = "also searched as {!r}, by synonyms of this registry"
_MISNAMED = "no capability is in the namespace {}; nearest: {}"
_UNREAD = "the encoder does not read the language of this query: results are found by its words, little by meaning"


_ABOUT_AS_RELEVANT = 0.9  # Share of a candidate's best relevance from which on it serves another part as well

_Sides = tuple[Stage[Scores], Stage[Scores] | None]
Measured = Sequence[tuple[Scores, Scores] | None]
"""BM25 scores and cosines of the candidates for each text that could be searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The candidates of one text or of several, in order."""

    profiles: Sequence[Profile]
    near: Mapping[Id, frozenset[Id]]  # The near-duplicates of each profile that has any, those left out included
    newcomers: Set[Id] = frozenset()  # Unrated and new beside the others
    echoes: Set[Id] = frozenset()  # Those that repeat the request
    free: int = 0  # Places that further profiles may take


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The hits for one text, in the order of fusion."""

    chosen: Chosen
    words: LexicalQuery | None  # None if lexical search failed
    vector: Vector | None
    bm25: Scores
    cosine: Scores
    named: bool  # The profiles are from a namespace that the text names
    votes: Votes | None  # Those of remembered requests
    exact: Mapping[Id, Exactness] = field(default_factory=dict)  # Those whose id, name or title the text is or has
    products: Products = NO_PRODUCTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """The candidates of a request, for a caller in these audiences, and what was found for each of its texts.

    The first text is the whole request, any others are its parts; None stands for one that could not be searched.
    """

    chosen: Chosen
    texts: Sequence[str]
    searches: Sequence[Search | None]
    exact: Mapping[Id, Exactness]  # How exactly any of the texts matches
    audiences: frozenset[str]

    def candidates(self, measured: Measured | None, scale: Scale) -> tuple[list[Candidate], Steps]:
        """The profiles as measured by the text they are most relevant to, and the parts that each of them serves.

        Without BM25 scores if measuring failed.
        """
        texts, profiles = range(len(self.texts)), self.chosen.profiles
        by_text = [self._candidates(text, measured[text] if measured else None, scale) for text in texts]
        relevance = [
            [scale.retrieval(one.bm25, one.cosine, one.pairs) or 0.0 for one in found] or [-1.0] * len(profiles)
            for found in by_text
        ]
        first = len(texts) > 1  # of the texts that are parts
        steps = range(int(first), len(texts))
        chosen: list[Candidate] = []
        served: dict[Id, Sequence[int]] = {}
        for position in range(len(profiles)):
            candidate = by_text[max(texts, key=lambda text: relevance[text][position])][position]
            chosen.append(candidate)
            least = _ABOUT_AS_RELEVANT * max(relevance[step][position] for step in steps)
            served[candidate.id] = [step - first for step in steps if relevance[step][position] >= least]
        answered = [self.searches[step] is not None for step in steps]
        return chosen, Steps(texts=[self.texts[step] for step in steps], served=served, answered=answered)

    def _candidates(self, text: int, measured: tuple[Scores, Scores] | None, scale: Scale) -> list[Candidate]:
        """The profiles as measured by a text, with what votes add; none if it could not be searched."""
        search = self.searches[text]
        if search is None:
            return []
        named = {each.id for found in self.searches if found and found.named for each in found.chosen.profiles}
        asked = frozenset().union(*map(pairs, (self.texts[text], *(search.words.rewrites if search.words else ()))))
        bm25, cosine = measured or ({}, search.cosine)
        found = [
            Candidate(
                profile=profile,
                bm25=bm25.get(id),
                cosine=cosine.get(id),
                pairs=pairs_found(asked, profile),
                near=self.chosen.near.get(id, frozenset()),
                newcomer=id in self.chosen.newcomers,
                echo=id in self.chosen.echoes,
                named=id in named,
                exact=self.exact.get(id),
                shift=search.products.shift(profile) if search.products.strengths else 0.0,
            )
            for id, profile in ((profile.id, profile) for profile in self.chosen.profiles)
        ]
        if search.votes is None:
            return found
        mixtures = {each.id: scale.mix(each.bm25, each.cosine, each.pairs) for each in found}
        moved = shifts({id: mixture for id, mixture in mixtures.items() if mixture is not None}, search.votes)
        return [
            replace(
                each,
                shift=each.shift + moved.get(each.id, 0.0),
                lifted=moved.get(each.id, 0.0) > 0,
                used_for=search.votes.used_for(each.id, self.audiences),
            )
            for each in found
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieve:
    """Find the best `k` profiles by fusion of `depth` hits of each side.

    Of near-duplicates and of echoes of the request only some are kept; the next best of the first hits replace
    the others.
    """

    index: SearchIndex
    encoder: Encoder | None
    k: int = 15
    depth: int = 200
    unrated: int = 50  # The trust of an unrated profile beside others, 0 to 100
    new_share: float = NEW_SHARE  # The share of the candidates that may be newcomers
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    recall: Recall | None = None  # None: there is no memory
    vectors: Recent[Vector] | None = None  # Of earlier queries, by encoder and text; None: each query is encoded
    rewrites: Callable[[str], Sequence[str]] = lambda text: ()  # Of a request, by synonyms

    def __call__(
        self,
        texts: Sequence[str],
        admitted: Filter,
        stages: Stages,
        trace: Trace,
        *,
        caller: str = "",
        picked: Sequence[Profile] = (),
    ) -> Retrieved:
        """Search for a request and, concurrently, for each part: the whole text comes first.

        The `k` candidates are those `picked` before for several texts, then taken from all of them in turn. A part that
        cannot be searched is left out; the answer is degraded.

        Raises:
            DependencyFailed: none of the texts could be searched.
        """
        if len(texts) == 1:
            found = self.search(texts[0], query_terms(texts[0]), admitted, stages, trace, caller=caller)
            chosen, exact = found.chosen, found.exact
            return Retrieved(chosen=chosen, texts=texts, searches=[found], exact=exact, audiences=admitted.audiences)
        different = list(dict.fromkeys(texts))  # the first part may be the whole request
        traces = [trace.branch() for _ in different]

        def search_one(text: str, own: Trace) -> Search | DependencyFailed:
            try:
                return self.search(text, query_terms(text), admitted, stages, own, caller=caller)
            except DependencyFailed as error:
                return error

        with ThreadPoolExecutor(len(different), thread_name_prefix="part") as pool:  # its own: each waits for stages
            by_text = dict(zip(different, pool.map(search_one, different, traces), strict=True))
        results = [by_text[text] for text in texts]
        for own in traces:
            trace.merge(own)
        answered = [found for found in results if isinstance(found, Search)]
        if not answered:
            raise next(error for error in results if isinstance(error, DependencyFailed))
        lists = [found.chosen.profiles for found in answered]
        by_id = {profile.id: profile for profiles in (picked, *lists) for profile in profiles}
        in_turn = take_in_turn([[profile.id for profile in profiles] for profiles in lists])
        window = [by_id[id] for id in list(dict.fromkeys([*(each.id for each in picked), *in_turn]))[:_WINDOW]]
        first = min((profile.first_registered for profile in window), default="")
        most: dict[Id, Exactness] = {}
        for found in answered:
            most |= {id: max(how, most.get(id, how)) for id, how in found.exact.items()}
        now = stages.clock.now()
        chosen = self._limit(texts[0], window, exact=most, first=first, now=now, fitness=admitted.fitness)
        near = dict(chosen.near)
        for found in answered:
            near |= {id: near.get(id, frozenset()) | others for id, others in found.chosen.near.items()}
        searches = [found if isinstance(found, Search) else None for found in results]
        chosen = replace(chosen, near=near)
        return Retrieved(chosen=chosen, texts=texts, searches=searches, exact=most, audiences=admitted.audiences)

    def measure(self, found: Retrieved) -> Measured:
        """BM25 and cosine of every candidate for each text, including those that only the other side found.

        Raises:
            DependencyFailed: the index did not answer.
        """
        ids = [profile.id for profile in found.chosen.profiles]
        measured: list[tuple[Scores, Scores] | None] = []
        for search in found.searches:
            if search is None:
                measured.append(None)
                continue
            bm25, cosine = dict(search.bm25), dict(search.cosine)
            if search.words is not None and (missing := [id for id in ids if id not in bm25]):
                bm25 |= search.words.of(self.index, missing)
            if search.vector is not None and (missing := [id for id in ids if id not in cosine]):
                cosine |= self.index.cosine_of(search.vector, missing)
            measured.append((bm25, cosine))
        return measured

    def search(
        self, text: str, terms: Sequence[str], admitted: Filter, stages: Stages, trace: Trace, *, caller: str = ""
    ) -> Search:
        """Search both sides; if stages have threads, lexical search runs beside the encoder. A failed side is left out.

        A request for what a namespace has is answered from the namespaces with all of the words it names, if operators
        trust any. The best of a product that a request names are candidates.

        Raises:
            DependencyFailed: neither side answered.
        """
        index, names = self.index, self._begin_names(text, admitted, stages, trace)
        spaces: Sequence[str] = ()
        if is_listing(text):
            uses, rated = names()
            spaces = listed_spaces(text, uses, rated=rated)[:_MOST_NAMESPACES]
        if spaces:
            trace.notes.append(f"answered from {', '.join(spaces)}, which the query names")
            admitted = replace(admitted, scope=replace(admitted.scope, exact_namespaces=frozenset(spaces)))
        asked = LexicalQuery(terms=terms, rewrites=self.rewrites(text))
        lexical_stage = stages.start("lexical", lambda: asked.search(index, admitted, depth=self.depth))
        exact_stage = stages.start("exact", lambda: self._exact((text, *asked.rewrites), admitted))
        words, vector = self._interpret(text, asked, admitted, stages, trace)
        deadline_ms = stages.clock.elapsed_ms() + stages.budgets.retrieve_ms  # of all of retrieval after encoding
        neural_stage = memory_stage = None
        if vector is not None:
            neural_stage = stages.start("neural", lambda: index.neural(vector, admitted, depth=self.depth))
            recall = self.recall
            memory_stage = stages.start("memory", lambda: recall.votes(vector, caller)) if recall else None
        lexical, cosine = self._finish_sides((lexical_stage, neural_stage), words, admitted, stages, trace)
        products = NO_PRODUCTS if spaces else products_named(text, names()[0])
        trace.notes += [products.note] if products.strong else []
        theirs_stage = stages.start(
            "products", lambda: self._of_products(products, words, vector, admitted) if products.strong else ({}, {})
        )
        bm25 = lexical or {}
        fused, votes = fuse(bm25, cosine, lexical_share=_LEXICAL_SHARE), finish(memory_stage, trace)
        taught = dict.fromkeys(votes.lesson(taught_id(text)), Exactness.TAUGHT) if votes else {}
        if self.recall and votes:
            found = best_first(fused)
            votes = votes.within_reach(found, self.k)
            votes = self.recall.complete(votes, found[:_WINDOW], caller, stages, trace)
        matched, trusted = finish(exact_stage, trace) or ({}, ())
        exact = taught | {id: how for id, how in matched.items() if id not in taught}
        more_bm25, more_cosine = finish(theirs_stage, trace) or ({}, {})
        their_best = best_first(fuse(more_bm25, more_cosine, lexical_share=_LEXICAL_SHARE))[:MOST_OF_PRODUCTS]
        found = place_rated(best_first(fuse_votes(fused, votes) if votes else fused), trusted, cosine, self.k)
        ids = list(dict.fromkeys((*exact, *their_best, *found)))
        left_ms = deadline_ms - stages.clock.elapsed_ms()
        fetching = stages.start("fetch", lambda: self._fetch(text, ids, admitted, exact, stages), budget_ms=left_ms)
        return Search(
            chosen=fetching.result(trace),
            words=words if lexical is not None else None,
            vector=vector,
            bm25={**more_bm25, **bm25},
            cosine={**more_cosine, **cosine},
            named=bool(spaces),
            votes=votes,
            exact=exact,
            products=products,
        )

    def _begin_names(
        self, text: str, admitted: Filter, stages: Stages, trace: Trace
    ) -> Callable[[], tuple[Mapping[str, NameUse], bool]]:
        """Start reading the use of names in a request; the function that is returned waits for it.

        Also if operators trust anything, where the request asks what a namespace has. Nothing within given namespaces.
        """
        if admitted.namespaces or admitted.scope.exact_namespaces:
            return lambda: ({}, False)

        def look_up() -> tuple[Mapping[str, NameUse], bool]:
            uses = self.index.names(asked_names(text), admitted)
            return uses, bool(uses and is_listing(text) and self.index.exact(TRUSTED_KEYS, admitted, most=1))

        stage = stages.start("names", look_up)
        return cache(lambda: finish(stage, trace) or ({}, False))

    def _interpret(
        self, text: str, asked: LexicalQuery, admitted: Filter, stages: Stages, trace: Trace
    ) -> tuple[LexicalQuery, Vector | None]:
        """The words with what misspelt ones may mean, and the vector of the text so corrected."""
        encoder = self.encoder
        if encoder and isinstance(encoder, LanguageBound) and not encoder.reads(text):
            trace.unread = True
        unknown = not asked.rewrites and not trace.unread
        spelling_stage = stages.start("spelling", lambda: self._spellings(text, admitted) if unknown else {})
        in_own_thread = spelling_stage.future.done()
        early = None if in_own_thread else self._encode(text, stages, trace)  # hardly any text is corrected
        meant = finish(spelling_stage, trace) or {}
        trace.notes += [_BY_SYNONYMS.format(clip(each, 200)) for each in asked.rewrites]
        trace.notes += [f"reads {word} as {near}" for word, near in meant.items()]
        if early is None or meant:
            early = self._encode(correct(text, meant) if meant else text, stages, trace)
        return replace(asked, guessed=query_terms(" ".join(meant.values()))), early()

    def _finish_sides(
        self, sides: _Sides, words: LexicalQuery, admitted: Filter, stages: Stages, trace: Trace
    ) -> tuple[Scores | None, Scores]:
        """BM25 scores, with those by what misspelt words may mean, and cosines; None if lexical search failed."""
        lexical, neural = finish(sides[0], trace), finish(sides[1], trace)
        if lexical is None and neural is None:
            message = f"the search index did not answer; try again ({'; '.join(trace.faults)})"
            raise trace.unusable or DependencyFailed(message)
        if neural is not None and not neural and lexical:
            trace.degraded.append("neural")  # no entry has a vector of this encoder
        trace.notes += [] if lexical or neural else self._absent_namespaces(admitted, stages, trace)
        if words.guessed and lexical is not None:
            found = lexical
            wider = stages.start("spelling", lambda: words.widen(found, self.index, admitted, depth=self.depth))
            lexical = finish(wider, trace) or lexical
        return lexical, neural or {}

    def _exact(self, texts: Sequence[str], admitted: Filter) -> tuple[Mapping[Id, Exactness], Sequence[Id]]:
        """The exact matches that come before others, in order, and what operators trust."""
        found: dict[Id, Exactness] = {}
        for text in texts:
            ids = self.index.exact(asked_keys(text), admitted, most=MOST_READ)
            more = exact_first(text, self._load(ids, admitted), unrated=self.unrated) if ids else {}
            found |= {id: exact for id, exact in more.items() if id not in found}
        return found, self.index.exact(TRUSTED_KEYS, admitted, most=_MOST_RATED)

    def _of_products(
        self, products: Products, words: LexicalQuery, vector: Vector | None, admitted: Filter
    ) -> tuple[Scores, Scores]:
        """BM25 scores and cosines of the best of the strong products."""
        own = replace(admitted, scope=products.within(admitted.scope))
        neural = self.index.neural(vector, own, depth=self.k) if vector else {}
        return words.search(self.index, own, depth=self.k), neural

    def _spellings(self, text: str, admitted: Filter) -> Mapping[str, str]:
        words = may_be_misspelt(text)
        if isinstance(encoder := self.encoder, LanguageBound):
            words = [word for word in words if not encoder.knows(word)]
        return self.index.spellings(words, admitted) if words else {}

    def _absent_namespaces(self, admitted: Filter, stages: Stages, trace: Trace) -> list[str]:
        """Notes on namespaces of the filter that the caller sees nothing of."""
        if not admitted.namespaces:
            return []
        visible = Filter(audiences=admitted.audiences)
        known = finish(stages.start("namespaces", lambda: self.index.namespaces(visible)), trace) or ()
        absent = [
            space
            for space in sorted(admitted.namespaces)
            if not any(map(Filter(namespaces=frozenset([space])).admits_namespace, known))
        ]
        return [_MISNAMED.format(space, ", ".join(nearest_spaces(space, known)) or "none") for space in absent]

    def _fetch(
        self, text: str, ids: Sequence[Id], admitted: Filter, exact: Mapping[Id, Exactness], stages: Stages
    ) -> Chosen:
        """The first `k` visible profiles that are kept.

        If all are kept, one read is enough. A second one replaces those that were left out; if that leaves out more, or
        newcomers were left out, another one reads the rest of the window.
        """
        ahead = frozenset(ids[: self.k])
        found = self._load([*ids[: self.k], *ids[self.k :][-_WITNESSES:]], admitted)
        profiles, now = [profile for profile in found if profile.id in ahead], stages.clock.now()
        first = min((profile.first_registered for profile in found), default="")
        limit = partial(self._limit, text, exact=exact, first=first, now=now, fitness=admitted.fitness)
        chosen, end, window = limit(profiles), self.k, max(self.k, _WINDOW)
        for further in (window if chosen.newcomers else self.k + chosen.free, window):
            if chosen.free > 0 or (len(profiles) < self.k and admitted.fitness and admitted.fitness.excluded):
                profiles += self._load(ids[end:further], admitted)
                chosen, end = limit(profiles), further
        return chosen

    def _limit(
        self,
        text: str,
        profiles: Sequence[Profile],
        *,
        exact: Mapping[Id, Exactness],
        first: str,
        now: str,
        fitness: Fitness | None,
    ) -> Chosen:
        """The first `k` of those of near-duplicates, echoes and newcomers that are kept; others fill free places.

        `first` is the earliest time of registration that is known.
        """
        named = [position for position, profile in enumerate(profiles) if exact.get(profile.id, 0) >= Exactness.NAME]
        echoes, new = find_echoes(text, profiles), find_newcomers(profiles, first, now)
        unfit = [n for n, profile in enumerate(profiles) if fitness.because(profile)] if fitness else []
        shared = limit_near_duplicates(profiles, unrated=self.unrated, echoes=echoes, exact=named, unfit=unfit)
        kept, spare = limit_newcomers(shared.kept, new, of=len(profiles), k=self.k, share=self.new_share)
        return Chosen(
            profiles=[profiles[position] for position in sorted([*kept, *spare][: self.k])],
            near=shared.near,
            newcomers={profiles[position].id for position in new},
            echoes={profiles[position].id for position in echoes},
            free=min(len(profiles), self.k) - len(kept),
        )

    def _load(self, ids: Sequence[Id], admitted: Filter) -> list[Profile]:
        fetched = self.index.fetch(ids)
        return [
            profile
            for profile in (fetched[id] for id in ids if id in fetched)
            if admitted.sees(profile.visible_to)
            # the index has not applied the rest of the filter to one that only the memory names
            and admitted.admits_kind(profile.kind)
            and admitted.admits_namespace(profile.namespace)
            and admitted.admits_tags(profile.filtered_tags)
            and (admitted.fitness is None or admitted.fitness.admits(profile))
        ]

    def _encode(self, text: str, stages: Stages, trace: Trace) -> Callable[[], Vector | None]:
        """Start encoding; the function that is returned waits for the vector, which is None if there is none."""
        encoder = self.encoder
        if encoder is None:
            trace.without.append("neural")
            return lambda: None
        known = self.vectors.get((encoder.name, text)) if self.vectors else None
        if known is None:
            reply = stages.begin_call("encode", lambda: encoder.encode_query(text), self.breaker, trace)
        if trace.unread:
            trace.notes.append(_UNREAD)

        def vector() -> Vector | None:
            if known is not None:
                trace.took_ms["encode"] = 0.0
                return known
            made = reply()
            if self.vectors and made is not None:
                self.vectors.put((encoder.name, text), made)
            return made

        return vector
