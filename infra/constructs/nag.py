"""Findings of cdk-nag that we know of, each with the reason why it stays."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def accept(where: IConstruct, **reasons: str) -> None:
    """Accept findings for this construct and what is in it: rule, in Python's spelling, and reason."""
    accept_each(where, {rule: reason for rule, reason in reasons.items()})


def accept_each(where: IConstruct, reasons: dict[str, str]) -> None:
    """The same, for rules that name what they found, such as `IAM5[Resource::*]`."""
    for rule, reason in reasons.items():
        Validations.of(where).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))
