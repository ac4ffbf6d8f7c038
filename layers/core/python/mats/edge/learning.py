"""Batches of reported outcomes and removed capabilities to what learns from them."""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mats.domain.capability.capability import Id, capability_id
from mats.domain.errors import DependencyFailed
from mats.edge.observers import LOGGER


@dataclass(frozen=True, slots=True)
class Learner:
    """Handlers of events; either raises DependencyFailed: safe to repeat."""

    learn: Callable[[Collection[str]], None]
    """Learns from what was reported on these answers, by query id."""
    forget: Callable[[Collection[Id]], None]
    """Forgets what was reported on these capabilities, if they are removed."""


def process_reports(event: Mapping[str, Any], learner: Learner) -> dict[str, Any]:
    """SQS's partial batch response: the messages to deliver again.

    An event carries the key of a row. The state is read when it is handled, so order and duplicates do not matter.
    """
    answers: dict[str, str] = {}
    removed: dict[str, Id] = {}
    failed: list[str] = []
    for message in event["Records"]:
        try:
            keys = json.loads(message["body"])["detail"]["keys"]
            if "query_id" in keys:
                answers[message["messageId"]] = _text(keys["query_id"])
            else:
                removed[message["messageId"]] = capability_id(_text(keys["namespace"]), _text(keys["name"]))
        except (ValueError, KeyError, TypeError, RecursionError):
            LOGGER.error("unreadable message %s: %.200r", message["messageId"], message.get("body"))
            failed.append(message["messageId"])
    failed += _handle(removed, learner.forget, "removals") + _handle(answers, learner.learn, "reports")
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def _handle(messages: Mapping[str, Any], work: Callable[[Collection[Any]], None], what: str) -> list[str]:
    """Do this for what messages are about, each once; the messages to deliver again."""
    try:
        if messages:
            work(list(dict.fromkeys(messages.values())))
    except DependencyFailed as error:
        LOGGER.warning("%d %s wait: %s", len(messages), what, error)
        return list(messages)
    return []


def _text(value: Mapping[str, Any]) -> str:
    text = value["S"]
    if not isinstance(text, str) or not text:
        raise ValueError(value)
    return text
