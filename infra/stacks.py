"""What is deployed: the tables, which outlive everything, and the system that works on them."""

from aws_cdk import App, Stack, Tags, Validations
from cdk_nag import AwsSolutionsChecks
from constructs import Construct

from infra.constructs.audit import Audit
from infra.constructs.console import Console
from infra.constructs.discovery_api import DiscoveryApi
from infra.constructs.enrichment import TRIES, VISIBILITY, Enrichment
from infra.constructs.event_path import EventPath
from infra.constructs.network import Network
from infra.constructs.observability import Observability
from infra.constructs.people import People
from infra.constructs.search_domain import SearchDomain
from infra.constructs.tables import Tables
from infra.context import Context


class Data(Stack):
    """What owners and operators wrote, and what was made of it."""

    def __init__(self, scope: Construct, id: str, *, context: Context) -> None:
        super().__init__(
            scope, id, description="mats: registrations and profiles", termination_protection=context.production
        )
        self.tables = Tables(self, "Tables")
        if context.audit:
            Audit(self, "Audit", tables=[self.tables.registry, self.tables.trust, self.tables.callers])


class System(Stack):
    """Both paths, and those who watch and use them."""

    def __init__(self, scope: Construct, id: str, *, context: Context, tables: Tables) -> None:
        super().__init__(
            scope, id, description="mats: enrichment and discovery", termination_protection=context.production
        )
        network = Network(self, "Network", zones=context.availability_zones) if context.network == "vpc" else None
        self.domain = SearchDomain(self, "Index", size=context.size, network=network)
        streamed = {"Registry": tables.registry, "Trust": tables.trust}
        self.path = EventPath(self, "EventPath", tables=streamed, visibility=VISIBILITY, tries=TRIES)
        self.enrichment = Enrichment(
            self,
            "Offline",
            context=context,
            tables=tables,
            path=self.path,
            domain=self.domain,
            network=network,
        )
        self.discovery = DiscoveryApi(
            self, "Online", context=context, tables=tables, domain=self.domain, network=network
        )
        if context.console:
            Console(self, "Console", context=context, api=self.discovery.api)
        Observability(
            self,
            "Observability",
            api=self.discovery.api,
            discovery=self.discovery.function,
            enrichment=self.enrichment.function,
            queue=self.path.queue,
            dead_letter_queues=self.path.dead_letter_queues,
            pipes=self.path.pipes,
            domain=self.domain.domain,
            alarm_email=context.alarm_email or None,
            discovery_log=self.discovery.log,
        )
        People(
            self,
            "People",
            context=context,
            tables=tables,
            path=self.path,
            domain=self.domain,
            enrichment=self.enrichment.function,
            api=self.discovery.api,
        )


def app() -> App:
    """What `cdk` deploys.

    Raises:
        ContextInvalid: with every fault of the context.
    """
    whole = App()
    add_stacks(whole)
    return whole


def add_stacks(app: App) -> tuple[Data, System]:
    """Everything, as the app's context chooses; a finding of cdk-nag that nobody accepted stops the synthesis.

    Raises:
        ContextInvalid: with every fault of the context.
    """
    app.node.set_context("@aws-cdk/aws-lambda:recognizeLayerVersion", True)  # our code is in a layer: it makes versions
    context = Context.of(app.node.get_all_context())
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    data = Data(app, "mats-data", context=context)
    system = System(app, "mats", context=context, tables=data.tables)
    Tags.of(app).add("application", "mats")
    return data, system
