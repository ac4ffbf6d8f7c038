"""Metrics of an answer and of a batch, under the names that alarms and dashboards use."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from mats.domain.learning.outcome import Event, Outcome
from mats.domain.profile.change_result import ChangeResult
from mats.domain.profile.profile import Refusal
from mats.domain.prompts.usage import Usage
from mats.domain.shortlist.shortlist import Shortlist
from mats.ports import NO_DIMENSIONS, Measure, Metrics

FAILED: Mapping[str, Measure] = {"Failed": Measure(1, "Count")}
"""One request that failed on our side."""
_PARTS = ("llm", "neural", "lexical", "bm25", "audiences", "memory", "receipt", "reliability")


def answer_metrics(shortlist: Shortlist) -> dict[str, Measure]:
    degraded = frozenset(shortlist.degraded)
    return {
        "Answers": Measure(1, "Count"),
        "Failed": Measure(0, "Count"),
        "Degraded": Measure(bool(degraded), "Count"),
        **{f"Degraded{part.capitalize()}": Measure(part in degraded, "Count") for part in _PARTS},
        f"Verdict{shortlist.verdict.capitalize()}": Measure(1, "Count"),
        **{f"{stage.capitalize()}Ms": Measure(ms, "Milliseconds") for stage, ms in shortlist.trace.took_ms.items()},
        **_usage_metrics(shortlist.trace.usage),
    }


def feedback_metrics(new: Sequence[Outcome]) -> dict[str, Measure]:
    """Of one feedback with these new outcomes."""
    counts = Counter(outcome.event for outcome in new)
    return {
        "Feedback": Measure(1, "Count"),
        "Failed": Measure(0, "Count"),
        **{f"Outcomes{event.capitalize()}": Measure(counts[event], "Count") for event in Event},
    }


def emit_refusals(refused: Collection[Refusal], emit: Metrics) -> None:
    """Count the models that refused an answer or a batch of changes."""
    for measures, dimensions in refusal_metrics(refused):
        emit(measures, dimensions)


def refusal_metrics(refused: Collection[Refusal]) -> Iterator[tuple[dict[str, Measure], Mapping[str, str]]]:
    """`ModelRefused` of all models, which the alarm watches, and with its dimensions `model` and `role` of each."""
    if refused:
        yield {"ModelRefused": Measure(len(refused), "Count")}, NO_DIMENSIONS
    for (model, role), count in sorted(Counter((refusal.model, refusal.role) for refusal in refused).items()):
        yield {"ModelRefused": Measure(count, "Count")}, {"model": model, "role": role}


def batch_metrics(outcomes: Iterable[ChangeResult], usage: Usage) -> dict[str, Measure]:
    counts, names = Counter(outcomes), {ChangeResult.DEGRADED: "Waiting"}
    return {
        **{names.get(what, what.capitalize()): Measure(counts[what], "Count") for what in ChangeResult},
        **_usage_metrics(usage),
    }


def _usage_metrics(usage: Usage) -> dict[str, Measure]:
    tokens = {
        "InputTokens": Measure(usage.input_tokens, "Count"),
        "OutputTokens": Measure(usage.output_tokens, "Count"),
    }
    return tokens if usage.usd is None else {**tokens, "Usd": Measure(usage.usd, "None")}
