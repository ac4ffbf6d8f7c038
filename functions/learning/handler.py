"""The learning function: SQS batches of reported outcomes to the memory."""

from collections.abc import Mapping
from typing import Any

from mats.bootstrap.cloud import open_learner
from mats.edge.changes import process_reports
from mats.edge.telemetry.log import observe
from mats.settings import open_once

_learner = open_once(open_learner)


@observe("learning")
def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    return process_reports(event, _learner())
