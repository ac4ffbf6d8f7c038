"""The two stacks: tables, which are retained, and everything that can be made again from them."""

import os
from collections.abc import Iterator
from hashlib import sha256

from aws_cdk import Annotations, App, Stack, Tags, Validations
from aws_cdk import aws_kms as kms
from cdk_nag import AwsSolutionsChecks
from constructs import Construct

from infra.constructs.access_policies import AccessPolicies
from infra.constructs.consumers import EnrichmentFunction, LearningFunction
from infra.constructs.discovery_api import DiscoveryApi, DiscoveryProps, FeedbackFunction
from infra.constructs.event_path import EventPath
from infra.constructs.files_bucket import FilesBucket
from infra.constructs.function import Foundation
from infra.constructs.maintenance import Maintenance
from infra.constructs.model_access import ModelAccess
from infra.constructs.network import Network
from infra.constructs.observability import Observability
from infra.constructs.rollout import Rollout
from infra.constructs.search_domain import SearchDomain
from infra.constructs.shared import Shared
from infra.constructs.tables import MatsTables
from infra.constructs.watched import Watched
from infra.context import Context, check_region, parse, replacing
from infra.layers import core_layer, wheels_layer
from infra.vendor import FILES, VENDOR
from mats.adapters.opensearch import mapping
from mats.bootstrap.models import load_calibration, prices
from mats.edge.observers import UNPRICED


class DataStack(Stack):
    """The tables: registrations, trust, profiles, callers, receipts, outcomes."""

    def __init__(self, scope: Construct, id: str, *, context: Context) -> None:
        super().__init__(
            scope, id, description="mats: registrations and profiles", termination_protection=context.production
        )
        self.tables = MatsTables(self, "Tables", shared=_shared_of(self, context))


class SystemStack(Stack):
    """Enrichment, discovery, maintenance, monitoring, and access policies."""

    def __init__(self, scope: Construct, id: str, *, context: Context, tables: MatsTables) -> None:
        super().__init__(
            scope, id, description="mats: enrichment and discovery", termination_protection=context.production
        )
        shared, capacity, settings_of = _shared_of(self, context), context.capacity, context.settings_of
        network = _network(self, context, shared) if context.network == "vpc" else None
        files = FilesBucket(self, "Index", shared=shared) if context.files else None
        on = Foundation(
            shared=shared,
            models=ModelAccess(self, "Models", models=context.models),
            tables=tables,
            domain=files or _domain(self, context, shared, network),
            network=network,
            core=core_layer(self),
            packages=[wheels_layer(self, each) for each in ((VENDOR, FILES) if context.files else (VENDOR,))],
            metrics=context.namespace,
        )
        self.path = EventPath(self, "EventPath", on=on)
        own, at_once = settings_of("enrichment"), capacity.enrichment_concurrency
        self.enrichment = EnrichmentFunction(self, "Offline", on=on, path=self.path, settings=own, at_once=at_once)
        self.feedback = FeedbackFunction(self, "Reports", on=on, settings=settings_of("feedback"))
        self.learning = LearningFunction(self, "Learning", on=on, path=self.path)
        self.discovery = DiscoveryApi(
            self, "Online", on=on, feedback=self.feedback, props=_discovery_props(context, network)
        )
        self.maintenance = Maintenance(
            self,
            "Repair",
            on=on,
            path=self.path,
            discovery=self.discovery.function,
            kept_versions=capacity.kept_versions,
            settings=settings_of("maintenance"),
        )
        observed = Observability(
            self,
            "Observability",
            watched=self._watched_parts(on),
            alarm_to=context.alarm_to,
            usd_per_hour=context.spend_per_hour,
            few=context.size == "small",
            brakes=context.in_steps,
            hashed=context.settings.log_queries == "hash",
        )
        if context.in_steps:
            Rollout(self, "Rollout", alias=self.discovery.alias, brakes=observed.brakes["discovery"])
            Rollout(self, "RolloutOffline", alias=self.enrichment.alias, brakes=observed.brakes["enrichment"])
        AccessPolicies(
            self,
            "People",
            on=on,
            path=self.path,
            reports=self.learning.queue,
            enrichment=self.enrichment.function,
            maintenance=self.maintenance,
            api=self.discovery.api,
        )

    def _watched_parts(self, on: Foundation) -> Watched:
        domain = {"domain": on.domain.domain} if isinstance(on.domain, SearchDomain) else {}
        return Watched(
            name=on.shared.name,
            aliases={"discovery": self.discovery.alias, "enrichment": self.enrichment.alias},
            resources={
                "stage": self.discovery.api.deployment_stage,
                "discovery": self.discovery.function,
                "enrichment": self.enrichment.function,
                "feedback": self.feedback.function,
                "learning": self.learning.function,
                "streams": self.path.function,
                "queue": self.path.queue,
                "maintenance": self.maintenance.machine,
                **domain,
            },
            dead_letter_queues=self.path.dead_letter_queues,
            logs={"discovery": self.discovery.log, "enrichment": self.enrichment.log},
        )


# --- from the keys of a context to the arguments of constructs ---


def _shared_of(stack: Stack, context: Context) -> Shared:
    given, days = context.kms_key_arn, context.log_retention_days
    key = kms.Key.from_key_arn(stack, "CustomerKey", given) if given else None
    return Shared(name=context.name, key=key, log_days=days, protected=context.production)


def _network(scope: Construct, context: Context, shared: Shared) -> Network:
    zones, own = [*context.availability_zones], context.vpc_id
    return Network(scope, "Network", shared=shared, zones=zones, vpc_id=own, subnets=context.subnet_ids)


def _domain(scope: Construct, context: Context, shared: Shared, network: Network | None) -> SearchDomain:
    """With another name wherever it has to be replaced, because CloudFormation creates the new before it deletes."""
    fixed, engine = context.vpc_id + context.kms_key_arn, context.engine_version
    mark = f"-{sha256(fixed.encode()).hexdigest()[:4]}" if fixed else ""
    name, nodes = f"{context.name}-{context.network}{mark}", context.capacity
    return SearchDomain(scope, "Index", shared=shared, nodes=nodes, name=name, engine_version=engine, network=network)


def _discovery_props(context: Context, network: Network | None) -> DiscoveryProps:
    tokens = {key: getattr(context, key) for key in ("jwt_issuer", "jwt_audience", "jwt_client_ids", "jwt_claim")}
    return DiscoveryProps(
        tokens=tokens if context.auth == "jwt" else None,
        callers=context.caller_accounts,
        endpoint=network.api_endpoint(context.api_endpoint_id) if network and context.api == "private" else None,
        throttle_rate=context.capacity.throttle_rate,
        sets_log_role=context.api_log_role == "set",
        snap_start=not context.files,
        settings=context.settings_of("discovery"),
    )


def app() -> App:
    """The CDK app with both stacks. Raises ContextInvalid, with every fault of the context."""
    said, whole = os.environ, App()  # noqa: TID251 - from the CDK's command, not ours
    # without credentials the region is a guess
    add_stacks(whole, region=said.get("CDK_DEFAULT_REGION", "") if said.get("CDK_DEFAULT_ACCOUNT") else "")
    return whole


def add_stacks(app: App, *, region: str = "") -> tuple[DataStack, SystemStack]:
    """Add both stacks, as the app's context chooses; an unacknowledged cdk-nag finding stops the synthesis.

    Raises ContextInvalid, with every fault of the context.
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
    unpriced = [model for model in context.models.language_models if prices().usage(model, 1, 1).usd is None]
    if unpriced and context.spend_per_hour:
        counted = " and ".join(map(str, UNPRICED))
        yield (
            f"spend_per_hour: prices.json has no price of {' and '.join(unpriced)}. The alarm counts its tokens at "
            f"{counted} dollars a million, in and out: choose the limit for that."
        )
    if context.production and not context.alarm_to:
        yield "alarm_to: nobody hears of an alarm. Set it."
