"""SQS batches of EventBridge events: changes of capabilities and namespaces, and reported outcomes."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mats.domain.capability.capability import Id, capability_id
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import namespace_of_pattern
from mats.domain.profile.profile import Cause, ChangeResult
from mats.domain.prompts.usage import Usage
from mats.edge.observers import LOG, LOGGER, log_record
from mats.ports import BatchDelayed, BatchProcessed, Change, NamespaceChange, Observer
from mats.usecases.deadline import NO_DEADLINE, Deadline

if TYPE_CHECKING:
    from mats.usecases.drafts import Pass
    from mats.usecases.enrich import Enrich
    from mats.usecases.resend import SpreadChange

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ChangeProcessor:
    """Enriches what changed, with its log and metrics; `spent` is what this process has paid each model so far."""

    enrich: "Enrich"
    spent: Callable[[], Mapping[str, Usage]]
    observe: Observer = LOG
    spread: "SpreadChange | None" = None  # None where the store itself announces every capability of a namespace
    run: "Pass | None" = None  # The pass of all batches; None: each has its own, with all models

    def process(self, changes: Mapping[str, Change], deadline: Deadline = NO_DEADLINE) -> dict[str, ChangeResult]:
        """Enrich a batch of changes, given by message id; the result of each. One that is not final is to come again.

        Where a batch meets a bug, each of its changes is tried alone. A single change raises it.
        """
        before = self.spent()
        try:
            outcomes = self.enrich(list(changes.values()), deadline, self.run)
        except DependencyFailed as error:
            self.observe(BatchDelayed(changes=len(changes), error=error))
            return dict.fromkeys(changes, ChangeResult.DEGRADED)
        except Exception as error:
            if len(changes) == 1:
                self.observe(BatchDelayed(changes=1, error=error))
                raise
            LOGGER.exception("a bug in a batch of %d changes; each is tried alone", len(changes))
            results: dict[str, ChangeResult] = {}
            for message, change in changes.items():
                results |= _handle([message], partial(self.process, {message: change}, deadline), is_lone=False)
            return results
        spent = self.spent()
        usage = Usage.total(spent.values()).plus(Usage.total(before.values()), -1) if spent else Usage()
        self.observe(BatchProcessed(outcomes=outcomes, usage=usage))
        return {message: outcomes[change.id] for message, change in changes.items()}

    def spread_all(
        self, changes: Mapping[str, NamespaceChange], deadline: Deadline = NO_DEADLINE
    ) -> dict[str, ChangeResult]:
        """Send a change of each capability of these namespaces, given by message id; those to deliver again."""
        again: dict[str, ChangeResult] = {}
        for message, change in changes.items():
            if self.spread is None:
                raise ValueError(f"{change.namespace}: nothing here spreads the change of a namespace")
            try:
                sent = self.spread(change, deadline)
                record = {"event": "spread", "namespace": change.namespace, "after": change.after, "sent": sent}
                log_record({**record, "event_id": change.cause.event_id})
            except DependencyFailed as error:
                LOGGER.warning("the change of namespace %s waits: %s", change.namespace, error)
                again[message] = ChangeResult.DEGRADED
        return again


def process_batch(
    event: Mapping[str, Any], processor: ChangeProcessor, deadline: Deadline = NO_DEADLINE
) -> dict[str, Any]:
    """SQS's partial batch response: the messages to deliver again, among them those for which there was no time.

    A bug that a lone message meets is raised, so that the function fails visibly.
    """
    parsed, failed = _parse_all(event, parse_change)
    changes = {message: change for message, change in parsed.items() if isinstance(change, Change)}
    spreads = {message: change for message, change in parsed.items() if isinstance(change, NamespaceChange)}
    is_lone = len(event["Records"]) == 1
    results = _handle(changes, lambda: processor.process(changes, deadline), is_lone=is_lone)
    receives = {
        each["messageId"]: each.get("attributes", {}).get("ApproximateReceiveCount") for each in event["Records"]
    }
    for message, result in results.items():
        change = {"id": changes[message].id, "event_id": changes[message].cause.event_id}
        log_record({"event": "change", **change, "result": result, "receives": int(receives[message] or 1)})
    results |= _handle(spreads, lambda: processor.spread_all(spreads, deadline), is_lone=is_lone)
    return _response([*failed, *(message for message, result in results.items() if not result.is_final)])


@dataclass(frozen=True, slots=True)
class Learner:
    """Handlers of events; either raises DependencyFailed: safe to repeat."""

    learn: Callable[[Collection[str]], None]  # Learns from what was reported on these answers, by query id
    forget: Callable[[Collection[Id]], None]  # Forgets what was reported on these capabilities, if they are removed


def process_reports(event: Mapping[str, Any], learner: Learner) -> dict[str, Any]:
    """SQS's partial batch response: the messages to deliver again.

    An event carries the key of a row. The state is read when it is handled, so order and duplicates do not matter.
    """
    parsed, failed = _parse_all(event, _parse_report)
    for kind, work in (("removals", learner.forget), ("reports", learner.learn)):
        messages = {message: key for message, (its_kind, key) in parsed.items() if its_kind == kind}
        try:
            if messages:
                work(keys := list(dict.fromkeys(messages.values())))
                log_record({"event": "learned", "kind": kind, "keys": keys})
        except DependencyFailed as error:
            LOGGER.warning("%d %s wait: %s", len(messages), kind, error)
            failed += messages
    return _response(failed)


def _parse_all(event: Mapping[str, Any], parse: Callable[[Any], T]) -> tuple[dict[str, T], list[str]]:
    """The content of each message by its id, and the ids of unreadable messages, for the dead-letter queue."""
    parsed: dict[str, T] = {}
    unreadable: list[str] = []
    for message in event["Records"]:
        try:
            parsed[message["messageId"]] = parse(json.loads(message["body"]))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            body = str(message.get("body"))[:200]
            LOGGER.error("unreadable message %s: no event with a key: %r", message["messageId"], body)
            unreadable.append(message["messageId"])
    return parsed, unreadable


def _response(failed: Sequence[str]) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def _handle(
    messages: Collection[str], work: Callable[[], dict[str, ChangeResult]], *, is_lone: bool
) -> dict[str, ChangeResult]:
    """The results of messages; after a bug, which a lone message raises, all of them are to come again."""
    try:
        return work() if messages else {}
    except Exception:
        if is_lone:
            raise
        LOGGER.exception("a bug while handling messages %s", ", ".join(messages))
        return dict.fromkeys(messages, ChangeResult.DEGRADED)


def parse_change(event: Any) -> Change | NamespaceChange:
    """The change in an event: of a namespace, if it is of the row of one."""
    detail, cause = event["detail"], Cause(event_id=event["id"], time=event["time"])
    id = _id_of(detail["keys"])
    namespace = namespace_of_pattern(id) if detail.get("table") == "Trust" else None
    after = Id(detail["after"]) if detail.get("after") else None
    return Change(id, cause) if namespace is None else NamespaceChange(namespace, cause, after)


def _parse_report(event: Any) -> tuple[str, Any]:
    """The subject of a report, with its kind: the query id of an answer, or the id of a removed capability."""
    keys = event["detail"]["keys"]
    return ("reports", _text(keys, "query_id")) if "query_id" in keys else ("removals", _id_of(keys))


def _id_of(keys: Mapping[str, Any]) -> Id:
    return capability_id(_text(keys, "namespace"), _text(keys, "name"))


def _text(keys: Mapping[str, Any], name: str) -> str:
    """A key in DynamoDB's JSON; a ValueError if it is not a string in UTF-8."""
    text = keys[name]["S"]
    if not isinstance(text, str) or not text.encode():
        raise ValueError(name)
    return text
