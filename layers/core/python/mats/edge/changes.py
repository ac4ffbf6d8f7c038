"""Changes of capabilities and namespaces: parsing them from SQS batches of EventBridge events, and handling them."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.capability.capability import Id, capability_id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import namespace_of_pattern
from mats.domain.profile.profile import Cause
from mats.domain.prompts.usage import Usage
from mats.edge.observers import LOG, LOGGER, log_record
from mats.ports import BatchDelayed, BatchProcessed, Change, NamespaceChange, Observer
from mats.usecases.deadline import NO_DEADLINE, Deadline
from mats.usecases.drafts import Pass
from mats.usecases.enrich import Enrich
from mats.usecases.spread_change import SpreadChange


class MessageUnreadable(ValueError):
    """A message carries no change; it belongs in the dead-letter queue."""


@dataclass(frozen=True, slots=True)
class ChangeProcessor:
    """Enriches what changed, with its log and metrics; `spent` is what this process has paid each model so far."""

    enrich: Enrich
    spent: Callable[[], Mapping[str, Usage]]
    observe: Observer = LOG
    spread: SpreadChange | None = None
    """None where the store itself announces every capability of a namespace."""
    run: Pass | None = None
    """The pass of all batches; None: each has its own, with all models."""

    def process(self, changes: Mapping[str, Change], deadline: Deadline = NO_DEADLINE) -> list[str]:
        """Enrich a batch of changes, given by message id; the ids of those to deliver again.

        Where a batch meets a bug, each of its changes is tried alone. A single change raises it.
        """
        before = Usage.total(self.spent().values())
        try:
            outcomes = self.enrich(list(changes.values()), deadline, self.run)
        except DependencyFailed as error:
            self.observe(BatchDelayed(changes=len(changes), error=error))
            return list(changes)
        except Exception:
            if len(changes) == 1:
                raise
            LOGGER.exception("a bug in a batch of %d changes; each is tried alone", len(changes))
            return [id for message, change in changes.items() for id in self._process_alone(message, change, deadline)]
        usage = Usage.total(self.spent().values()).minus(before)
        self.observe(BatchProcessed(outcomes=outcomes, usage=usage))
        return [message for message, change in changes.items() if not outcomes[change.id].is_final]

    def spread_all(self, changes: Mapping[str, NamespaceChange], deadline: Deadline = NO_DEADLINE) -> list[str]:
        """Send a change of each capability of these namespaces, given by message id; the ids to deliver again."""
        return [message for message, change in changes.items() if not self._spread(change, deadline)]

    def _spread(self, change: NamespaceChange, deadline: Deadline) -> bool:
        if self.spread is None:
            raise ValueError(f"{change.namespace}: nothing here spreads the change of a namespace")
        try:
            sent = self.spread(change, deadline)
        except DependencyFailed as error:
            LOGGER.warning("the change of namespace %s waits: %s", change.namespace, error)
            return False
        log_record({"event": "spread", "namespace": change.namespace, "after": change.after, "sent": sent})
        return True

    def _process_alone(self, message: str, change: Change, deadline: Deadline) -> list[str]:
        try:
            return self.process({message: change}, deadline)
        except Exception:
            LOGGER.exception("a bug while handling message %s", message)
            return [message]


def process_batch(
    event: Mapping[str, Any], processor: ChangeProcessor, deadline: Deadline = NO_DEADLINE
) -> dict[str, Any]:
    """SQS's partial batch response: the messages to deliver again, among them those for which there was no time.

    A bug that a lone message meets is raised, so that the function fails visibly.
    """
    changes: dict[str, Change] = {}
    spreads: dict[str, NamespaceChange] = {}
    failed: list[str] = []
    for message in event["Records"]:
        try:
            change = parse_change(message)
        except MessageUnreadable as error:
            LOGGER.error("unreadable message %s: %s", message["messageId"], error)
            failed.append(message["messageId"])
            continue
        if isinstance(change, NamespaceChange):
            spreads[message["messageId"]] = change
        else:
            changes[message["messageId"]] = change
    is_lone = len(event["Records"]) == 1
    failed += _handle(changes, lambda: processor.process(changes, deadline), is_lone=is_lone)
    failed += _handle(spreads, lambda: processor.spread_all(spreads, deadline), is_lone=is_lone)
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def _handle(messages: Collection[str], work: Callable[[], list[str]], *, is_lone: bool) -> list[str]:
    """The messages to deliver again; all of them after a bug, which a lone message raises."""
    try:
        return work() if messages else []
    except Exception:
        if is_lone:
            raise
        LOGGER.exception("a bug while handling messages %s", ", ".join(messages))
        return list(messages)


def parse_change(message: Mapping[str, Any]) -> Change | NamespaceChange:
    """The change in one SQS message: of a namespace, if it is of the row of one.

    Raises:
        MessageUnreadable: no EventBridge event with a key in its detail.
    """
    try:
        event = json.loads(message["body"])
        detail = _EventDetail.model_validate(event["detail"])
        cause = Cause(event_id=event["id"], time=event["time"])
        id = capability_id(detail.keys.namespace.S, detail.keys.name.S)
        namespace = namespace_of_pattern(id) if detail.table == "Trust" else None
        return Change(id, cause) if namespace is None else NamespaceChange(namespace, cause, detail.after)
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
    """The part of an event's detail that counts; `after` is of a namespace's change that goes on."""

    model_config = ConfigDict(extra="ignore")

    keys: _DynamoKeys
    table: str = ""
    after: Id | None = None
