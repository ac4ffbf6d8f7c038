"""Deployment options, as CDK context: every key with its default and its meaning, validated before synthesis."""

from infra.context.keys import Context, ContextInvalid, table

__all__ = ["Context", "ContextInvalid", "table"]
