"""Requests to their endpoints."""

from mats.domain.errors import CapabilityError
from mats.edge.app import Application
from mats.edge.http import Request, Response, error_response, problem
from mats.edge.route import Errors, Route
from mats.edge.routes import ROUTES


def respond(application: Application, request: Request) -> Response:
    """The response to one request."""
    return with_error_format(request.decoded_path, _respond(application, request))


def with_error_format(path: str, response: Response) -> Response:
    """The response, an error in the format of the endpoint at this percent-decoded path."""
    route = _route_at(path)
    if route is None or route.errors is Errors.PROBLEM or response.status < 400:
        return response
    from mats.edge.ard.errors import ard_error  # noqa: PLC0415 - cold starts count

    return ard_error(response)


def _respond(application: Application, request: Request) -> Response:
    path = request.decoded_path
    route = _route_at(path)
    if route is None:
        return problem(404, f"there is nothing at {path[:200]}; see /openapi.json")
    if request.method != route.method:
        return problem(405, f"use {route.method}", headers={"Allow": route.method})
    try:
        return route.handler(application, request)
    except CapabilityError as error:
        return error_response(error, internal_details=request.caller.sees_internal_errors)


def _route_at(path: str) -> Route | None:
    return next((route for route in ROUTES if route.matches(path)), None)
