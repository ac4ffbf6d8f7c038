"""Ask the reranker once: the scores of all candidates in one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from mats.domain.profile.profile import Profile
from mats.domain.prompts.rerank_reply import RerankResult
from mats.domain.search.blend import Opinion
from mats.domain.search.trace import RerankStats
from mats.ports import Labels, Reranker
from mats.usecases.stages import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerank:
    """One call for an answer; a reply that cannot be used, or none, leaves the answer without the signal."""

    reranker: Reranker | None

    def begin(self, text: str, profiles: Sequence[Profile], run: Run, labels: Labels) -> Callable[[], Opinion]:
        """Call the reranker; the function that is returned waits for its opinion on these profiles.

        It is empty if there is no reranker, if it failed, or if its reply cannot be used.
        """
        if self.reranker is None:
            run.trace.without.append("llm")
        if self.reranker is None or not profiles:
            return Opinion
        stage = run.start("rerank", partial(self.reranker.rerank, text, profiles, labels))

        def opinion() -> Opinion:
            reply = stage.finish()
            return Opinion() if reply is None else _opinion_in(reply, profiles, run)

        return opinion


def _opinion_in(reply: RerankResult, sent: Sequence[Profile], run: Run) -> Opinion:
    """The opinion in a reply, with what is wrong with it in the trace."""
    trace = run.trace
    trace.usage = reply.usage
    misfit = not 0 < len(reply.scores) <= len(sent)
    void = reply.void or (f"{len(reply.scores)} scores for {len(sent)} candidates" if misfit else "")
    trace.rerank = RerankStats(scored=0 if void else len(reply.scores), clipped=reply.clipped, cut_off=reply.cut_off)
    if void:
        trace.lose("llm", f"rerank: {void}")
        return Opinion()
    if reply.cut_off:
        trace.faults.append(f"rerank: the reply was cut off after {len(reply.scores)} of {len(sent)} scores")
    if reply.clipped:
        trace.faults.append(f"rerank: {reply.clipped} scores were out of range and clipped")
    return Opinion({profile.id: score for profile, score in zip(sent, reply.scores, strict=False)}, reply.intent)
