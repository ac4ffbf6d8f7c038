"""Which paths belong to Agentic Resource Discovery, and its shape of errors; the endpoints are in `ard_service`."""

import json
from collections.abc import Mapping

from mats.edge import http

AGENT = "/agents/"
PATHS: Mapping[str, str] = {
    "/search": "POST", "/explore": "POST", "/agents": "GET", "/.well-known/ard.json": "GET",
}  # fmt: skip
"""Each with its method; below `AGENT` it is GET."""

_CODES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED", 413: "REQUEST_TOO_LARGE", 429: "RATE_LIMIT_EXCEEDED", 500: "INTERNAL_ERROR",
    501: "NOT_IMPLEMENTED", 503: "UNAVAILABLE",
}  # fmt: skip


def serves(path: str) -> bool:
    """Whether a path is one of ARD's."""
    return path in PATHS or path.startswith(AGENT)


def in_its_shape(response: http.Response) -> http.Response:
    """The same response; a problem in ARD's shape, which knows no 422."""
    if response.headers.get("Content-Type") != "application/problem+json":
        return response
    status = 400 if response.status == 422 else response.status
    error = {"errorCode": code(status), "message": json.loads(response.body)["detail"]}
    fresh = {"Cache-Control": "no-cache"} if status == 404 else {}
    headers = {**response.headers, "Content-Type": "application/json", **fresh}
    return http.Response(status, json.dumps(error, ensure_ascii=False), headers)


def code(status: int) -> str:
    """ARD's code of an error; it has none for some that HTTP has, and they are named likewise."""
    return _CODES.get(status, _CODES[400] if status < 500 else _CODES[500])
