"""Events as AWS makes them: API Gateway's proxy requests, SQS batches of EventBridge events."""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from mats.domain.capability.capability import parts
from mats.edge.api_gateway import parse_request
from mats.edge.app import Application
from mats.edge.http import Response
from mats.edge.routes import respond
from mats.ports import QueuedChange


def proxy_request(
    method: str, path: str, headers: Mapping[str, str], body: bytes, audiences: Iterable[str], *, query: str = ""
) -> dict[str, Any]:
    """A proxy event; the audiences stand where an authorizer puts them."""
    try:
        text, encoded = body.decode(), False
    except UnicodeDecodeError:
        text, encoded = base64.b64encode(body).decode(), True
    return {
        "httpMethod": method,
        "path": path,
        "headers": dict(headers),
        "multiValueQueryStringParameters": parse_qs(query, keep_blank_values=True) or None,
        "body": text or None,
        "isBase64Encoded": encoded,
        "requestContext": {"authorizer": {"audiences": ",".join(audiences)}},
    }


def respond_to(event: Mapping[str, Any], application: Application) -> Response:
    """The response to a proxy event, as the discovery function makes it."""
    return respond(application, parse_request(event))


def call(
    application: Application,
    method: str,
    path: str,
    body: object = None,
    /,
    *,
    headers: Mapping[str, str] | None = None,
    audiences: Iterable[str] = (),
    query: str = "",
    **context: Any,
) -> Response:
    """The response to a request through API Gateway, whose context has this, too; bytes are sent as they are."""
    sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    event = proxy_request(method, path, headers or {}, sent, audiences, query=query)
    event["requestContext"] |= context
    return respond_to(event, application)


def sqs_batch(events: Sequence[QueuedChange]) -> dict[str, Any]:
    """The batch that SQS hands to the enrichment function."""
    return {"Records": [{"messageId": event.event_id, "body": json.dumps(_eventbridge(event))} for event in events]}


def _eventbridge(event: QueuedChange) -> dict[str, Any]:
    namespace, name = parts(event.id)
    return {
        "version": "0",
        "id": event.event_id,
        "detail-type": "CapabilityChanged",
        "source": "mats.registry",
        "account": "local",
        "time": event.time,
        "region": "local",
        "resources": [],
        "detail": {
            "table": event.source,
            "change": event.change,
            "keys": {"namespace": {"S": namespace}, "name": {"S": name}},
        },
    }
