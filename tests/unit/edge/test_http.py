"""Events in, responses out."""

import base64
import json
from collections.abc import Mapping
from itertools import chain
from typing import Any
from unittest.mock import ANY

import pytest

from mats.domain import errors
from mats.domain.errors import Fault
from mats.edge import http
from mats.edge.api_gateway import parse_request, proxy_response
from mats.edge.schema import Problem


def _sent(body: bytes) -> dict[str, Any]:
    """An event with this body, as API Gateway hands over what may not be text."""
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}


def body_of(event: Mapping[str, Any]) -> Any:
    return parse_request(event).json()


@pytest.mark.parametrize(("event", "value"), [
    ({"body": '{"query": "返金"}'}, {"query": "返金"}), ({"body": "[1]", "isBase64Encoded": False}, [1]),
    (_sent('{"query": "返金"}'.encode()), {"query": "返金"}), (_sent(b'\xef\xbb\xbf{"query": 1}'), {"query": 1}),
    ({"body": '\ufeff{"query": 1}'}, {"query": 1}), ({"body": f'"{"x" * (http.MAX_BODY_BYTES - 2)}"'}, ANY),
   
], ids=repr)  # fmt: skip
def test_body_is_parsed_as_json(event, value):
    assert body_of(event) == value


UNREADABLE, TOO_LARGE, MOST = http.BodyUnreadable, http.BodyTooLarge, http.MAX_BODY_BYTES


@pytest.mark.parametrize(("event", "error", "message"), [
    *(({"body": body}, UNREADABLE, r"not JSON: .* at character \d+") for body in (
        None, "", "query=refund", '{"query": "refund"', "{'query': 1}", "{} {}", "\x00",
    )),
    (_sent(b'{"query": "\xff"}'), UNREADABLE, "UTF-8"), ({"body": '{"query": "\ud800"}'}, UNREADABLE, "UTF-8"),
    ({"body": "%%%", "isBase64Encoded": True}, UNREADABLE, "UTF-8"),
    ({"body": "e30", "isBase64Encoded": True}, UNREADABLE, "UTF-8"),
    ({"body": "é", "isBase64Encoded": True}, UNREADABLE, "UTF-8"),
    (_sent('{"query": 1}'.encode("utf-16")), UNREADABLE, "UTF-8"),
    ({"body": f'{{"limit": {"9" * 5_000}}}'}, UNREADABLE, "number"),
    *(({"body": body}, UNREADABLE, "nested") for body in ("[" * 30_000 + "]" * 30_000, '{"query":' * 6_000)),
    ({"body": "x" * (MOST + 1)}, TOO_LARGE, "at most 65,536"), ({"body": "é" * (MOST // 2 + 1)}, TOO_LARGE, "at most"),
    (_sent(b"\xff" * (MOST + 1)), TOO_LARGE, "too long: send at most"),
], ids=lambda value: str(value)[:30])  # fmt: skip
def test_body_that_cannot_be_parsed_is_refused(event, error, message):
    with pytest.raises(error, match=message):
        body_of(event)


@pytest.mark.parametrize(("event", "path"), [
    ({"path": "/discover"}, "/discover"),
    ({"path": "/capabilities/com.acme%2Frefund"}, "/capabilities/com.acme/refund"),
    ({"path": "/capabilities/com.acme/docs/read"}, "/capabilities/com.acme/docs/read"),
    ({"path": "/capabilities/a/%E8%BF%94%E9%87%91%20x"}, "/capabilities/a/返金 x"),
    ({"path": "/capabilities/a/100%25"}, "/capabilities/a/100%"),
    ({"path": "/capabilities/a/100%"}, "/capabilities/a/100%"),
    ({"path": "/capabilities/a/x+y"}, "/capabilities/a/x+y"), ({"path": "/%252F"}, "/%2F"),
    ({"path": "/%FF"}, "/\ufffd"), ({"path": ""}, "/"), ({"path": None}, "/"), ({}, "/"),
])  # fmt: skip
def test_path_is_percent_decoded_once(event, path):
    assert parse_request(event).decoded_path == path


@pytest.mark.parametrize(("vouched", "audiences"), [
    ("ops", {"ops"}), ("ops,dev", {"ops", "dev"}), (" ops , dev ,,", {"ops", "dev"}), ("ops,ops", {"ops"}),
    ("", set()), (",", set()), (None, set()),
])  # fmt: skip
def test_audiences_come_from_the_authorizer(vouched, audiences):
    assert parse_request({"requestContext": {"authorizer": {"audiences": vouched}}}).caller.audiences == audiences


@pytest.mark.parametrize("claimed", [
    {}, {"requestContext": None}, {"requestContext": {"authorizer": None}},
    {"headers": {"audiences": "ops", "X-Mats-Audiences": "ops", "Authorization": "ops"}},
    {"multiValueQueryStringParameters": {"audiences": ["ops"]}},
    {"pathParameters": {"audiences": "ops"}, "path": "/discover;audiences=ops"},
    {"body": json.dumps({"query": "q", "requestContext": {"authorizer": {"audiences": "ops"}}})},
    {"audiences": "ops", "authorizer": {"audiences": "ops"}},
], ids=str)  # fmt: skip
def test_clients_cannot_set_their_audiences(claimed):
    assert parse_request(claimed).caller.audiences == frozenset()
    authorized = {**claimed, "requestContext": {"authorizer": {"audiences": "dev"}}}
    assert parse_request(authorized).caller.audiences == {"dev"}


FAULTS = [Fault("query", "is required"), Fault("kinds.0", "input should be one of four")]
RETRY = {"Retry-After": "1"}
EXPECTED = [
    (http.BodyTooLarge([Fault("", "too long")]), 413, {}),
    (http.BodyUnreadable([Fault("", "no JSON")]), 400, {}),
    (errors.Invalid(FAULTS), 422, {}),
    (errors.RequestInvalid(FAULTS), 422, {}),
    (errors.RegistrationInvalid(FAULTS), 422, {}),
    (errors.KindConflict("com.acme/x"), 409, {}),
    (errors.PreconditionFailed("com.acme/x"), 412, {}),
    (errors.CapabilityNotFound("com.acme/x"), 404, {}),
    (errors.InstructionsNotFound("com.acme/x"), 404, {}),
    (errors.ReceiptNotFound("q1", 30), 404, {}),
    (errors.RegistryNotFound("/srv/mats"), 500, {}),
    (errors.NotPossible(FAULTS), 409, {}),
    (errors.DependencyFailed("the index did not answer"), 503, RETRY),
    (errors.OutOfTime("lexical: 600 ms"), 503, RETRY),
    (errors.Overloaded(96, retry_after_s=3), 429, {"Retry-After": "3"}),
    (errors.StorageUnusable("the disk is full; make room"), 503, {}),
    (errors.NotInstalled("boto3 is not installed: install it"), 503, {}),
    (errors.NotPermitted("access to the model was denied"), 503, {}),
    (errors.ModelRefused("the model was denied", model="m", cause="denied"), 503, {}),
    (errors.ReplyUnusable("no scores"), 500, {}),
    (errors.CapabilityError("any"), 500, {}),
]


@pytest.mark.parametrize(("error", "status", "headers"), EXPECTED, ids=lambda value: type(value).__name__)
def test_every_error_is_a_problem_with_its_status(error, status, headers):
    response = http.error_response(error)
    assert response.status == status
    assert response.headers == {"Content-Type": "application/problem+json", **headers}
    problem = Problem.model_validate_json(response.body)
    assert (problem.status, problem.detail) == (status, str(error))
    assert problem.title != "Error" or status not in (400, 404, 413, 422, 500, 503)


def _with_subclasses(error: type[Exception]) -> set[type[Exception]]:
    return {error, *chain.from_iterable(map(_with_subclasses, error.__subclasses__()))}


def test_every_error_class_has_a_stated_status():
    modules = {errors.__name__, http.__name__}
    ours = {error for error in _with_subclasses(errors.CapabilityError) if error.__module__ in modules}
    assert ours == {type(error) for error, _, _ in EXPECTED}


def test_proxy_response_is_what_api_gateway_expects():
    assert proxy_response(http.Response(404, "{}", {"Content-Type": "application/problem+json"})) == {
        "statusCode": 404,
        "headers": {"Content-Type": "application/problem+json"},
        "body": "{}",
        "isBase64Encoded": False,
    }
