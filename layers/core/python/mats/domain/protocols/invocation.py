"""How a capability is called: made from what its owner wrote, and never from a model.

Names of variables and of authentication schemes are kept, their values never. What is unknown is absent.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Discriminator, Field, Tag, TypeAdapter, ValidationError

from mats.domain.capability.capability import Kind, quote_id
from mats.domain.capability.registration import Registration
from mats.domain.protocols.authentication import AuthScheme, auth_of
from mats.domain.protocols.descriptors import A2A, FILES, FORMAT, MCP, MCP_CONFIG, SERVER
from mats.domain.protocols.mcp_server import (
    McpRemote,
    McpStdio,
    address_transport,
    published_server,
    remote_server,
    server_of,
)
from mats.domain.text.compact import Compact
from mats.domain.text.redaction import is_plain, placeholders, redact_url

MAX_INVOCATION_BYTES = 16_000
"""A larger invocation counts as none: no caller could fill it in."""
_MAX_FILES, _MAX_PARAMETERS = 200, 200

_METHODS = frozenset("GET PUT POST DELETE OPTIONS HEAD PATCH TRACE".split())
_PLACES = frozenset("path query header cookie".split())
_MODEL_ARN = re.compile(r"arn:aws[\w-]*:bedrock:([a-z0-9-]*):\d*:(?:foundation-model|inference-profile)/([\w.:/-]+)")
_BEDROCK_HOST = re.compile(r"https://bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com/?")
_BEDROCK_FORMATS = ("bedrock-model", "bedrock-inference-profile")
_MEDIA_TYPE = re.compile(r"[\w.+*-]+/[\w.+*-]+(?:; ?[\w.=\"-]+)*")


class Parameter(Compact):
    """A parameter of an HTTP operation. Its value is the input's property `property`, else that of its own name.

    `style` and `explode` are OpenAPI's; `content` is the media type in which a value is written.
    """

    name: str
    in_: str = Field(validation_alias=AliasChoices("in", "in_"))
    property: str = ""
    style: str = ""
    explode: bool | None = None
    content: str = ""


class HttpCall(Compact):
    """An operation of an HTTP API. `body` is the media type of the body, whose property is `body_property` or `body`.

    `inputs` has the names in braces in `url` that are not path parameters.
    """

    protocol: Literal["http"] = "http"
    method: str
    url: str
    parameters: tuple[Parameter, ...] = ()
    body: str = ""
    body_property: str = ""
    auth: tuple[AuthScheme, ...] = ()
    inputs: tuple[str, ...] = ()


class A2aCall(Compact):
    """An agent of the A2A protocol: its version, and its transport as the agent card names it."""

    protocol: Literal["a2a"] = "a2a"
    url: str
    version: str = ""
    transport: str = ""
    auth: tuple[AuthScheme, ...] = ()
    inputs: tuple[str, ...] = ()


class SkillReading(Compact):
    """A skill: the request for its instructions, the files beside them, and where its owner keeps it."""

    protocol: Literal["skill"] = "skill"
    instructions: str = ""
    files: tuple[str, ...] = ()
    url: str = ""


class BedrockCall(Compact):
    """A model or an inference profile of Amazon Bedrock."""

    protocol: Literal["bedrock"] = "bedrock"
    model: str
    region: str = ""


def _variant(value: object) -> str:
    """The tag of an invocation: its protocol, and for MCP whether a command starts the server."""
    one = value if isinstance(value, Mapping) else value.model_dump() if isinstance(value, Compact) else {}
    protocol = str(one.get("protocol"))
    return "stdio" if (protocol, one.get("transport")) == ("mcp", "stdio") else protocol


Invocation = Annotated[
    Annotated[McpStdio, Tag("stdio")]
    | Annotated[McpRemote, Tag("mcp")]
    | Annotated[HttpCall, Tag("http")]
    | Annotated[A2aCall, Tag("a2a")]
    | Annotated[SkillReading, Tag("skill")]
    | Annotated[BedrockCall, Tag("bedrock")],
    Discriminator(_variant),
]
_ADAPTER: TypeAdapter[Invocation] = TypeAdapter(Invocation)


def invocation_of(registration: Registration) -> Invocation | None:
    """How to call it; None if its owner gave no way to call it."""
    descriptor: Mapping[str, Any] = registration.descriptor or {}
    ways = (_OF_KIND.get(registration.kind), _mcp, _a2a, _http)
    found = next((made for way in ways if way and (made := way(registration, descriptor))), None)
    return found if found and len(to_text(found).encode()) <= MAX_INVOCATION_BYTES else None


def to_text(invocation: Invocation | None) -> str:
    """An invocation as JSON text; empty for none."""
    return json.dumps(invocation.model_dump(), separators=(",", ":"), ensure_ascii=False) if invocation else ""


def from_text(text: str) -> Invocation | None:
    """The invocation of a profile. One that a later release wrote in a form unknown here counts as none."""
    try:
        return _ADAPTER.validate_json(text) if text else None
    except ValidationError:
        return None


def _mcp(registration: Registration, descriptor: Mapping[str, Any]) -> McpStdio | McpRemote | None:
    format = descriptor.get(FORMAT)
    if format == "mcp-server":
        return published_server(descriptor)
    if format == MCP_CONFIG:
        return server_of(descriptor.get(SERVER))
    tool = registration.name if registration.kind is Kind.TOOL else ""
    if found := server_of(descriptor.get(SERVER), tool):
        return found
    declared = format == "mcp-tool" or MCP in _tags(registration) or address_transport(registration.endpoint)
    return remote_server(registration.endpoint, tool=tool) if declared and "method" not in descriptor else None


def _tags(registration: Registration) -> frozenset[str]:
    return frozenset(tag.lower() for tag in registration.tags)


def _a2a(registration: Registration, descriptor: Mapping[str, Any]) -> A2aCall | None:
    """The interface at the endpoint, else the card's preferred one."""
    marks = ("supportedInterfaces", "protocolVersion", "preferredTransport")
    declared = descriptor.get(FORMAT) == "a2a-agent-card" or A2A in _tags(registration)
    if registration.kind is not Kind.AGENT or not (declared or any(mark in descriptor for mark in marks)):
        return None
    interfaces = [*_objects(descriptor.get("supportedInterfaces")), *_objects(descriptor.get("additionalInterfaces"))]
    named = next((each for each in interfaces if each.get("url") == registration.endpoint), {})
    if not registration.endpoint and interfaces:
        named = interfaces[0]
    url = redact_url(registration.endpoint or _text(named, "url") or _text(descriptor, "url"))
    if url is None:
        return None
    of_card = _text(descriptor, "preferredTransport") or ("JSONRPC" if "protocolVersion" in descriptor else "")
    security = descriptor.get("securityRequirements") or descriptor.get("security")
    return A2aCall(
        url=url,
        version=_text(named, "protocolVersion") or _text(descriptor, "protocolVersion"),
        transport=_text(named, "protocolBinding") or _text(named, "transport") or of_card,
        auth=auth_of(security, descriptor.get("securitySchemes")),
        inputs=placeholders(url),
    )


def _http(registration: Registration, descriptor: Mapping[str, Any]) -> HttpCall | None:
    method, url = _text(descriptor, "method").upper(), redact_url(registration.endpoint)
    if method not in _METHODS or url is None:
        return None
    parameters = _parameters(descriptor.get("parameters"))
    if parameters is None:
        return None
    in_path = {parameter.name for parameter in parameters if parameter.in_ == "path"}
    body_property = _body_property(registration, {parameter.property or parameter.name for parameter in parameters})
    media_type = preferred_media_type(descriptor.get("requestMediaTypes")) if body_property else ""
    return HttpCall(
        method=method,
        url=url,
        parameters=parameters,
        body=media_type,
        body_property=body_property if media_type and body_property != "body" else "",
        auth=auth_of(descriptor.get("security"), descriptor.get("securitySchemes")),
        inputs=tuple(name for name in placeholders(url) if name not in in_path),
    )


def _parameters(written: object) -> tuple[Parameter, ...] | None:
    """The parameters with a place, in order; None if one of them, or their number, is beyond what can be sent."""
    found = []
    for entry in _objects(written):
        name, place = entry.get("name"), entry.get("in")
        if not isinstance(name, str) or not isinstance(place, str) or place not in _PLACES:
            continue
        if not is_plain(name):
            return None
        explode, property = entry.get("explode"), _text(entry, "property")
        found.append(
            Parameter(
                name=name,
                in_=place,
                property=property if property != name else "",
                style=_text(entry, "style"),
                explode=explode if isinstance(explode, bool) else None,
                content=_text(entry, "content"),
            )
        )
    return tuple(found) if len(found) <= _MAX_PARAMETERS else None


def _body_property(registration: Registration, taken: Set[str]) -> str:
    """The property of the input that is the body, as the importer of OpenAPI names it; empty if there is none."""
    properties = (registration.input_schema or {}).get("properties")
    known = properties if isinstance(properties, Mapping) else {}
    return next((name for name in ("body", "requestBody") if name in known and name not in taken), "")


def preferred_media_type(types: object) -> str:
    """The media type in which a body is sent: JSON if it is among them, else the first; empty if there is none."""
    known = [type for type in types if isinstance(type, str)] if isinstance(types, Sequence) else []
    best = min(known, key=lambda type: (not type.startswith("application/json"), "json" not in type), default="")
    return best if _MEDIA_TYPE.fullmatch(best) else ""


def _skill(registration: Registration, descriptor: Mapping[str, Any]) -> SkillReading | None:
    has_instructions = isinstance(text := descriptor.get("instructions"), str) and bool(text.strip())
    written = descriptor.get(FILES)
    files = [each for each in written if isinstance(each, str)] if isinstance(written, list) else []
    url = redact_url(registration.endpoint) or ""
    if not has_instructions and not url:
        return None
    return SkillReading(
        instructions=f"GET /capabilities/{quote_id(registration.id)}/instructions" if has_instructions else "",
        files=tuple(file for file in files if is_plain(file) and len(file) <= 500)[:_MAX_FILES],
        url=url,
    )


def _bedrock(registration: Registration, descriptor: Mapping[str, Any]) -> BedrockCall | None:
    """The model that the endpoint's ARN names; at Bedrock's own address, and in its lists, the capability's name."""
    if arn := _MODEL_ARN.fullmatch(registration.endpoint):
        return BedrockCall(model=arn[2], region=arn[1])
    host = _BEDROCK_HOST.fullmatch(registration.endpoint)
    if host or descriptor.get(FORMAT) in _BEDROCK_FORMATS:
        return BedrockCall(model=registration.name, region=host[1] if host else "")
    return None


_OF_KIND: Mapping[Kind, Callable[[Registration, Mapping[str, Any]], Invocation | None]] = {
    Kind.SKILL: _skill, Kind.MODEL: _bedrock,
}  # fmt: skip


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list | tuple) else []


def _text(value: Mapping[str, Any], key: str) -> str:
    found = value.get(key)
    return found.strip() if isinstance(found, str) and is_plain(found) and len(found) <= 2_048 else ""
