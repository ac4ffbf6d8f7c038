"""Alarms and the dashboard."""

from constructs import Construct

from infra.constructs.alarms import Alarms
from infra.constructs.answer_alarms import add_answer_alarms, add_model_alarms
from infra.constructs.change_alarms import add_change_alarms, add_pipe_alarms
from infra.constructs.dashboard import Dashboard
from infra.constructs.demand_query import SavedDemandQuery
from infra.constructs.domain_alarms import add_domain_alarms
from infra.constructs.pipe_watch import PipeWatch
from infra.constructs.watched import Watched
from infra.context import Context


class Observability(Construct):
    """Alarms, each with its section in docs/runbook.md, the dashboard, and the saved query for demand."""

    def __init__(self, scope: Construct, id: str, *, context: Context, watched: Watched) -> None:
        super().__init__(scope, id)
        alarms = Alarms(self, context)
        PipeWatch(self, "PipeWatch", context=context, watched=watched.pipes)
        self.brakes = add_answer_alarms(alarms, watched)
        """Alarms that stop the rollout of a new version of discovery."""
        add_model_alarms(alarms, watched.ours, usd_per_hour=context.spend_per_hour)
        add_change_alarms(alarms, watched)
        add_pipe_alarms(alarms, watched)
        add_domain_alarms(alarms, watched.domain)
        SavedDemandQuery(self, "Demand", context=context, log=watched.discovery_log)
        Dashboard(self, "Dashboard", context=context, watched=watched, alarms=alarms.all)
