"""Requests for which nothing was found, from the decision log of discovery."""

from collections.abc import Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.context import Context

_REST = '"filter": {*}, "audiences": [*], "verdict": "*"'
ASKED = {"text": f'"query": "*", {_REST}', "hash": f'"query_hash": "*", {_REST}'}
"""Patterns of a request and its verdict in a record of the decision log, by how queries are logged."""
NEAREST = '"position": 1, "id": "*"'
"""The best candidate of a record."""


def demand_lines(context: Context) -> Sequence[str]:
    """The query: requests without a match, the most frequent first, each with the nearest capability."""
    return (
        "fields message",
        f"parse message '{ASKED[context.settings.log_queries]}' as request, filters, audiences, verdict",
        'filter verdict in ["none", "weak"]',
        f"parse message '{NEAREST}' as nearest",
        "stats count(*) as asked, latest(nearest) as best_candidate by request, verdict",
        "sort asked desc",
        "limit 50",
    )


class SavedDemandQuery(Construct):
    """The query, saved in Logs Insights."""

    def __init__(self, scope: Construct, id: str, *, context: Context, log: logs.ILogGroup) -> None:
        super().__init__(scope, id)
        logs.CfnQueryDefinition(
            self,
            "Saved",
            name=f"{context.name}/demand",
            log_group_names=[log.log_group_name],
            query_string="\n| ".join(demand_lines(context)),
        )


def demand_widget(context: Context, log: logs.ILogGroup, *, width: int) -> cloudwatch.LogQueryWidget:
    """The query on the dashboard."""
    return cloudwatch.LogQueryWidget(
        title="Asked and not found",
        log_group_names=[log.log_group_name],
        query_lines=list(demand_lines(context)),
        view=cloudwatch.LogQueryVisualizationType.TABLE,
        width=width,
    )
