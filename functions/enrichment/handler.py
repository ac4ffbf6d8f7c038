"""SQS batch of EventBridge events -> use case -> which messages to deliver again."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from mats import bootstrap
from mats.bootstrap import Enrichment
from mats.domain.errors import DependencyFailed
from mats.domain.usage import Usage
from mats.edge import log, metrics
from mats.edge.changes import MessageUnreadable, change_of
from mats.edge.log import LOGGER
from mats.ports import Change
from mats.settings import deployed, on_lambda
from mats.usecases.enrich import Outcome


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """What AWS calls."""
    return respond(event, _enrichment())


def respond(event: Mapping[str, Any], enrichment: Enrichment) -> dict[str, Any]:
    """The partial batch response: the messages that are not done."""
    changes, failed = _read(event)
    before = Usage.total(enrichment.spent().values())
    try:
        outcomes = enrichment.enrich(list(changes.values()))
    except DependencyFailed as error:
        LOGGER.warning("enrichment waits: %s", error)
        enrichment.metrics(metrics.of_batch([Outcome.DEGRADED] * len(changes), Usage()))
        return _again([*failed, *changes])
    except Exception:
        if len(event["Records"]) == 1:
            raise
        LOGGER.exception("a bug of ours: each of %d changes is tried by itself", len(changes))
        return _again(_one_by_one(event, enrichment))
    usage = Usage.total(enrichment.spent().values()).minus(before)
    log.enriched(outcomes, usage)
    enrichment.metrics(metrics.of_batch(outcomes.values(), usage))
    unfinished = [message for message, change in changes.items() if not outcomes[change.id].done]
    return _again([*failed, *unfinished])


def _one_by_one(event: Mapping[str, Any], enrichment: Enrichment) -> list[str]:
    """The messages that are not done when each is handled alone, so that one that meets a bug holds nobody up."""
    unfinished: list[str] = []
    for message in event["Records"]:
        try:
            response = respond({"Records": [message]}, enrichment)
            unfinished += [failure["itemIdentifier"] for failure in response["batchItemFailures"]]
        except Exception:
            LOGGER.exception("a bug of ours while handling message %s", message["messageId"])
            unfinished.append(message["messageId"])
    return unfinished


def _read(event: Mapping[str, Any]) -> tuple[dict[str, Change], list[str]]:
    """The changes by message id, and the messages that tell of none."""
    changes: dict[str, Change] = {}
    unreadable: list[str] = []
    for message in event["Records"]:
        try:
            changes[message["messageId"]] = change_of(message)
        except MessageUnreadable as error:
            LOGGER.error("unreadable message %s: %s", message["messageId"], error)
            unreadable.append(message["messageId"])
    return changes, unreadable


def _again(messages: list[str]) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": message} for message in messages]}


@cache
def _enrichment() -> Enrichment:
    """Wired once per execution environment."""
    return bootstrap.enrichment(deployed(os.environ))


if on_lambda(os.environ):
    _enrichment()  # in the time that Lambda gives for it
