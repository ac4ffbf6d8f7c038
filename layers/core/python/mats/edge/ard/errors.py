"""Errors as Agentic Resource Discovery has them."""

import json
from collections.abc import Mapping

from mats.edge.http import Response

_CODES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED", 413: "REQUEST_TOO_LARGE", 429: "RATE_LIMIT_EXCEEDED", 500: "INTERNAL_ERROR",
    501: "NOT_IMPLEMENTED", 503: "UNAVAILABLE",
}  # fmt: skip


def ard_error(response: Response) -> Response:
    """A problem document as an ARD error, which knows no 422; any other response unchanged."""
    if response.headers.get("Content-Type") != "application/problem+json":
        return response
    status = 400 if response.status == 422 else response.status
    error = {"errorCode": error_code(status), "message": json.loads(response.body)["detail"]}
    cache_control = {"Cache-Control": "no-cache"} if status == 404 else {}
    headers = {**response.headers, "Content-Type": "application/json", **cache_control}
    return Response(status, json.dumps(error, ensure_ascii=False), headers)


def error_code(status: int) -> str:
    """ARD's code for a status; statuses without one get the code of 400 or 500."""
    return _CODES.get(status, _CODES[400] if status < 500 else _CODES[500])
