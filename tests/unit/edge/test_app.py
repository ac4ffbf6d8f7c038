"""The application over fakes, called through API Gateway's events."""

import json
from dataclasses import replace

from mats.domain.errors import DependencyFailed, ModelRefused
from mats.domain.profile.profile import Refusal
from mats.domain.ranking.query import Query
from mats.domain.shortlist.trace import CalibrationSource
from mats.edge.api_gateway import parse_request
from mats.edge.app import Application
from mats.edge.http import Caller
from mats.edge.observers import LOG, MeasureObserver, Observers
from mats.edge.routes import respond
from mats.ports import RerankResult
from mats.usecases.look_up import LookUp
from tests.aws_events import proxy_request, respond_to
from tests.builders import a_profile
from tests.fakes import FakeEncoder, ScriptedReranker
from tests.world import THREE, discover_over, indexed

SECRET = a_profile(name="secret", description="give money back", visible_to=("finance",))


def ask(method: str, path: str, body: object = None, *, audiences=(), headers=None) -> tuple[int, dict]:
    index = indexed(*THREE, SECRET)
    application = Application(discover_over(index), LookUp(index))
    raw = b"" if body is None else json.dumps(body).encode()
    response = respond_to(proxy_request(method, path, headers or {}, raw, audiences), application)
    return response.status, json.loads(response.body)


def test_discover_returns_results():
    status, answer = ask("POST", "/discover", {"query": "address coordinates", "limit": 1})
    assert status == 200
    assert answer["results"][0]["name"] == "geocode"


def test_openapi_document_is_served():
    assert ask("GET", "/openapi.json")[1]["openapi"] == "3.1.0"


def test_audiences_come_only_from_the_authorizer():
    path, forged = f"/capabilities/{SECRET.id}", {"audiences": "finance", "X-Audiences": "finance"}
    assert ask("GET", path)[0] == 404
    assert ask("GET", path, headers=forged)[0] == 404
    assert ask("GET", path, audiences=["finance"])[0] == 200
    hidden = ask("POST", "/discover", {"query": "money"}, headers=forged)[1]["results"]
    assert SECRET.id not in [r["id"] for r in hidden]


def signed(role: str = "Buyer") -> dict:
    """The context of API Gateway for a caller that signed with a role."""
    return {"identity": {"userArn": f"arn:aws:sts::123456789012:assumed-role/{role}/session-1"}}


ROLE = "arn:aws:iam::123456789012:role/Buyer"


def ask_signed(path: str, body: object = None, *, audiences_of, measured=None) -> tuple[int, dict]:
    index = indexed(*THREE, SECRET)
    observe = Observers([LOG, *([MeasureObserver(measured)] if measured else [])])
    found = Application(discover_over(index), LookUp(index), audiences_of=audiences_of, observe=observe)
    event = proxy_request("POST" if body else "GET", path, {}, json.dumps(body).encode() if body else b"", ())
    response = respond_to({**event, "requestContext": signed()}, found)
    return response.status, json.loads(response.body)


def test_iam_role_has_the_audiences_operators_gave_it():
    asked = []

    def callers(arn: str) -> frozenset[str]:
        asked.append(arn)
        return frozenset({"finance"})

    assert ask_signed(f"/capabilities/{SECRET.id}", audiences_of=callers)[0] == 200
    answer = ask_signed("/discover", {"query": "give money back"}, audiences_of=callers)[1]
    assert SECRET.id in [result["id"] for result in answer["results"]]
    assert set(asked) == {ROLE}
    assert ask_signed(f"/capabilities/{SECRET.id}", audiences_of=lambda arn: frozenset())[0] == 404


def test_without_audiences_search_is_public_and_degraded():
    def down(arn: str) -> frozenset[str]:
        raise DependencyFailed("no table")

    status, answer = ask_signed("/discover", {"query": "give money back"}, audiences_of=down)
    assert status == 200
    assert "audiences" in answer["degraded"]
    assert SECRET.id not in [result["id"] for result in answer["results"]]
    assert ask_signed(f"/capabilities/{SECRET.id}", audiences_of=down)[0] == 503


def test_every_answer_is_measured():
    measured = []
    ask_signed("/discover", {"query": "address"}, audiences_of=lambda arn: frozenset(), measured=measured.append)
    (measures,) = measured
    assert measures["Answers"] == (1, "Count")
    assert measures["DegradedLlm"].value == 0  # not configured
    assert measures["TotalMs"].unit == "Milliseconds"
    assert sum(name.startswith("Verdict") for name in measures) == 1


def test_callers_in_aws_get_no_internal_details():
    def down(arn: str) -> frozenset[str]:
        raise DependencyFailed("mats-callers in account 123456789012 denies it")

    index = indexed(*THREE)
    event = {**proxy_request("GET", f"/capabilities/{SECRET.id}", {}, b"", ()), "requestContext": signed()}
    application = Application(discover_over(index), LookUp(index), audiences_of=down)
    in_aws = parse_request(event)
    assert not in_aws.caller.sees_internal_errors
    local = replace(in_aws, caller=replace(in_aws.caller, sees_internal_errors=True))
    for request in (in_aws, local):
        response = respond(application, request)
        assert response.status == 503
        assert ("123456789012" in response.body) is (request is local)


def test_models_that_a_profile_lacks_are_shown_to_those_who_see_internal_errors():
    refused = Refusal(role="writer", model="lite", cause="AccessDeniedException: no")
    profile = a_profile(name="pay").with_refusal(refused)
    application = Application(discover_over(indexed(profile)), LookUp(indexed(profile)))
    in_aws = parse_request(proxy_request("GET", f"/capabilities/{profile.id}", {}, b"", ()))
    local = replace(in_aws, caller=replace(in_aws.caller, sees_internal_errors=True))
    assert json.loads(respond(application, in_aws).body)["refused"] == []
    assert json.loads(respond(application, local).body)["refused"] == [refused.model_dump()]


def test_refused_reranker_and_encoder_are_measured_and_logged(caplog):
    def refuse(*_):
        return ModelRefused("no", model="micro", cause="ValidationException: on-demand")

    class RefusedEncoder(FakeEncoder):
        def encode_query(self, text):
            raise ModelRefused("no", model="titan", cause="AccessDeniedException: no")

    measured = []

    def record(measures, dimensions=None):
        measured.append((measures, dimensions))

    index = indexed(*THREE)
    discover = discover_over(index, encoder=RefusedEncoder(), reranker=ScriptedReranker(refuse))
    shortlist = Application(discover, LookUp(index), observe=Observers([LOG, MeasureObserver(record)])).search(
        Caller(), Query(query="address")
    )
    assert shortlist.degraded == ("neural", "llm")
    assert [dimensions for _, dimensions in measured[2:]] == [
        {"model": "micro", "role": "reranker"}, {"model": "titan", "role": "encoder"},
    ]  # fmt: skip
    assert [json.loads(r.getMessage())["cause"] for r in caplog.records if r.levelname == "ERROR"] == [
        "AccessDeniedException: no", "ValidationException: on-demand",
    ]  # fmt: skip


def test_the_request_id_of_api_gateway_is_in_the_decision_log_and_in_the_models_labels(caplog):
    index, reranker = indexed(*THREE), ScriptedReranker(lambda query, shown: RerankResult(scores=(0.5,) * len(shown)))
    application = Application(discover_over(index, reranker=reranker), LookUp(index))
    event = proxy_request("POST", "/discover", {}, b'{"query": "address"}', ())
    event["requestContext"]["requestId"] = "c6af9ac6-7b61"
    with caplog.at_level("INFO", "mats"):
        answer = json.loads(respond_to(event, application).body)
        respond_to(proxy_request("POST", "/discover", {}, b'{"query": "address"}', ()), application)
    first, second = (json.loads(record.getMessage()) for record in caplog.records)
    assert (first["request_id"], first["query_id"]) == ("c6af9ac6-7b61", answer["query_id"])
    assert "request_id" not in second
    assert reranker.labels[0] == {"query_id": answer["query_id"], "request_id": "c6af9ac6-7b61"}


def test_the_log_of_a_failure_has_the_request_id(caplog):
    def down(arn: str) -> frozenset[str]:
        raise DependencyFailed("no table")

    event = {**proxy_request("GET", f"/capabilities/{SECRET.id}", {}, b"", ()), "requestContext": signed()}
    event["requestContext"]["requestId"] = "c6af9ac6-7b61"
    index = indexed(*THREE)
    respond_to(event, Application(discover_over(index), LookUp(index), audiences_of=down))
    assert caplog.messages == ["get failed request_id=c6af9ac6-7b61: no table"]


def test_the_answer_says_whose_constants_map_its_scores():
    discover = replace(discover_over(indexed(*THREE)), calibration=CalibrationSource(name="memory/other", fitted=False))
    event = proxy_request("POST", "/discover", {}, b'{"query": "address"}', ())
    answer = json.loads(respond_to(event, Application(discover, LookUp(indexed(*THREE)))).body)
    assert answer["versions"]["calibration"] == {"name": "memory/other", "fitted": False}
