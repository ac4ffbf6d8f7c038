"""An endpoint as a value: how it is reached, what answers it, and how OpenAPI describes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import unquote

from mats.domain.errors import CapabilityError
from mats.edge.app import Application
from mats.edge.http import Request, Response, error_response, problem


class TokenScope(StrEnum):
    """What a token of the local service may do; each includes those before it."""

    READ = "read"
    REPORT = "report"
    WRITE = "write"
    OPERATE = "operate"

    @property
    def allows(self) -> str:
        """This scope and those it includes, separated by commas."""
        return ", ".join(scope for scope in TokenScope if self.includes(scope))

    def includes(self, other: "TokenScope") -> bool:
        order = list(TokenScope)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True, slots=True)
class BodySpec:
    description: str
    models: Sequence[str | type] = ()  # Alternatives, each as `module.Class` below `mats.edge`; none: any JSON object
    media_type: str = "application/json"  # Empty: there is no body
    alternative: str = ""  # The media type of the same answer as text, if there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """An endpoint. A path has one method. Errors are problem documents (RFC 9457), unless it has an `error_format`."""

    method: str
    path: str  # As API Gateway spells it: `{name+}` stands for the rest of the path, slashes included
    handler: str
    """A function of the application and the request, as `module.function` below `mats.edge`, whose module is imported
    by its first request."""
    query: str | type = ""  # A model of `Parameters`, spelled alike: the handler gets them parsed
    error_format: str = ""  # A function, spelled alike, that makes its own kind of error of a problem document
    scope: TokenScope = TokenScope.READ  # What a token of the local service needs
    ending: str = ""
    """A route with one is one of API Gateway's at its path, and answers those whose rest of the path ends so."""
    refused_methods: tuple[str, ...] = ()
    """Methods that API Gateway forwards, to be answered with 405; it answers all others with 403."""
    operation_id: str = ""  # This and the rest is documentation, which routes without one do not have
    tag: str = "discovery"
    summary: str = ""
    description: str = ""
    path_description: str = ""
    path_pattern: str = ""
    request: BodySpec | None = None
    responses: Mapping[int, BodySpec] = field(default_factory=dict)

    @property
    def documented_path(self) -> str:
        """The path as OpenAPI spells it."""
        return self.path.replace("+}", "}") + self.ending

    def matches(self, path: str) -> bool:
        """True if a path is this endpoint's, as it was sent: only the rest that is a parameter may be encoded."""
        prefix, parameter, _ = self.path.partition("{")
        return path.startswith(prefix) and unquote(path).endswith(self.ending) if parameter else path == prefix

    def respond(self, application: Application, request: Request) -> Response:
        if request.method != self.method:
            return self.with_error_format(problem(405, f"use {self.method}", headers={"Allow": self.method}))
        try:
            parameters = [load(self.query).of(request.query)] if self.query else []
            response: Response = load(self.handler)(application, request, *parameters)
        except CapabilityError as error:
            response = error_response(error, internal_details=request.caller.sees_internal_errors)
        return response if response.status < 400 else self.with_error_format(response)

    def with_error_format(self, response: Response) -> Response:
        """The response, an error in the format of this endpoint."""
        formatted: Response = load(self.error_format)(response) if self.error_format else response
        return formatted


@cache
def load(name: str | type) -> Any:
    """A model or function by its module and name below `mats.edge`, or itself."""
    if not isinstance(name, str):
        return name
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"mats.edge.{module}"), attribute)


PROBLEMS = {
    400: "The body is not JSON.",
    404: "No such capability, or not for this caller.",
    413: "The body is too large.",
    422: "The request breaks the contract; `errors` names every field.",
    429: "Too many requests; see Retry-After.",
    503: "A dependency did not answer; see Retry-After.",
}
"""By status, what a problem document means."""
