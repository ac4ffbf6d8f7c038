"""The learning function: SQS batches of reported outcomes to the memory."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from mats.bootstrap.cloud import open_learner
from mats.edge.changes import Learner, process_reports
from mats.settings import function_settings, on_lambda


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    return process_reports(event, _learner())


@cache
def _learner() -> Learner:
    return open_learner(function_settings(os.environ))


if on_lambda(os.environ):
    _learner()  # during Lambda's init phase
