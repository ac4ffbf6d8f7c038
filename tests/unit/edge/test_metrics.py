"""Measures of an answer and of a batch, under the names that alarms and dashboards use."""

import pytest

from mats.domain.profile.change_result import ChangeResult
from mats.domain.profile.profile import Refusal
from mats.domain.prompts.usage import Usage
from mats.domain.ranking.query import Query
from mats.domain.ranking.ranking import Verdict
from mats.domain.shortlist.shortlist import Shortlist
from mats.domain.shortlist.trace import Trace
from mats.edge.metrics import FAILED, answer_metrics, batch_metrics, refusal_metrics
from mats.ports import Measure


def a_shortlist(
    *,
    verdict: Verdict = Verdict.MATCH,
    degraded: tuple[str, ...] = (),
    took_ms: dict[str, float] | None = None,
    usage: Usage | None = None,
) -> Shortlist:
    return Shortlist(
        query_id="1",
        query=Query.parse({"query": "refund a payment"}),
        verdict=verdict,
        intent=None,
        ranked=(),
        shown=0,
        trace=Trace(
            index="memory",
            degraded=list(degraded),
            took_ms=took_ms or {"queue": 0.5, "encode": 90.0, "lexical": 8, "neural": 9, "fetch": 4, "total": 400.0},
            usage=usage or Usage(),
        ),
    )


@pytest.mark.parametrize(
    ("verdict", "name"),
    [(Verdict.MATCH, "VerdictMatch"), (Verdict.WEAK, "VerdictWeak"), (Verdict.NONE, "VerdictNone")],
)
def test_an_answer_counts_once_and_under_its_verdict_only(verdict, name):
    measured = answer_metrics(a_shortlist(verdict=verdict))
    assert measured["Answers"] == Measure(1, "Count")
    assert [other for other in measured if other.startswith("Verdict")] == [name]


def test_full_answer_counts_as_not_degraded():
    measured = answer_metrics(a_shortlist())
    degraded = {name: measure.value for name, measure in measured.items() if name.startswith("Degraded")}
    assert degraded.keys() >= {"Degraded", "DegradedLlm", "DegradedNeural", "DegradedLexical", "DegradedBm25"}
    assert set(degraded.values()) == {0}
    assert measured["Failed"] == Measure(0, "Count")


def test_degraded_answer_counts_once_with_its_stages():
    measured = answer_metrics(a_shortlist(degraded=("llm", "neural")))
    assert {name for name, (value, _) in measured.items() if name.startswith("Degraded") and value} == {
        "Degraded", "DegradedLlm", "DegradedNeural",
    }  # fmt: skip
    assert measured["Degraded"].value == 1


def test_every_stage_that_ran_has_its_time():
    measured = answer_metrics(a_shortlist(took_ms={"total": 7.5, "rerank": 6.0}))
    times = {name: measure for name, measure in measured.items() if name.endswith("Ms")}
    assert times == {"TotalMs": Measure(7.5, "Milliseconds"), "RerankMs": Measure(6.0, "Milliseconds")}


def test_cost_is_measured_if_the_price_is_known():
    spent = Usage(input_tokens=900, output_tokens=50, usd=0.00004)
    measured = answer_metrics(a_shortlist(usage=spent))
    assert (measured["InputTokens"], measured["OutputTokens"]) == (Measure(900, "Count"), Measure(50, "Count"))
    assert measured["Usd"] == Measure(0.00004, "None")
    assert "Usd" not in answer_metrics(a_shortlist(usage=Usage(input_tokens=900, usd=None)))


def test_batch_counts_every_outcome_including_zero():
    measured = batch_metrics([ChangeResult.INDEXED, ChangeResult.INDEXED, ChangeResult.DEGRADED], Usage(input_tokens=3))
    counts = {name: value for name, (value, unit) in measured.items() if unit == "Count"}
    assert counts == {
        "Indexed": 2, "Waiting": 1, "Unchanged": 0, "Rejected": 0, "Deleted": 0, "Refused": 0, "Superseded": 0, 
        "Postponed": 0,
        "InputTokens": 3, "OutputTokens": 0,
    }  # fmt: skip


def test_each_refused_model_is_one_metric_under_its_model_and_role():
    lite, titan = (Refusal(role=r, model=m, cause="denied") for r, m in (("writer", "lite"), ("encoder", "titan")))
    assert list(refusal_metrics([titan, lite, lite])) == [
        ({"ModelRefused": Measure(3, "Count")}, {}),
        ({"ModelRefused": Measure(2, "Count")}, {"model": "lite", "role": "writer"}),
        ({"ModelRefused": Measure(1, "Count")}, {"model": "titan", "role": "encoder"}),
    ]
    assert list(refusal_metrics([])) == []


def test_failed_request_counts_as_failed_only():
    assert {"Failed": Measure(1, "Count")} == FAILED
