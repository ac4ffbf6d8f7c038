"""Candidates of a request and its parts: one retrieval for each text, k candidates taken from all of them in turn."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.profile import Profile
from mats.domain.ranking.parts import take_in_turn
from mats.domain.ranking.query import Filter
from mats.domain.ranking.ranking import Scale, Scores
from mats.domain.shortlist.presentation import Steps
from mats.domain.shortlist.shortlist import Candidate
from mats.domain.shortlist.trace import Trace
from mats.domain.text.text import query_terms
from mats.domain.trust.echoes import find_echoes
from mats.domain.trust.near_duplicates import limit_near_duplicates
from mats.ports import Vector
from mats.usecases.retrieve import Retrieve, Retrieved
from mats.usecases.stages import Stages

Measured = Sequence[tuple[Scores, Scores] | None]
"""BM25 scores and cosines for each text that could be searched."""


_ABOUT_AS_RELEVANT = 0.9
"""Share of a candidate's best relevance from which on it serves another part as well."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """The candidates of a request, and what was retrieved for each of its texts.

    The first text is the whole request, any others are its parts.
    """

    profiles: Sequence[Profile]
    texts: Sequence[str]
    retrieved: Sequence[Retrieved | None]
    """With all of the profiles; None for a text that could not be searched."""
    named: frozenset[Id] = frozenset()
    """Those found in a namespace that a part names."""

    @property
    def vector(self) -> Vector | None:
        """The vector of the whole request."""
        return self.retrieved[0].vector if self.retrieved[0] else None

    @property
    def neural(self) -> bool:
        """Whether neural search found anything."""
        return any(found.cosine for found in self.retrieved if found)

    def measure(self, retrieve: Retrieve) -> Measured:
        """The scores of the candidates for each text. Raises DependencyFailed: the index did not answer."""
        return [retrieve.measure(found) if found else None for found in self.retrieved]

    def candidates(self, measured: Measured | None, scale: Scale) -> tuple[list[Candidate], Steps]:
        """The profiles as measured by the text they are most relevant to, and the parts that each of them serves.

        Without BM25 scores if measuring failed.
        """
        scores = measured or [None] * len(self.texts)
        rows = zip(self.texts, self.retrieved, scores, strict=True)
        by_text = [found.candidates(text, score) if found else [] for text, found, score in rows]

        relevance = [
            [scale.retrieval(one.bm25, one.cosine, one.pairs) or 0.0 for one in found] or [-1.0] * len(self.profiles)
            for found in by_text
        ]
        first = len(self.texts) > 1  # of the texts that are parts
        steps = range(int(first), len(self.texts))
        chosen: list[Candidate] = []
        served: dict[Id, Sequence[int]] = {}
        for position, profile in enumerate(self.profiles):
            best = max(range(len(self.texts)), key=lambda text: relevance[text][position])
            candidate = by_text[best][position]
            chosen.append(replace(candidate, named=True) if profile.id in self.named else candidate)
            least = _ABOUT_AS_RELEVANT * max(relevance[step][position] for step in steps)
            served[profile.id] = [step - first for step in steps if relevance[step][position] >= least]
        answered = [self.retrieved[step] is not None for step in steps]
        return chosen, Steps(texts=[self.texts[step] for step in steps], served=served, answered=answered)


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
        return Gathered(found.profiles, texts, [found])
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
    retrieved = [found if isinstance(found, Retrieved) else None for found in results]
    if not any(retrieved):
        raise next(error for error in results if isinstance(error, DependencyFailed))
    return _union(retrieve, texts, retrieved)


def _union(retrieve: Retrieve, texts: Sequence[str], retrieved: Sequence[Retrieved | None]) -> Gathered:
    answered = [found for found in retrieved if found]
    by_id = {profile.id: profile for found in answered for profile in found.profiles}
    in_turn = take_in_turn([[profile.id for profile in found.profiles] for found in answered])
    window = [by_id[id] for id in in_turn[: retrieve.window]]
    shared = limit_near_duplicates(window, unrated=retrieve.unrated, echoes=find_echoes(texts[0], window))
    chosen = [window[position] for position in shared.kept[: retrieve.k]]
    near = dict(shared.near)
    for found in answered:
        near |= {id: near.get(id, frozenset()) | others for id, others in found.near.items()}
    named = frozenset(profile.id for found in answered if found.named for profile in found.profiles)
    shared_by_all = [found and replace(found, profiles=chosen, near=near, named=False) for found in retrieved]
    return Gathered(chosen, texts, shared_by_all, named)
