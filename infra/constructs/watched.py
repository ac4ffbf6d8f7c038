"""The resources that alarms and the dashboard monitor."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_opensearchservice as opensearch
from aws_cdk import aws_pipes as pipes
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn

from infra.constructs.metrics import OwnMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The monitored resources; mappings are by display name."""

    ours: OwnMetrics
    stage: apigateway.Stage
    discovery: lambda_.IFunction
    enrichment: lambda_.IFunction
    feedback: lambda_.IFunction
    learning: lambda_.IFunction
    queue: sqs.IQueue
    dead_letter_queues: Mapping[str, sqs.IQueue]
    """By the hop that gave up."""
    pipes: Mapping[str, pipes.CfnPipe]
    """By the table that each one reads."""
    domain: opensearch.Domain
    maintenance: sfn.IStateMachine
    discovery_log: logs.ILogGroup
    """Source of the exposure by provider."""
