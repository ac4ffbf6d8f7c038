"""A judged set from what callers reported about answers of one's own registry."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mats.domain.capability.capability import Id
from mats.domain.learning.outcome import Event, ReportedAnswer, effective_event
from mats.domain.text.words import clean
from mats.evaluation.data.datasets import JudgedSet


@dataclass
class _Judged:
    """Reports on one text, of all callers."""

    text: str
    query_id: str
    succeeded: dict[Id, set[str]] = field(default_factory=dict)
    """The callers for whom a capability did what was asked for."""
    against: set[Id] = field(default_factory=set)
    by_operator: bool = False


def from_outcomes(
    items: Mapping[Id, Mapping[str, Any]], answers: Iterable[ReportedAnswer], *, confirmed: bool = False
) -> JudgedSet:
    """Every registration, and the requests that a capability served, as their callers reported.

    A capability counts for a text if somebody reported that it succeeded, and nobody that it failed or was wrong. Texts
    that differ in case and spaces alone are one query, whose id is that of its first answer. With `confirmed`, only
    what an operator confirmed, or two callers reported.
    """
    left_out: Counter[str] = Counter()
    texts: dict[str, _Judged] = {}
    for answer in sorted(answers, key=lambda one: (one.receipt.at, one.receipt.query_id)):
        if not answer.receipt.text:
            left_out["answer whose text is not stored"] += 1
        elif answer.receipt.narrowed:
            left_out["answer to a request with filters"] += 1
        else:
            _add(texts, answer, left_out)
    queries: dict[str, Mapping[str, Any]] = {}
    qrels: dict[tuple[str, str], int] = {}
    for judged in texts.values():
        right = _right(judged, items, left_out, confirmed=confirmed)
        if right:
            queries[judged.query_id] = {"text": judged.text, "source": "outcomes"}
            qrels |= {(judged.query_id, id): 1 for id in right}
        else:
            left_out["text without a capability that served it"] += 1
    return JudgedSet(corpus=dict(items.items()), queries=queries, qrels=qrels, left_out=left_out)


def _add(texts: dict[str, _Judged], answer: ReportedAnswer, left_out: Counter[str]) -> None:
    key = clean(answer.receipt.text).casefold()
    if key in texts:
        left_out["answer to a text that is there already (merged)"] += 1
    judged = texts.setdefault(key, _Judged(answer.receipt.text, answer.receipt.query_id))
    judged.by_operator |= answer.confirmed
    for id, events in answer.events.items():
        event = effective_event(events)
        if event is Event.SUCCEEDED:
            judged.succeeded.setdefault(id, set()).add(answer.receipt.caller)
        elif event in (Event.FAILED, Event.WRONG):
            judged.against.add(id)


def _right(
    judged: _Judged, items: Mapping[Id, Mapping[str, Any]], left_out: Counter[str], *, confirmed: bool
) -> list[Id]:
    """The capabilities that served a text; counts those that are left out."""
    right = []
    for id, callers in sorted(judged.succeeded.items()):
        if id in judged.against:
            left_out["capability whose reports contradict each other"] += 1
        elif id not in items:
            left_out["capability that is no longer registered"] += 1
        elif confirmed and not judged.by_operator and len(callers) < 2:
            left_out["capability that neither an operator nor two callers confirm"] += 1
        else:
            right.append(id)
    return right
