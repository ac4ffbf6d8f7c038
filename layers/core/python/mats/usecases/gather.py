"""Candidates of a request and its parts: one retrieval for each text, k candidates taken from all of them in turn."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from mats.domain.echoes import find_echoes
from mats.domain.errors import DependencyFailed
from mats.domain.judging import Steps
from mats.domain.near_duplicates import limit_near_duplicates
from mats.domain.parts import best_places, take_in_turn
from mats.domain.profile import Profile
from mats.domain.query import Filter
from mats.domain.ranking import Scores
from mats.domain.shortlist import Candidate
from mats.domain.text import query_terms
from mats.domain.trace import Trace
from mats.ports import Vector
from mats.usecases.retrieve import Retrieve, Retrieved
from mats.usecases.stages import Stages

Measured = Sequence[tuple[Scores, Scores]]
"""BM25 scores and cosines for each text."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The candidates of a request, and for each of its texts those that are measured by it.

    The first text is the whole request, any others are its parts. A candidate is measured by the text whose retrieval
    ranks it best.
    """

    profiles: Sequence[Profile]
    texts: Sequence[str]
    retrieved: Sequence[Retrieved]
    steps: Steps

    @property
    def terms(self) -> Sequence[str] | None:
        """The terms of the whole request; None if its lexical search failed."""
        return self.retrieved[0].terms

    @property
    def vector(self) -> Vector | None:
        """The vector of the whole request."""
        return self.retrieved[0].vector

    @property
    def neural(self) -> bool:
        """Whether neural search found anything."""
        return any(found.cosine for found in self.retrieved)

    def measure(self, retrieve: Retrieve) -> Measured:
        """The scores of each text's candidates. Raises DependencyFailed: the index did not answer."""
        return [retrieve.measure(found) for found in self.retrieved]

    def candidates(self, measured: Measured | None) -> list[Candidate]:
        """The profiles with their measurements; without BM25 scores if measuring failed."""
        scores: Sequence[tuple[Scores, Scores] | None] = measured or [None] * len(self.texts)
        rows = zip(self.texts, self.retrieved, scores, strict=True)
        return [candidate for text, found, score in rows for candidate in found.candidates(text, score)]


def gather(
    retrieve: Retrieve, texts: Sequence[str], admitted: Filter, stages: Stages, trace: Trace, *, caller: str = ""
) -> Gathered:
    """Retrieve for a request and, concurrently, for each part: the whole text comes first.

    A part that cannot be searched is left out; the answer is degraded.

    Raises:
        DependencyFailed: none of the texts could be searched.
    """
    if len(texts) == 1:
        found = retrieve(texts[0], query_terms(texts[0]), admitted, stages, trace, caller=caller)
        served = {profile.id: (0,) for profile in found.profiles}
        return Gathered(found.profiles, texts, [found], Steps(texts=texts, served=served, answered=[True]))
    traces = [trace.branch() for _ in texts]

    def retrieve_one(text: str, own: Trace) -> Retrieved | DependencyFailed:
        try:
            return retrieve(text, query_terms(text), admitted, stages, own, caller=caller)
        except DependencyFailed as error:
            return error

    with ThreadPoolExecutor(len(texts), thread_name_prefix="part") as pool:  # of its own: each waits for stages
        results = list(pool.map(retrieve_one, texts, traces))
    for own in traces:
        trace.merge(own)
    retrieved = [found for found in results if isinstance(found, Retrieved)]
    if not retrieved:
        raise next(error for error in results if isinstance(error, DependencyFailed))
    return _union(retrieve, texts, [found if isinstance(found, Retrieved) else _NOTHING for found in results])


_NOTHING = Retrieved((), {}, None, None, {}, {})


def _union(retrieve: Retrieve, texts: Sequence[str], retrieved: Sequence[Retrieved]) -> Gathered:
    by_id = {profile.id: profile for found in retrieved for profile in found.profiles}
    in_turn = take_in_turn([[profile.id for profile in found.profiles] for found in retrieved])
    window = [by_id[id] for id in in_turn[: retrieve.window]]
    shared = limit_near_duplicates(window, unrated=retrieve.unrated, echoes=find_echoes(texts[0], window))
    chosen = [window[position] for position in shared.kept[: retrieve.k]]
    near = dict(shared.near)
    for found in retrieved:
        near |= {id: near.get(id, frozenset()) | others for id, others in found.near.items()}
    measured_by = best_places([found.found for found in retrieved])
    split = [
        replace(found, near=near, profiles=[each for each in chosen if measured_by[each.id][-1] == number])
        for number, found in enumerate(retrieved)  # [-1]: a part rather than the whole text
    ]
    served = best_places([found.found for found in retrieved[1:]])
    answered = [found is not _NOTHING for found in retrieved[1:]]
    return Gathered(chosen, texts, split, Steps(texts=texts[1:], served=served, answered=answered))
