"""API Gateway proxy events to requests, responses to proxy responses."""

import base64
from collections.abc import Mapping
from typing import Any

from mats.domain.capability.capability import principal
from mats.edge.http import Caller, Request, Response


def parse_request(event: Mapping[str, Any]) -> Request:
    context = event.get("requestContext") or {}
    path, full_path = str(event.get("path") or "/"), str(context.get("path") or "")
    return Request(
        method=str(event.get("httpMethod")),
        path=path,
        query={name: list(values) for name, values in (event.get("multiValueQueryStringParameters") or {}).items()},
        headers={name: str(value) for name, value in (event.get("headers") or {}).items()},
        body=_body(event),
        caller=_caller(context),
        domain=str(context.get("domainName") or ""),
        prefix=full_path.removesuffix(path) if full_path.endswith(path) else "",
    )


def proxy_response(response: Response) -> dict[str, Any]:
    return {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "body": response.body,
        "isBase64Encoded": False,
    }


def _body(event: Mapping[str, Any]) -> bytes | None:
    """The bytes of the body; None if its base64 is invalid."""
    text = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(text).encode(errors="surrogatepass")  # which is no UTF-8: refused where the body is parsed
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def _caller(context: Mapping[str, Any]) -> Caller:
    """The caller that API Gateway authenticated; nothing a client can send ends up here."""
    authorizer, identity = context.get("authorizer") or {}, context.get("identity") or {}
    audiences = (name.strip() for name in str(authorizer.get("audiences") or "").split(","))
    return Caller(
        frozenset(filter(None, audiences)),
        principal(str(identity.get("userArn") or "")),
        request_id=str(context.get("requestId") or ""),
        subject=str(authorizer.get("principalId") or ""),
    )
