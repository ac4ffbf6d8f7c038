"""What was found: for one text, or for each text of a request for several things, which is then merged."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.policies.policy import Ask, Pool
from mats.domain.profile.profile import Profile
from mats.domain.search.candidate import UNMARKED, Candidate, Marks
from mats.domain.search.lookups import Vector
from mats.domain.search.namespaces import notes_on_absent
from mats.domain.search.scale import Scale, Scores
from mats.domain.search.shortlist import Steps, take_in_turn
from mats.ports import SearchIndex
from mats.usecases.stages import Run

_ABOUT_AS_RELEVANT = 0.9  # Share of a candidate's best relevance from which on it serves another step as well


@dataclass(frozen=True, slots=True, kw_only=True)
class Hits:
    """What was found for one text, and what each policy knows of it."""

    ask: Ask
    vector: Vector | None
    bm25: Scores | None  # None: lexical search failed
    cosine: Scores
    evidence: Mapping[str, Any]
    pool: Pool

    def measure(self, index: SearchIndex, ids: Collection[Id]) -> tuple[Scores, Scores]:
        """BM25 scores and cosines of these, whichever side found them. Raises DependencyFailed: no answer."""
        bm25, cosine = dict(self.bm25 or {}), dict(self.cosine)
        if self.bm25 is not None and (missing := [id for id in ids if id not in bm25]):
            bm25 |= self.ask.words.of(index, missing)
        if self.vector is not None and (missing := [id for id in ids if id not in cosine]):
            cosine |= index.cosine_of(self.vector, missing)
        return bm25, cosine


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The candidates of a request, and what was found for each of its texts: the whole, then the steps if it has any.

    None stands for a text that could not be searched.
    """

    texts: Sequence[str]
    hits: Sequence[Hits | None]
    pool: Pool

    @property
    def profiles(self) -> Sequence[Profile]:
        """The candidates, in order of fusion."""
        return self.pool.candidates()

    @property
    def vector(self) -> Vector | None:
        """That of the whole request."""
        return self.hits[0].vector if self.hits[0] else None

    @property
    def has_cosines(self) -> bool:
        return any(each.cosine for each in self.hits if each)

    @property
    def may_have_terms(self) -> bool:
        """False if lexical search answered, and nothing that was searched has a word of the request."""
        return any(each.bm25 is None or each.bm25 for each in self.hits if each)


def check_sides(
    lexical: Scores | None, neural: Scores | None, index: SearchIndex, ask: Ask, run: Run
) -> tuple[Scores | None, Scores]:
    """BM25 scores, None if lexical search failed, and cosines; the trace says what is missing.

    Raises:
        DependencyFailed: neither side answered.
    """
    trace, admitted = run.trace, ask.admitted
    if lexical is None and neural is None:
        message = f"the search index did not answer; try again ({'; '.join(trace.faults)})"
        raise trace.unusable or DependencyFailed(message)
    if neural is not None and not neural and lexical:
        trace.degraded.append("neural")  # no entry has a vector of this encoder
    if not (lexical or neural) and admitted.namespaces:
        visible = admitted.visible
        known = run.start("namespaces", partial(index.namespaces, visible)).finish() or ()
        trace.notes += notes_on_absent(admitted.namespaces, known)
    return lexical, neural or {}


def find_each(texts: Sequence[str], find: Callable[[str, Run], Hits], run: Run) -> list[Hits | None]:
    """What was found for each text, concurrently; a text that cannot be searched degrades the answer.

    Raises:
        DependencyFailed: none of the texts could be searched.
    """
    different = list(dict.fromkeys(texts))
    runs = [run.stages.begin(run.trace.branch()) for _ in different]

    def find_one(text: str, own: Run) -> Hits | DependencyFailed:
        try:
            return find(text, own)
        except DependencyFailed as error:
            return error

    with ThreadPoolExecutor(len(different), thread_name_prefix="step") as pool:  # its own: each waits for stages
        by_text = dict(zip(different, pool.map(find_one, different, runs), strict=True))
    for own in runs:
        run.trace.merge(own.trace)
    if not any(isinstance(found, Hits) for found in by_text.values()):
        raise next(error for error in by_text.values() if isinstance(error, DependencyFailed))
    return [found if isinstance(found, Hits) else None for found in (by_text[text] for text in texts)]


def merge_pools(found: Sequence[Hits | None], most: int) -> tuple[list[Profile], dict[Id, Marks]]:
    """At most so many candidates of several texts, taken from each in turn, with what marks them for any."""
    pools = [each.pool for each in found if each]
    lists = [pool.candidates() for pool in pools]
    by_id = {profile.id: profile for profiles in lists for profile in profiles}
    marks: dict[Id, Marks] = {}
    for pool in pools:
        for id, own in pool.marks.items():
            known = marks.get(id, UNMARKED)
            exact = max(filter(None, (known.exact, own.exact)), default=None)
            marks[id] = Marks(exact=exact, near=known.near | own.near)
    return [by_id[id] for id in take_in_turn([[profile.id for profile in each] for each in lists])][:most], marks


def merge_measured(
    texts: Sequence[str], by_text: Sequence[Sequence[Candidate] | None], scale: Scale
) -> tuple[Sequence[Candidate], Steps]:
    """Each candidate as measured by the text that it is most relevant to, and the steps that it serves.

    `by_text` has the candidates as measured by each text, in one order; None for one that could not be searched.
    """
    if len(texts) == 1:
        only = by_text[0] or ()
        every = {candidate.id: (0,) for candidate in only}
        return only, Steps(texts=texts, served=every, answered=[True], elsewhere=[_elsewhere(only)])
    known = {n: found for n, found in enumerate(by_text) if found is not None}
    relevance = {
        n: [scale.retrieval(each.bm25, each.cosine, each.pairs) or 0.0 for each in found] for n, found in known.items()
    }
    candidates: list[Candidate] = []
    served: dict[Id, Sequence[int]] = {}
    for position in range(len(next(iter(known.values())))):
        own = {n: values[position] for n, values in relevance.items()}
        candidate = known[max(own, key=lambda n: own[n])][position]
        candidates.append(candidate)
        by_step = {n - 1: value for n, value in own.items() if n}  # the first text is the whole
        least = _ABOUT_AS_RELEVANT * max(by_step.values(), default=0.0)
        served[candidate.id] = [step for step, value in by_step.items() if value >= least]
    answered = [found is not None for found in by_text[1:]]
    elsewhere = [_elsewhere(found or ()) for found in by_text[1:]]
    return candidates, Steps(texts=texts[1:], served=served, answered=answered, elsewhere=elsewhere)


def _elsewhere(candidates: Sequence[Candidate]) -> Set[Id]:
    return {each.id for each in candidates if each.marks.elsewhere and each.marks.elsewhere.told}
