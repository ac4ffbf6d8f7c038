"""The declaration of an endpoint, from which dispatch, /openapi.json and the methods of API Gateway derive."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from importlib import import_module
from typing import Any

from mats.edge.app import Application
from mats.edge.http import Request, Response

Handler = Callable[[Application, Request], Response]


class Errors(Enum):
    """The format of an endpoint's errors."""

    PROBLEM = auto()
    """RFC 9457."""
    ARD = auto()
    """Agentic Resource Discovery's own."""


@dataclass(frozen=True, slots=True)
class BodySpec:
    """A documented body: its description and alternative models, each as `module.Class` below `mats.edge`.

    Without a model it is any JSON object; without a media type there is no body.
    """

    description: str
    models: Sequence[str] = ()
    media_type: str = "application/json"
    alternative: str = ""
    """The media type of the same answer as text, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """An endpoint. A path has one method.

    `path` is spelled as in API Gateway: `{name+}` stands for the rest of the path, slashes included. A route with an
    `ending` is one of API Gateway's at its path, and answers those whose rest of the path ends so.
    `refused_methods` are methods that API Gateway forwards, to be answered with 405; it answers all others with 403.
    The rest is documentation. Routes without an `operation_id` are not documented.
    """

    method: str
    path: str
    handler: Handler
    ending: str = ""
    errors: Errors = Errors.PROBLEM
    refused_methods: tuple[str, ...] = ()
    operation_id: str = ""
    tag: str = "discovery"
    summary: str = ""
    description: str = ""
    parameters: Sequence[Mapping[str, Any]] = ()
    request: BodySpec | None = None
    responses: Mapping[int, BodySpec] = field(default_factory=dict)

    @property
    def documented_path(self) -> str:
        """The path as OpenAPI spells it."""
        return self.path.replace("+}", "}") + self.ending

    def matches(self, path: str) -> bool:
        """Whether a percent-decoded path is this endpoint's."""
        prefix, parameter, _ = self.path.partition("{")
        return path.startswith(prefix) and path.endswith(self.ending) if parameter else path == prefix


def late(module: str, name: str) -> Handler:
    """A handler whose module, below `mats.edge`, is imported by its first request: cold starts count."""

    def handle(application: Application, request: Request) -> Response:
        handler: Handler = getattr(import_module(f"mats.edge.{module}"), name)
        return handler(application, request)

    return handle


def parameter(name: str, description: str, schema: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """An optional query parameter as OpenAPI has it."""
    described = {"description": description} if description else {}
    return {"name": name, "in": "query", "required": False, **described, "schema": schema or _STRING}


def path_parameter(name: str, description: str, **schema: str) -> Mapping[str, Any]:
    """A parameter in the path as OpenAPI has it."""
    return {"name": name, "in": "path", "required": True, "description": description, "schema": {**_STRING, **schema}}


_STRING = {"type": "string"}
