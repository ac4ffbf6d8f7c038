"""Batches of reported outcomes to what learns from them."""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from mats.domain.errors import DependencyFailed
from mats.edge import log

Learner = Callable[[Collection[str]], None]
"""Learns from what was reported on these answers, by query id. Raises DependencyFailed: safe to repeat."""


def process_reports(event: Mapping[str, Any], learn: Learner) -> dict[str, Any]:
    """SQS's partial batch response: the messages to deliver again.

    An event carries the key of a row. The state is read when it is handled, so order and duplicates do not matter.
    """
    answers: dict[str, str] = {}
    failed: list[str] = []
    for message in event["Records"]:
        try:
            answers[message["messageId"]] = _query_id(message["body"])
        except (ValueError, KeyError, TypeError, RecursionError):
            log.LOGGER.error("unreadable message %s: %.200r", message["messageId"], message.get("body"))
            failed.append(message["messageId"])
    try:
        learn(list(dict.fromkeys(answers.values())))
    except DependencyFailed as error:
        log.LOGGER.warning("%d reports wait: %s", len(answers), error)
        failed += answers
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def _query_id(body: str) -> str:
    query_id = json.loads(body)["detail"]["keys"]["query_id"]["S"]
    if not isinstance(query_id, str) or not query_id:
        raise ValueError(body)
    return query_id
