"""Metrics in Prometheus' text format."""

from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from mats.adapters.prometheus import PrometheusMetrics
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import Event, Feedback, Outcome
from mats.domain.profile.profile import ChangeResult, Refusal
from mats.domain.prompts.usage import Usage
from mats.domain.search.query import Query
from mats.ports import (
    Answered,
    BatchDelayed,
    BatchProcessed,
    FeedbackRecorded,
    ModelsRefused,
    Observation,
    OperationFailed,
    RequestHandled,
    ServiceState,
    WriterCalled,
)
from tests.builders import a_profile, a_shortlist

REFUSAL = Refusal(role="writer", model="lite", cause="AccessDeniedException: no")
SECRETS = ("com.acme/secret", "a private request", "arn:aws:iam::1:user/ann", "q-17", "r-17")
STATE = ServiceState(
    capabilities={("tool", "raw"): 3, ("agent", "rejected"): 1},
    findable=3,
    waiting=2,
    oldest_s=1.5,
    dead=1,
    sources={"ok": 1, "failed": 2},
    vectors={True: 5, False: 7},
    usage={"micro": Usage(input_tokens=10, output_tokens=2, usd=0.01), "own": Usage(input_tokens=3, usd=None)},
)


def answered(**trace) -> Answered:
    shortlist = a_shortlist(took_ms={"encode": 4.0, "rerank": 900.0, "total": 1_000.0}, degraded=["neural"])
    for name, value in trace.items():
        setattr(shortlist.trace, name, value)
    shortlist = replace(shortlist, query_id=SECRETS[3], query=Query(query=SECRETS[1]))
    return Answered(shortlist=shortlist, audiences=("finance",), request_id=SECRETS[4])


def shown(*observations: Observation, state=lambda: STATE) -> dict[tuple, float]:
    """The samples after these observations, by name and values of labels, in order of their names."""
    metrics = PrometheusMetrics(state)
    for observation in observations:
        metrics(observation)
    families = text_string_to_metric_families(metrics.render().decode())
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_an_answer_counts_under_its_verdict_with_its_stages_and_missing_parts():
    samples = shown(answered(refused=[REFUSAL]))
    assert samples["mats_answers_total", "match"] == 1
    assert samples["mats_answer_seconds_sum",] == 1.0
    assert samples["mats_stage_seconds_sum", "encode"] == 0.004
    assert ("mats_stage_seconds_sum", "total") not in samples
    assert samples["mats_degraded_total", "neural"] == 1
    assert samples["mats_model_calls_total", "answered", "reranker"] == 1
    assert samples["mats_model_call_seconds_sum", "reranker"] == 0.9
    assert samples["mats_model_refusals_total", "lite", "writer"] == 1


def test_an_answer_without_its_reranker_counts_a_failed_call():
    samples = shown(answered(took_ms={"total": 9.0}, degraded=["llm"]))
    assert samples["mats_degraded_total", "llm"] == samples["mats_model_calls_total", "failed", "reranker"] == 1


def test_requests_count_by_route_and_status():
    handled = RequestHandled(method="GET", route="/healthz", status=200, took_ms=2, request_id=SECRETS[4])
    samples = shown(handled, handled, replace(handled, status=503))
    assert samples["mats_requests_total", "GET", "/healthz", "200"] == 2
    assert samples["mats_requests_total", "GET", "/healthz", "503"] == 1
    assert samples["mats_request_seconds_count", "/healthz"] == 3


def test_changes_feedback_failures_and_calls_of_the_writer_count():
    feedback = Feedback(query_id="q", caller=SECRETS[2], outcomes=(), missing=SECRETS[1])
    samples = shown(
        OperationFailed(operation="search", error=DependencyFailed(SECRETS[1])),
        FeedbackRecorded(feedback=feedback, new=[Outcome(Id(SECRETS[0]), Event.WRONG)]),
        BatchProcessed(outcomes={a_profile().id: ChangeResult.INDEXED}, usage=Usage()),
        BatchDelayed(changes=4, error=DependencyFailed("down")),
        ModelsRefused(refused=[REFUSAL, REFUSAL]),
        WriterCalled(took_ms=1_500, failed=True),
    )
    assert samples["mats_failures_total", "search"] == 1
    assert samples["mats_feedback_total",] == samples["mats_outcomes_total", "wrong"] == 1
    assert samples["mats_changes_total", "indexed"] == 1
    assert samples["mats_changes_total", "delayed"] == 4
    assert samples["mats_model_refusals_total", "lite", "writer"] == 2
    assert samples["mats_model_calls_total", "failed", "writer"] == 1


def test_the_state_is_read_at_each_scrape():
    samples = shown()
    assert samples["mats_capabilities", "agent", "rejected"] == 1
    assert samples["mats_capabilities_findable",] == 3
    assert samples["mats_changes_waiting",] == 2
    assert samples["mats_changes_oldest_seconds",] == 1.5
    assert samples["mats_changes_dead",] == 1
    assert samples["mats_sources", "failed"] == 2
    assert samples["mats_query_vectors_total", "hit"] == 5
    assert samples["mats_query_vectors_total", "miss"] == 7
    assert samples["mats_model_tokens_total", "input", "micro"] == 10
    assert samples["mats_model_usd_total", "micro"] == 0.01
    assert ("mats_model_usd_total", "own") not in samples
    assert samples["mats_state_readable",] == 1


def test_a_state_that_cannot_be_read_leaves_the_counts():
    def down() -> ServiceState:
        raise DependencyFailed("the disk is full")

    samples = shown(answered(), state=down)
    assert samples["mats_state_readable",] == 0
    assert samples["mats_answers_total", "match"] == 1
    assert ("mats_capabilities_findable",) not in samples


def test_no_label_has_an_id_a_caller_or_a_text():
    metrics = PrometheusMetrics(lambda: STATE)
    feedback = Feedback(query_id=SECRETS[3], caller=SECRETS[2], outcomes=(), missing=SECRETS[1])
    for observation in (
        answered(faults=[SECRETS[1]]),
        FeedbackRecorded(feedback=feedback, new=[Outcome(Id(SECRETS[0]), Event.WRONG)]),
        BatchProcessed(outcomes={Id(SECRETS[0]): ChangeResult.INDEXED}, usage=Usage()),
        RequestHandled(method="GET", route="/healthz", status=200, took_ms=2, request_id=SECRETS[4]),
    ):
        metrics(observation)
    rendered = metrics.render().decode()
    assert [secret for secret in SECRETS if secret in rendered] == []
