"""The feedback function: API Gateway proxy events to receipts and outcomes."""

from collections.abc import Mapping
from typing import Any

from mats.bootstrap.cloud import open_feedback
from mats.edge.api_gateway import parse_request, proxy_response
from mats.edge.feedback import respond_alone
from mats.edge.telemetry.log import API, observe
from mats.edge.telemetry.observers import with_observers
from mats.settings import open_once

_service = open_once(with_observers("feedback", open_feedback), index=False)


@observe("feedback", correlation=API)
def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    return proxy_response(respond_alone(_service(), parse_request(event)))
