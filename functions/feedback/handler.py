"""The feedback function: API Gateway proxy events to receipts and outcomes."""

from collections.abc import Mapping
from typing import Any

from mats.bootstrap.cloud import open_feedback
from mats.edge.api_gateway import parse_request, proxy_response
from mats.edge.feedback import respond_alone
from mats.settings import open_once

_service = open_once(open_feedback, index=False)


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    return proxy_response(respond_alone(_service(), parse_request(event)))
