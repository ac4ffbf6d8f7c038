"""Changes of capabilities: parsing them from SQS batches of EventBridge events, and enriching what changed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.capability import capability_id
from mats.domain.errors import DependencyFailed
from mats.domain.outcome import Outcome
from mats.domain.profile import Cause
from mats.domain.usage import Usage
from mats.edge import log, metrics
from mats.edge.app import ignore_metrics
from mats.ports import Change, Metrics
from mats.usecases.deadline import NO_DEADLINE, Deadline
from mats.usecases.enrich import Enrich


class MessageUnreadable(ValueError):
    """A message carries no change; it belongs in the dead-letter queue."""


@dataclass(frozen=True, slots=True)
class ChangeProcessor:
    """Enriches what changed, with its log and metrics; `spent` is what this process has paid each model so far."""

    enrich: Enrich
    spent: Callable[[], Mapping[str, Usage]]
    metrics: Metrics = ignore_metrics

    def process(self, changes: Mapping[str, Change], deadline: Deadline = NO_DEADLINE) -> list[str]:
        """Enrich a batch of changes, given by message id; the ids of those to deliver again.

        Where a batch meets a bug, each of its changes is tried alone. A single change raises it.
        """
        before = Usage.total(self.spent().values())
        try:
            outcomes = self.enrich(list(changes.values()), deadline)
        except DependencyFailed as error:
            log.LOGGER.warning("enrichment waits: %s", error)
            self.metrics(metrics.batch_metrics([Outcome.DEGRADED] * len(changes), Usage()))
            return list(changes)
        except Exception:
            if len(changes) == 1:
                raise
            log.LOGGER.exception("a bug in a batch of %d changes; each is tried alone", len(changes))
            return [id for message, change in changes.items() for id in self._process_alone(message, change, deadline)]
        usage = Usage.total(self.spent().values()).minus(before)
        log.log_batch(outcomes, usage)
        self.metrics(metrics.batch_metrics(outcomes.values(), usage))
        return [message for message, change in changes.items() if not outcomes[change.id].is_final]

    def _process_alone(self, message: str, change: Change, deadline: Deadline) -> list[str]:
        try:
            return self.process({message: change}, deadline)
        except Exception:
            log.LOGGER.exception("a bug while handling message %s", message)
            return [message]


def process_batch(
    event: Mapping[str, Any], processor: ChangeProcessor, deadline: Deadline = NO_DEADLINE
) -> dict[str, Any]:
    """SQS's partial batch response: the messages to deliver again, among them those for which there was no time.

    A bug that a lone message meets is raised, so that the function fails visibly.
    """
    changes: dict[str, Change] = {}
    failed: list[str] = []
    for message in event["Records"]:
        try:
            changes[message["messageId"]] = parse_change(message)
        except MessageUnreadable as error:
            log.LOGGER.error("unreadable message %s: %s", message["messageId"], error)
            failed.append(message["messageId"])
    try:
        failed += processor.process(changes, deadline)
    except Exception:
        if not failed:
            raise
        log.LOGGER.exception("a bug while handling message %s", *changes)
        failed += changes
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def parse_change(message: Mapping[str, Any]) -> Change:
    """The change in one SQS message.

    Raises:
        MessageUnreadable: no EventBridge event with a key in its detail.
    """
    try:
        event = json.loads(message["body"])
        keys = _EventDetail.model_validate(event["detail"]).keys
        cause = Cause(event_id=event["id"], time=event["time"])
        return Change(capability_id(keys.namespace.S, keys.name.S), cause)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MessageUnreadable(f"not a change of a capability: {str(message.get('body'))[:200]!r}") from error


class _DynamoString(BaseModel):
    """A string in DynamoDB's JSON."""

    model_config = ConfigDict(extra="forbid")

    S: Annotated[str, Field(min_length=1)]


class _DynamoKeys(BaseModel):
    """The key of the changed item."""

    model_config = ConfigDict(extra="ignore")

    namespace: _DynamoString
    name: _DynamoString


class _EventDetail(BaseModel):
    """The required part of an event's detail."""

    model_config = ConfigDict(extra="ignore")

    keys: _DynamoKeys
