"""API Gateway's own errors as RFC 9457 problem JSON, like every other error of the API.

A gateway response is the same for all paths, so it also has the members of an error of Agentic Resource Discovery.
"""

import json

from aws_cdk import aws_apigateway as apigateway

from mats.edge.ard.entries import error_code

_TYPE = apigateway.ResponseType
_RETRY = {"Retry-After": "'1'"}
_UNKNOWN = "there is nothing at this path and method; see /openapi.json"
_UNSIGNED = "the request is not signed, or there is nothing at this path and method"


def set_gateway_errors(api: apigateway.RestApi, *, signed: bool) -> None:
    """Set a problem as the body of every gateway response.

    Args:
        api: The API.
        signed: Callers sign with SigV4. Then API Gateway cannot tell an unsigned call from one to an unknown path.
    """
    known = [
        (_TYPE.ACCESS_DENIED, 403, "Forbidden", "the caller may not call this"),
        (_TYPE.UNAUTHORIZED, 401, "Unauthorized", "the call bears no valid token"),
        (_TYPE.EXPIRED_TOKEN, 403, "Forbidden", "the caller's credentials have expired"),
        (_TYPE.INVALID_SIGNATURE, 403, "Forbidden", "the signature does not match the request"),
        (_TYPE.WAF_FILTERED, 403, "Forbidden", "it looks like an attack, or its caller sent too many"),
        (_TYPE.RESOURCE_NOT_FOUND, 404, "Not Found", _UNKNOWN),
        (_TYPE.REQUEST_TOO_LARGE, 413, "Content Too Large", "the body is larger than any request needs"),
        (_TYPE.UNSUPPORTED_MEDIA_TYPE, 415, "Unsupported Media Type", "send application/json"),
        (_TYPE.THROTTLED, 429, "Too Many Requests", "there are too many requests; try again"),
        (_TYPE.QUOTA_EXCEEDED, 429, "Too Many Requests", "there are too many requests; try again"),
        (_TYPE.AUTHORIZER_FAILURE, 500, "Internal Server Error", "the token could not be checked"),
        (_TYPE.INTEGRATION_FAILURE, 503, "Service Unavailable", "discovery did not answer; try again"),
        (_TYPE.INTEGRATION_TIMEOUT, 503, "Service Unavailable", "discovery did not answer in time; try again"),
        (_TYPE.MISSING_AUTHENTICATION_TOKEN, 403, "Forbidden", _UNSIGNED)
        if signed
        else (_TYPE.MISSING_AUTHENTICATION_TOKEN, 404, "Not Found", _UNKNOWN),
    ]
    for kind, status, title, detail in known:
        problem = {"type": "about:blank", "title": title, "status": status, "detail": detail, "errors": []}
        error = {"errorCode": error_code(status), "message": detail}
        _answer(api, kind, json.dumps(problem | error), status=status)
    others = ((_TYPE.DEFAULT_4_XX, 400, "Bad Request"), (_TYPE.DEFAULT_5_XX, 500, "Internal Server Error"))
    for kind, status, title in others:
        open_ended = json.dumps({"type": "about:blank", "title": title, "errors": [], "errorCode": error_code(status)})
        message = "$context.error.messageString"
        _answer(api, kind, f'{open_ended[:-1]}, "detail": {message}, "message": {message}}}')


def _answer(api: apigateway.RestApi, kind: apigateway.ResponseType, body: str, *, status: int | None = None) -> None:
    """Set one gateway response; without a status it keeps its default one."""
    headers = {"Content-Type": "'application/problem+json'", **(_RETRY if status in (429, 503) else {})}
    api.add_gateway_response(
        kind.response_type.title().replace("_", ""),
        type=kind,
        status_code=str(status) if status else None,
        response_headers=headers,
        templates={"application/json": body},
    )
