"""Rejected registrations, by mail."""

from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.constructs.event_path import EventPath
from infra.constructs.mail_topic import mail_topic


class RejectionMail(Construct):
    """A mail for each registration that enrichment rejects, with its faults. The event names no content but the id."""

    def __init__(self, scope: Construct, id: str, *, path: EventPath, email: str) -> None:
        super().__init__(scope, id)
        topic = mail_topic(self, "Rejections", email, sender="events.amazonaws.com")
        told = events.RuleTargetInput.from_text(
            f"mats rejected the registration {events.EventField.from_path('$.detail.id')}: "
            f"{events.EventField.from_path('$.detail.error')}"
        )
        events.Rule(
            self,
            "Rejected",
            event_bus=path.bus,
            description="Rejected registrations go to whoever subscribed",
            event_pattern=events.EventPattern(source=["mats.enrichment"], detail_type=["CapabilityRejected"]),
            targets=[targets.SnsTopic(topic, message=told, dead_letter_queue=path.dead_letter_queues["Rule"])],
        )
