"""The feedback function: API Gateway proxy events to receipts and outcomes."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from mats.bootstrap.cloud import open_feedback
from mats.edge.api_gateway import parse_request, proxy_response
from mats.edge.feedback import FeedbackService, respond_alone
from mats.settings import Settings, on_lambda


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    return proxy_response(respond_alone(_service(), parse_request(event)))


@cache
def _service() -> FeedbackService:
    return open_feedback(Settings.from_env(os.environ))


if on_lambda(os.environ):
    _service()  # during Lambda's init phase
