"""Statements of policies."""

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_iam as iam


def allow(*actions: str, on: str | Sequence[str], where: Mapping[str, Any] | None = None) -> iam.PolicyStatement:
    """The right to these actions on one resource or several, under these conditions."""
    return iam.PolicyStatement(actions=[*actions], resources=[on] if isinstance(on, str) else [*on], conditions=where)
