"""The permissions of a role, and those that a call needs."""

from email.message import Message
from typing import Any

import pytest

from tests.aws import iam
from tests.aws.calls import Account, Service
from tests.aws.deployment import Deployment, Misconfigured
from tests.aws.tests.small_template import allow, role


@pytest.mark.parametrize(
    ("action", "resource", "expected"),
    [
        ("es:ESHttpPost", "arn:aws:es:r:a:domain/mats/capabilities-1/_search", True),
        ("es:ESHttpPost", "arn:aws:es:r:a:domain/mats/other/_search", False),
        ("es:ESHttpPut", "arn:aws:es:r:a:domain/mats/capabilities-1/_search", False),
        ("dynamodb:getitem", "arn:aws:dynamodb:r:a:table/Registry", True),
        ("dynamodb:GetItem", "arn:aws:dynamodb:r:a:table/Registry2", False),
        ("dynamodb:GetItem", "arn:aws:dynamodb:r:a:table/Secret", False),
    ],
)
def test_statements_allow_by_wildcards_and_a_denial_wins(action: str, resource: str, expected: bool) -> None:
    policy = [
        allow(["es:ESHttpPost"], "arn:aws:es:r:a:domain/mats/capabilities*/_search"),
        allow(["dynamodb:Get*"], ["arn:aws:dynamodb:r:a:table/Registry", "arn:aws:dynamodb:r:a:table/Secre?"]),
        {**allow(["dynamodb:*"], "arn:aws:dynamodb:r:a:table/Secret"), "Effect": "Deny"},
    ]
    assert iam.allowed(policy, action, resource) is expected


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["denied last", "denied first"])
def test_a_denial_of_paths_below_leaves_the_path_itself(order: slice) -> None:
    domain = "arn:aws:es:r:a:domain/mats"
    policy = [
        allow(["es:ESHttpPut"], f"{domain}/x-*"),
        {**allow(["es:ESHttpPut"], f"{domain}/x-*/*"), "Effect": "Deny"},
    ]
    puts = ["x-1", "x-1/", "x-1/_settings", "x-1,y/_mapping", "x-", "y"]
    allowed = [path for path in puts if iam.allowed(policy[order], "es:ESHttpPut", f"{domain}/{path}")]
    assert allowed == ["x-1", "x-"]


@pytest.mark.parametrize(
    "statement",
    [
        {"Effect": "Allow", "NotAction": "s:A", "Resource": "*"},
        {"Effect": "Allow", "Action": "*", "NotResource": "r"},
        {**allow(["*"], "*"), "Condition": {"Bool": {"aws:SecureTransport": "true"}}},
        {**allow(["*"], "*"), "Condition": {"StringEquals": {"aws:PrincipalTag/x": "y"}}},
    ],
)
def test_a_statement_that_is_not_understood_is_not_guessed(statement: dict[str, Any]) -> None:
    with pytest.raises(iam.CannotDecide):
        iam.allowed([statement], "s:B", "r2")


def test_references_are_resolved_across_stacks() -> None:
    exported = {"Export": {"Name": "first:table"}, "Value": {"Fn::GetAtt": ["Table", "Arn"]}}
    first = {"Resources": {"Table": {"Type": "AWS::DynamoDB::Table"}}, "Outputs": {"Out": exported}}
    reader = role(allow(["dynamodb:GetItem"], {"Fn::Join": ["", [{"Fn::ImportValue": "first:table"}, "/index/*"]]}))
    deployment = Deployment(first, {"Resources": {"Role": reader}})
    statements = iam.statements(deployment, deployment.one("AWS::IAM::Role"))
    assert statements[0]["Resource"] == "arn:aws:dynamodb:us-east-1:123456789012:table/Table/index/*"
    with pytest.raises(Misconfigured):
        deployment.resolve({"Ref": "Absent"})


@pytest.mark.parametrize(
    ("method", "target", "action", "path"),
    [
        ("POST", "/capabilities/_search?size=1", "es:ESHttpPost", "/capabilities/_search"),
        ("HEAD", "/_alias/capabilities", "es:ESHttpHead", "/_alias/capabilities"),
    ],
)
def test_a_call_to_opensearch_is_a_method_on_a_path(method: str, target: str, action: str, path: str) -> None:
    domain = "arn:aws:es:us-east-1:123456789012:domain/mats"
    assert _asked("opensearch", method, target) == [(action, domain + path)]


def test_a_model_behind_a_profile_needs_the_profile_and_the_model_everywhere() -> None:
    titan = "arn:aws:bedrock:us-east-1::foundation-model/amazon.titan-embed-text-v2:0"
    asked = _asked("bedrock", "POST", "/model/amazon.titan-embed-text-v2%3A0/invoke")
    assert asked == [("bedrock:InvokeModel", titan)]
    asked = _asked("bedrock", "POST", "/model/us.amazon.nova-micro-v1%3A0/converse")
    assert [resource.split(":")[3] for _, resource in asked] == ["us-east-1", "us-east-1", "us-east-2", "us-west-2"]


def _asked(service: Service, method: str, target: str) -> list[tuple[str, str]]:
    return list(Account().read(service, method, target, Message(), b"").needs)
