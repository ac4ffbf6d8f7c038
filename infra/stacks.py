"""The two stacks: tables, which are retained, and everything that can be made again from them."""

import os
from collections.abc import Iterator

from aws_cdk import Annotations, App, Stack, Tags, Validations
from cdk_nag import AwsSolutionsChecks
from constructs import Construct

from infra.constructs.access_policies import AccessPolicies
from infra.constructs.console import Console
from infra.constructs.consumers import EnrichmentFunction, LearningFunction
from infra.constructs.discovery_api import DiscoveryApi, FeedbackFunction
from infra.constructs.event_path import EventPath
from infra.constructs.files_bucket import FilesBucket
from infra.constructs.function import Foundation
from infra.constructs.maintenance import MaintenanceFunction
from infra.constructs.model_access import ModelAccess
from infra.constructs.network import Network
from infra.constructs.observability import Observability
from infra.constructs.rollout import Rollout
from infra.constructs.search_domain import SearchDomain
from infra.constructs.tables import MatsTables
from infra.constructs.watched import Watched
from infra.context import Context, check_region, parse, replacing
from infra.layers import core_layer, files_layer, vendor_layer
from mats.adapters.opensearch import mapping
from mats.bootstrap.models import load_calibration, prices
from mats.edge.observers import UNPRICED


class DataStack(Stack):
    """The tables: registrations, trust, profiles, callers, synonyms, receipts, outcomes, tallies."""

    def __init__(self, scope: Construct, id: str, *, context: Context) -> None:
        super().__init__(
            scope, id, description="mats: registrations and profiles", termination_protection=context.production
        )
        self.tables = MatsTables(self, "Tables", context=context)


class SystemStack(Stack):
    """Enrichment, discovery, maintenance, monitoring, and access policies."""

    def __init__(self, scope: Construct, id: str, *, context: Context, tables: MatsTables) -> None:
        super().__init__(
            scope, id, description="mats: enrichment and discovery", termination_protection=context.production
        )
        network = Network(self, "Network", context=context) if context.network == "vpc" else None
        on = Foundation(
            context=context,
            models=ModelAccess(self, "Models", context=context),
            tables=tables,
            domain=FilesBucket(self, "Index", context=context)
            if context.files
            else SearchDomain(self, "Index", context=context, network=network),
            network=network,
            core=core_layer(self),
            packages=[vendor_layer(self), *([files_layer(self)] if context.files else [])],
        )
        self.path = EventPath(self, "EventPath", on=on)
        self.enrichment = EnrichmentFunction(self, "Offline", on=on, path=self.path)
        self.feedback = FeedbackFunction(self, "Reports", on=on)
        self.learning = LearningFunction(self, "Learning", on=on, path=self.path)
        self.discovery = DiscoveryApi(self, "Online", on=on, feedback=self.feedback)
        self.maintenance = MaintenanceFunction(self, "Repair", on=on, path=self.path, discovery=self.discovery.function)
        observed = Observability(self, "Observability", context=context, watched=self._watched_parts(on))
        if context.console:
            Console(self, "Console", context=context, api=self.discovery.api)
        if context.in_steps:
            Rollout(self, "Rollout", alias=self.discovery.alias, brakes=observed.brakes)
        AccessPolicies(
            self,
            "People",
            on=on,
            path=self.path,
            reports=self.learning.queue,
            enrichment=self.enrichment.function,
            maintenance=self.maintenance.machine,
            api=self.discovery.api,
        )

    def _watched_parts(self, on: Foundation) -> Watched:
        domain = {"domain": on.domain.domain} if isinstance(on.domain, SearchDomain) else {}
        return Watched(
            namespace=on.context.name,
            alias=self.discovery.alias,
            resources={
                "stage": self.discovery.api.deployment_stage,
                "discovery": self.discovery.function,
                "enrichment": self.enrichment.function,
                "feedback": self.feedback.function,
                "learning": self.learning.function,
                "streams": self.path.function,
                "queue": self.path.queue,
                "maintenance": self.maintenance.machine.machine,
                **domain,
            },
            dead_letter_queues=self.path.dead_letter_queues,
            logs={"discovery": self.discovery.log, "enrichment": self.enrichment.log},
        )


def app() -> App:
    """The CDK app with both stacks.

    Raises:
        ContextInvalid: with every fault of the context.
    """
    whole = App()
    add_stacks(whole, region=_region())
    return whole


def _region() -> str:
    """The region that the CDK's command will deploy to; empty without credentials, when what it says is a guess."""
    said = os.environ  # noqa: TID251 - from the CDK's command, not ours
    return said.get("CDK_DEFAULT_REGION", "") if said.get("CDK_DEFAULT_ACCOUNT") else ""


def add_stacks(app: App, *, region: str = "") -> tuple[DataStack, SystemStack]:
    """Add both stacks, as the app's context chooses; an unacknowledged cdk-nag finding stops the synthesis.

    Raises:
        ContextInvalid: with every fault of the context.
    """
    app.node.set_context("@aws-cdk/aws-lambda:recognizeLayerVersion", True)  # our code is in a layer: it makes versions
    context = parse(app.node.get_all_context())
    if region:
        check_region(context, region)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    data = DataStack(app, f"{context.name}-data", context=context)
    system = SystemStack(app, context.name, context=context, tables=data.tables)
    Tags.of(app).add("application", context.name)
    for note in notes(context):
        Annotations.of(system).add_info(note)
    return data, system


def notes(context: Context) -> Iterator[str]:
    """Warnings to read before a deployment."""
    for key, replaced in replacing(context).items():
        yield f'{key}: changing it later replaces {replaced}. See docs/runbook.md, "Switches on a live system".'
    calibration = load_calibration(f"opensearch-{mapping.VERSION}", context.encoder_model)
    if not calibration.source.fitted:
        yield (
            f"encoder_model: no calibration is fitted to {context.encoder_model}, so scores and verdicts without a "
            f"reranker use that of {calibration.source.name}. Fit one on judged queries: `make calibrate`, "
            "docs/how-to-tune.md."
        )
    unpriced = [model for model in context.language_models if prices().usage(model, 1, 1).usd is None]
    if unpriced and context.spend_per_hour:
        counted = " and ".join(map(str, UNPRICED))
        yield (
            f"spend_per_hour: prices.json has no price of {' and '.join(unpriced)}. The alarm counts its tokens at "
            f"{counted} dollars a million, in and out: choose the limit for that."
        )
    if context.production and not context.alarm_to:
        yield "alarm_to: nobody hears of an alarm. Set it."
