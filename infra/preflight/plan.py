"""The plan of a deployment: its stacks, the names it would give, and the bootstrap version it needs."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_NAMES = {
    "AWS::CloudTrail::Trail": "TrailName",
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Events::EventBus": "Name",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::OpenSearchService::Domain": "DomainName",
    "AWS::Pipes::Pipe": "Name",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SQS::Queue": "QueueName",
}
"""The property that names a resource, where it is what CloudControl knows the resource by, too."""
_QUALIFIER = "@aws-cdk/core:bootstrapQualifier"


@dataclass(frozen=True, slots=True)
class PhysicalName:
    """A name that a stack would give."""

    stack: str
    type: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A deployment as its templates have it."""

    stacks: tuple[str, ...]
    names: tuple[PhysicalName, ...]
    bootstrap_version: int
    qualifier: str = "hnb659fds"


def plan_of(context: Mapping[str, Any]) -> Plan:
    """The plan of a context, by synthesizing it without building the layers.

    Raises:
        ContextInvalid: with every fault of the context.
    """
    from aws_cdk import App  # noqa: PLC0415 - starts Node

    from infra.stacks import add_stacks  # noqa: PLC0415 - likewise

    with TemporaryDirectory() as folder:
        app = App(context={**context, "aws:cdk:bundling-stacks": []}, outdir=folder)
        add_stacks(app)
        app.synth()
        manifest = json.loads((Path(folder) / "manifest.json").read_text("utf-8"))
        stacks = {
            name: each["properties"]
            for name, each in manifest["artifacts"].items()
            if each["type"] == "aws:cloudformation:stack"
        }
        templates = {
            name: json.loads((Path(folder) / each["templateFile"]).read_text("utf-8")) for name, each in stacks.items()
        }
    return Plan(
        stacks=tuple(sorted(stacks)),
        names=tuple(
            named for stack, template in sorted(templates.items()) for named in _physical_names(stack, template)
        ),
        bootstrap_version=max(each["requiresBootstrapStackVersion"] for each in stacks.values()),
        **({"qualifier": str(context[_QUALIFIER])} if _QUALIFIER in context else {}),
    )


def _physical_names(stack: str, template: Mapping[str, Any]) -> Iterator[PhysicalName]:
    for resource in template["Resources"].values():
        name = resource.get("Properties", {}).get(_NAMES.get(resource["Type"], ""))
        if isinstance(name, str):
            yield PhysicalName(stack, resource["Type"], name)
