"""Events in, responses out."""

import base64
import json
from collections.abc import Mapping
from itertools import chain
from typing import Any

import pytest

from mats.domain import errors
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.ranking.query import Query
from mats.edge import http
from mats.edge.answers import Health, Problem
from mats.edge.api_gateway import parse_request, proxy_response


def _sent(body: bytes) -> dict[str, Any]:
    """An event with this body, as API Gateway hands over what may not be text."""
    return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}


def body_of(event: Mapping[str, Any]) -> Any:
    return parse_request(event).json()


# parameters and headers


@pytest.mark.parametrize(
    ("event", "parameters"),
    [
        ({}, {}),
        ({"multiValueQueryStringParameters": None}, {}),
        ({"multiValueQueryStringParameters": {"a": ["1", ""], "b": ["2"]}}, {"a": ["1", ""], "b": ["2"]}),
    ],
)
def test_parameters_keep_all_values(event, parameters):
    assert parse_request(event).query == parameters


@pytest.mark.parametrize("spelt", ["Origin", "origin", "ORIGIN"])
def test_header_names_are_case_insensitive(spelt):
    assert parse_request({"headers": {"X": "y", spelt: "here"}}).header("Origin") == "here"
    assert parse_request({"headers": {spelt: "here"}}).header("Host") is None
    assert parse_request({"headers": None}).header("Host") is None


# bodies


def test_body_is_parsed_as_json():
    assert body_of({"body": '{"query": "返金"}'}) == {"query": "返金"}
    assert body_of({"body": "[1]", "isBase64Encoded": False}) == [1]


def test_base64_body_is_decoded():
    assert body_of(_sent('{"query": "返金"}'.encode())) == {"query": "返金"}


def test_byte_order_mark_is_skipped():
    assert body_of({"body": '\ufeff{"query": "refund"}'}) == {"query": "refund"}
    assert body_of(_sent(b'\xef\xbb\xbf{"query": "refund"}')) == {"query": "refund"}


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"body": None},
        {"body": ""},
        {"body": "query=refund"},
        {"body": '{"query": "refund"'},
        {"body": "{'query': 'refund'}"},
        {"body": "{} {}"},
        {"body": "\x00"},
    ],
)
def test_invalid_json_is_reported_with_its_position(event):
    with pytest.raises(http.BodyUnreadable, match=r"not JSON: .* at character \d+"):
        body_of(event)


@pytest.mark.parametrize(
    "event",
    [
        _sent(b'{"query": "\xff"}'),
        _sent('{"query": "é"}'.encode("latin-1")),
        {"body": '{"query": "\ud800"}'},
        {"body": "%%%", "isBase64Encoded": True},
        {"body": "e30", "isBase64Encoded": True},
    ],
    ids=["byte", "latin-1", "surrogate", "no base64", "no padding"],
)
def test_body_that_is_no_utf8_is_unreadable(event):
    with pytest.raises(http.BodyUnreadable, match="UTF-8"):
        body_of(event)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_unicode_encodings_are_unreadable(encoding):
    with pytest.raises(http.BodyUnreadable):
        body_of(_sent('{"query": "refund"}'.encode(encoding)))


def test_invalid_base64_is_unreadable():
    with pytest.raises(http.BodyUnreadable):
        body_of({"body": "é", "isBase64Encoded": True})


def test_overlong_number_is_unreadable():
    with pytest.raises(http.BodyUnreadable):
        body_of({"body": f'{{"query": "q", "limit": {"9" * 5_000}}}'})


def test_body_of_exactly_the_limit_is_parsed():
    empty = len('{"query": ""}')
    body = f'{{"query": "{"x" * (http.MAX_BODY_BYTES - empty)}"}}'
    assert body_of({"body": body}).keys() == {"query"}
    assert body_of(_sent(body.encode())).keys() == {"query"}


@pytest.mark.parametrize(
    "event",
    [
        {"body": "x" * (http.MAX_BODY_BYTES + 1)},
        {"body": "é" * (http.MAX_BODY_BYTES // 2 + 1)},
        _sent(b"x" * (http.MAX_BODY_BYTES + 1)),
        _sent(b"\xff" * (http.MAX_BODY_BYTES + 1)),
    ],
    ids=["text", "bytes are counted", "encoded", "no text"],
)
def test_body_above_the_limit_is_rejected_unparsed(event):
    with pytest.raises(http.BodyTooLarge, match="at most 65,536"):
        body_of(event)


def test_deeply_nested_body_is_unreadable():
    for body in ("[" * 30_000, "[" * 30_000 + "]" * 30_000, '{"query":' * 6_000):
        with pytest.raises(http.BodyUnreadable):
            body_of({"body": body})


@pytest.mark.parametrize("depth", [500, 5_000, 9_000])
def test_nested_body_is_no_query(depth):
    for body in ("[" * depth + "]" * depth, '{"query":' * (depth // 2) + "1" + "}" * (depth // 2)):
        with pytest.raises(RequestInvalid):
            Query.parse(body_of({"body": body}))


def test_very_deep_body_is_rejected_by_its_size():
    with pytest.raises(http.BodyTooLarge):
        body_of({"body": "[" * 100_000 + "]" * 100_000})


# paths


@pytest.mark.parametrize(
    ("event", "path"),
    [
        ({"path": "/discover"}, "/discover"),
        ({"path": "/capabilities/com.acme%2Frefund"}, "/capabilities/com.acme/refund"),
        ({"path": "/capabilities/com.acme/docs/read"}, "/capabilities/com.acme/docs/read"),
        ({"path": "/capabilities/a/%E8%BF%94%E9%87%91%20x"}, "/capabilities/a/返金 x"),
        ({"path": "/capabilities/a/100%25"}, "/capabilities/a/100%"),
        ({"path": "/capabilities/a/100%"}, "/capabilities/a/100%"),
        ({"path": "/capabilities/a/x+y"}, "/capabilities/a/x+y"),
        ({"path": "/%252F"}, "/%2F"),
        ({"path": "/%FF"}, "/\ufffd"),
        ({"path": ""}, "/"),
        ({"path": None}, "/"),
        ({}, "/"),
    ],
)
def test_path_is_percent_decoded_once(event, path):
    assert parse_request(event).decoded_path == path


# audiences


@pytest.mark.parametrize(
    ("vouched", "audiences"),
    [
        ("ops", {"ops"}),
        ("ops,dev", {"ops", "dev"}),
        (" ops , dev ,,", {"ops", "dev"}),
        ("ops,ops", {"ops"}),
        ("", set()),
        (",", set()),
        (None, set()),
    ],
)
def test_audiences_come_from_the_authorizer(vouched, audiences):
    assert parse_request({"requestContext": {"authorizer": {"audiences": vouched}}}).caller.audiences == audiences


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"requestContext": None},
        {"requestContext": {}},
        {"requestContext": {"authorizer": None}},
        {"requestContext": {"authorizer": {}}},
    ],
)
def test_caller_without_authorizer_has_no_audiences(event):
    assert parse_request(event).caller.audiences == frozenset()


CLAIM = "ops"


@pytest.mark.parametrize(
    "claimed",
    [
        {"headers": {"audiences": CLAIM, "X-Mats-Audiences": CLAIM, "Authorization": CLAIM}},
        {"multiValueHeaders": {"audiences": [CLAIM]}},
        {"queryStringParameters": {"audiences": CLAIM}},
        {"multiValueQueryStringParameters": {"audiences": [CLAIM]}},
        {"pathParameters": {"audiences": CLAIM}, "path": f"/discover;audiences={CLAIM}"},
        {"body": json.dumps({"query": "q", "requestContext": {"authorizer": {"audiences": CLAIM}}})},
        {"body": json.dumps({"query": "q", "audiences": CLAIM, "visible_to": [CLAIM]})},
        {"audiences": CLAIM, "authorizer": {"audiences": CLAIM}},
    ],
    ids=lambda claimed: next(iter(claimed)),
)
def test_clients_cannot_set_their_audiences(claimed):
    assert parse_request({**claimed, "requestContext": {}}).caller.audiences == frozenset()
    assert parse_request({**claimed, "requestContext": {"authorizer": {"audiences": "dev"}}}).caller.audiences == {
        "dev"
    }


# answers and problems


def test_json_response_has_null_for_absent_values():
    response = http.json_response(Health(status="ok", index="sqlite", encoder=None, reranker=None))
    assert (response.status, response.headers) == (200, {"Content-Type": "application/json"})
    assert json.loads(response.body) == {
        "status": "ok",
        "index": "sqlite",
        "encoder": None,
        "reranker": None,
        "weights": {},
    }


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


def test_problem_lists_faults_by_field():
    body = json.loads(http.error_response(errors.RequestInvalid(FAULTS)).body)
    assert body == {
        "type": "about:blank",
        "title": "Unprocessable Content",
        "status": 422,
        "detail": "query: is required; kinds.0: input should be one of four",
        "errors": [
            {"field": "query", "message": "is required"},
            {"field": "kinds.0", "message": "input should be one of four"},
        ],
    }


def test_fault_of_the_whole_body_is_in_the_detail_only():
    body = json.loads(http.error_response(http.BodyUnreadable([Fault("", "no JSON")])).body)
    assert (body["detail"], body["errors"]) == ("no JSON", [])


@pytest.mark.parametrize("body", [{"query": "\ud800"}, {"query": "q", "\ud800": 1}, {"query": "q", "tags": ["\udfff"]}])
def test_problem_about_lone_surrogates_is_valid_utf8(body):
    with pytest.raises(errors.RequestInvalid) as refused:
        Query.parse(body)
    response = http.error_response(refused.value)
    assert response.status == 422
    assert response.body.encode()


def test_problem_may_have_headers():
    response = http.problem(405, "use POST", headers={"Allow": "POST"})
    assert response.headers == {"Content-Type": "application/problem+json", "Allow": "POST"}
    assert json.loads(response.body)["title"] == "Method Not Allowed"


def test_proxy_response_is_what_api_gateway_expects():
    assert proxy_response(http.Response(404, "{}", {"Content-Type": "application/problem+json"})) == {
        "statusCode": 404,
        "headers": {"Content-Type": "application/problem+json"},
        "body": "{}",
        "isBase64Encoded": False,
    }


def test_lone_surrogate_in_a_field_name_is_replaced():
    refused = RequestInvalid([Fault("query.\ud800", "is not known")])
    assert Problem.model_validate_json(http.error_response(refused).body).errors[0].field == "query.?"
