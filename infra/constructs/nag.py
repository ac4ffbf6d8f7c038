"""Acknowledged findings of cdk-nag, each with its reason."""

from collections.abc import Iterable
from typing import cast

from aws_cdk import Acknowledgment, CfnElement, Stack, Validations
from constructs import IConstruct

HERE = "<AWS::Region>:<AWS::AccountId>"
"""Region and account in an ARN, as cdk-nag spells them in a template without environment."""


def accept(where: IConstruct, **reasons: str) -> None:
    """Accept findings for this construct and what is in it: rule, such as `L1` or `IAM5[Resource::*]`, and reason."""
    for rule, reason in reasons.items():
        Validations.of(where).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))


def accept_managed(where: IConstruct, policy: str, reason: str) -> None:
    """Accept a policy that AWS manages."""
    accept(where, **{f"IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/{policy}]": reason})


def accept_wildcards(where: IConstruct, resources: Iterable[str], reason: str) -> None:
    """Accept these resources, as cdk-nag spells them, in policies of this construct."""
    accept(where, **{f"IAM5[Resource::{resource}]": reason for resource in resources if "*" in resource})


def accept_warning(where: IConstruct, warning: str, reason: str) -> None:
    """Accept a warning of the CDK."""
    Validations.of(where).acknowledge(Acknowledgment(id=f"Annotation::{warning}", reason=reason))


def logical_id(construct: IConstruct) -> str:
    """The id in the template of the resource that a construct makes, as cdk-nag spells references to it."""
    return Stack.of(construct).get_logical_id(cast(CfnElement, construct.node.default_child))
