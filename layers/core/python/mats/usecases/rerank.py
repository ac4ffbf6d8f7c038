"""The second stage: one call of the reranker, which scores all candidates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.domain.prompts.rerank_prompt import shuffle_positions
from mats.domain.shortlist.trace import RerankStats, Trace
from mats.ports import NO_LABELS, Labels, Reranker, RerankResult
from mats.usecases.models import SwitchedModel
from mats.usecases.stages import CircuitBreaker, Stages


@dataclass(frozen=True, slots=True)
class Reranked:
    """The scores in [0, 1] by id, the type inferred from the query, the steps of a task; empty if it failed."""

    scores: Mapping[Id, float] = field(default_factory=dict)
    intent: str | None = None
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerank:
    """Call the reranker. `shuffle` sends candidates in a pseudo-random order, seeded by the query.

    `switch`, if there is one, may replace the configured reranker; `current` is asked once for an answer.
    """

    reranker: Reranker | None
    switch: SwitchedModel[Reranker] | None = None
    shuffle: bool = False
    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)

    def current(self) -> Reranker | None:
        """The reranker to call now."""
        return self.switch(self.reranker) if self.switch else self.reranker

    def __call__(
        self,
        reranker: Reranker | None,
        text: str,
        profiles: Sequence[Profile],
        stages: Stages,
        trace: Trace,
        labels: Labels = NO_LABELS,
    ) -> Reranked:
        """The reranker's scores; none if there is no reranker, it failed, or its reply could not be used."""
        if reranker is None:
            trace.without.append("llm")
            return Reranked()
        if not profiles:
            return Reranked()
        order = shuffle_positions(len(profiles), text) if self.shuffle else range(len(profiles))
        sent = [profiles[position] for position in order]
        reply = stages.call_model("rerank", lambda: reranker.rerank(text, sent, labels), self.breaker, trace)
        if reply is None:
            return Reranked()
        trace.usage = reply.usage
        void = _void(reply, len(sent))
        trace.rerank = RerankStats(
            scored=0 if void else len(reply.scores), clipped=reply.clipped, cut_off=reply.cut_off
        )
        if void:
            trace.lose("llm", f"rerank: {void}")
            return Reranked()
        trace.faults.extend(_faults(reply, len(sent)))
        scores = {profile.id: score for profile, score in zip(sent, reply.scores, strict=False)}
        return Reranked(scores, reply.intent, reply.steps)


def _void(reply: RerankResult, candidates: int) -> str:
    """Why a reply is unusable; empty if it is usable."""
    if reply.void or 0 < len(reply.scores) <= candidates:
        return reply.void
    return f"{len(reply.scores)} scores for {candidates} candidates"


def _faults(reply: RerankResult, candidates: int) -> Iterator[str]:
    """The faults of a usable reply."""
    if reply.cut_off:
        yield f"rerank: the reply was cut off after {len(reply.scores)} of {candidates} scores"
    if reply.clipped:
        yield f"rerank: {reply.clipped} scores were out of range and clipped"
