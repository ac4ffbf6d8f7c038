"""Findings of cdk-nag that we know of, each with the reason why it stays."""

from collections.abc import Iterable, Mapping

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct

HERE = "<AWS::Region>:<AWS::AccountId>"
"""How cdk-nag spells the region and the account in an ARN that is of no certain ones."""
AWS_POLICIES = "arn:<AWS::Partition>:iam::aws:policy/service-role"
"""Policies of AWS's own, as cdk-nag spells them."""


def accept(where: IConstruct, **reasons: str) -> None:
    """Accept findings for this construct and what is in it: rule, in Python's spelling, and reason."""
    accept_each(where, reasons)


def accept_each(where: IConstruct, reasons: Mapping[str, str]) -> None:
    """The same, for rules that name what they found, such as `IAM5[Resource::*]`."""
    for rule, reason in reasons.items():
        Validations.of(where).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))


def accept_wildcards(where: IConstruct, resources: Iterable[str], reason: str) -> None:
    """Accept these resources, as cdk-nag spells them, in policies of this construct."""
    accept_each(where, {f"IAM5[Resource::{resource}]": reason for resource in resources if "*" in resource})


def accept_warning(where: IConstruct, warning: str, reason: str) -> None:
    """Accept a warning of the CDK's own."""
    Validations.of(where).acknowledge(Acknowledgment(id=f"Annotation::{warning}", reason=reason))
