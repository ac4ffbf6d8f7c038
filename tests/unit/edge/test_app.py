"""The application over fakes, called through API Gateway's events."""

import json
from dataclasses import replace
from typing import Any

from mats.domain.errors import DependencyFailed, ModelRefused
from mats.domain.profile.profile import Refusal
from mats.domain.search.query import Query
from mats.edge.api_gateway import parse_request
from mats.edge.app import Application
from mats.edge.http import Caller, Response
from mats.edge.observers import LOG, MeasureObserver, Observers
from mats.edge.routes import respond
from mats.local.log import record_fields
from mats.ports import RerankResult
from tests.aws_events import call, proxy_request
from tests.builders import a_profile
from tests.fakes import FakeEncoder, ScriptedReranker, raising
from tests.world import SECRET, THREE, an_application

APPLICATION = an_application(*THREE, SECRET)
ROLE = "arn:aws:iam::123456789012:role/Buyer"
SIGNED = {"identity": {"userArn": "arn:aws:sts::123456789012:assumed-role/Buyer/session-1"}}
"""The context of API Gateway for a caller that signed with the role."""


def ask(path: str, body: object = None, application: Application = APPLICATION, **more: Any) -> Response:
    return call(application, "GET" if body is None else "POST", path, body, **more)


def found(*arguments: Any, **more: Any) -> set[str]:
    """The ids that a search for money back finds."""
    response = ask("/discover", {"query": "give money back"}, *arguments, **more)
    return {result["id"] for result in json.loads(response.body)["results"]}


BROKEN = replace(APPLICATION, audiences_of=raising(DependencyFailed("mats-callers in account 123456789012 denies it")))


def test_iam_role_has_the_audiences_operators_gave_it():
    asked = []

    def callers(arn: str) -> frozenset[str]:
        asked.append(arn)
        return frozenset({"finance"})

    given = replace(APPLICATION, audiences_of=callers)
    assert ask(f"/capabilities/{SECRET.id}", None, given, **SIGNED).status == 200
    assert SECRET.id in found(given, **SIGNED)
    assert set(asked) == {ROLE}
    none = replace(APPLICATION, audiences_of=lambda arn: frozenset())
    assert ask(f"/capabilities/{SECRET.id}", None, none, **SIGNED).status == 404


def test_without_audiences_search_is_public_and_degraded():
    answer = json.loads(ask("/discover", {"query": "give money back"}, BROKEN, **SIGNED).body)
    assert "audiences" in answer["degraded"]
    assert SECRET.id not in [result["id"] for result in answer["results"]]
    assert ask(f"/capabilities/{SECRET.id}", None, BROKEN, **SIGNED).status == 503


def test_callers_in_aws_get_no_internal_details():
    event = {**proxy_request("GET", f"/capabilities/{SECRET.id}", {}, b"", ()), "requestContext": SIGNED}
    in_aws = parse_request(event)
    assert not in_aws.caller.sees_internal_errors
    local = replace(in_aws, caller=replace(in_aws.caller, sees_internal_errors=True))
    for request in (in_aws, local):
        response = respond(BROKEN, request)
        assert response.status == 503
        assert ("123456789012" in response.body) is (request is local)


def test_models_that_a_profile_lacks_are_shown_to_those_who_see_internal_errors():
    refused = Refusal(role="writer", model="lite", cause="AccessDeniedException: no")
    profile = a_profile(name="pay").with_refusal(refused)
    in_aws = parse_request(proxy_request("GET", f"/capabilities/{profile.id}", {}, b"", ()))
    local = replace(in_aws, caller=replace(in_aws.caller, sees_internal_errors=True))
    shown = [json.loads(respond(an_application(profile), request).body)["refused"] for request in (in_aws, local)]
    assert shown == [[], [refused.model_dump()]]


def test_refused_reranker_and_encoder_are_measured_and_logged(caplog):
    encoder, measured = FakeEncoder(), []
    encoder.encode_query = raising(ModelRefused("no", model="titan", cause="AccessDeniedException: no"))
    cause = "ValidationException: on-demand"
    reranker = ScriptedReranker(lambda *_: ModelRefused("no", model="micro", cause=cause))
    observe = Observers([LOG, MeasureObserver(lambda measures, dimensions=None: measured.append(dimensions))])
    application = replace(an_application(*THREE, encoder=encoder, reranker=reranker), observe=observe)
    assert application.search(Caller(), Query(query="address")).degraded == ("neural", "llm")
    assert measured[2:] == [{"model": "micro", "role": "reranker"}, {"model": "titan", "role": "encoder"}]
    causes = [r.cause for r in caplog.records if r.levelname == "ERROR"]
    assert causes == ["AccessDeniedException: no", cause]


def test_the_request_id_of_api_gateway_is_in_the_decision_log_and_in_the_models_labels(caplog):
    reranker = ScriptedReranker(lambda query, shown: RerankResult(scores=(0.5,) * len(shown)))
    application = an_application(*THREE, reranker=reranker)
    with caplog.at_level("INFO", "mats"):
        answer = json.loads(ask("/discover", {"query": "address"}, application, requestId="c6af9ac6-7b61").body)
        ask("/discover", {"query": "address"}, application)
    first, second = map(record_fields, caplog.records)
    assert (first["request_id"], first["query_id"]) == ("c6af9ac6-7b61", answer["query_id"])
    assert "request_id" not in second
    assert reranker.labels[0] == {"query_id": answer["query_id"], "request_id": "c6af9ac6-7b61"}


def test_the_log_of_a_failure_has_the_request_id(caplog):
    ask(f"/capabilities/{SECRET.id}", None, BROKEN, **SIGNED, requestId="c6af9ac6-7b61")
    assert caplog.messages == ["get failed request_id=c6af9ac6-7b61: mats-callers in account 123456789012 denies it"]


def test_health_keeps_the_reason_of_degraded_answers_for_operators_until_one_is_whole():
    answers: list[RerankResult | Exception] = [DependencyFailed("connection refused")]
    application = an_application(*THREE, reranker=ScriptedReranker(lambda query, candidates: answers[-1]))
    operator, wish = Caller(sees_internal_errors=True), Query(query="give money back")
    for _ in range(8):  # the circuit breaker, once open, does not hide the reason
        candidates = len(application.search(operator, wish).ranked)
    assert application.health(operator).faults == ["rerank: connection refused"]
    assert application.health(Caller()).faults == []
    whole = replace(application.discover.stages, breakers={})
    answers.append(RerankResult(scores=(0.9, 0.1, 0.0)[:candidates]))
    replace(application, discover=replace(application.discover, stages=whole)).search(operator, wish)
    assert application.health(operator).faults == []
