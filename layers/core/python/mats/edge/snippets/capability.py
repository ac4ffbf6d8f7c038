"""A capability with the snippets that call it."""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.learning.reliability import Reliability
from mats.domain.profile.profile import Profile
from mats.domain.protocols.invocation import A2aCall, BedrockCall, HttpCall, Invocation, from_text
from mats.domain.protocols.mcp_server import McpRemote, McpStdio
from mats.edge.answer import Capability
from mats.edge.discover_request import Format
from mats.edge.snippets.curl import curl_command
from mats.edge.snippets.example import example_of
from mats.edge.snippets.http_request import HttpRequest, message_request, operation_request
from mats.edge.snippets.literals import json_text
from mats.edge.snippets.mcp_config import client_configuration
from mats.edge.snippets.python import converse_program, http_program, mcp_program
from mats.edge.snippets.words import WAYS_TO_CALL, facts_of
from mats.edge.tools.formats import tool_definition


class SnippetFormat(StrEnum):
    """A form in which a call is written."""

    MCP = "mcp"
    CURL = "curl"
    PYTHON = "python"
    CONVERSE = "converse"


class Snippets(BaseModel):
    """How a capability is called: in words, and as texts to copy. A text that is not possible is empty.

    The caller fills in what stands in braces and what is an empty string. Secrets are read from variables.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    facts: dict[str, str] = Field(description="Protocol, address and what a caller needs, by name; empty for none.")
    missing: str = Field(default="", description="If nothing says how it is called: what its owner should add.")
    mcp: str = Field(default="", description="The configuration of an MCP client, as `.mcp.json` has it.")
    curl: str = Field(default="", description="A command for a POSIX shell.")
    python: str = Field(default="", description="A program with httpx, with the MCP SDK or with boto3.")
    converse: str = Field(default="", description="The `toolSpec` of Bedrock Converse.")

    @classmethod
    def of(cls, profile: Profile) -> Self:
        invocation = from_text(profile.invocation)
        schema = _schema(profile)
        request = _request(invocation, schema)
        server = invocation if isinstance(invocation, McpStdio | McpRemote) else None
        return cls(
            facts=facts_of(invocation) if invocation else {},
            missing="" if invocation else WAYS_TO_CALL[profile.indexed_kind],
            mcp=client_configuration(server, profile.id) if server else "",
            curl=curl_command(request) if request else "",
            python=_python(invocation, request, schema),
            converse=_tool_spec(profile) if invocation and not isinstance(invocation, BedrockCall) else "",
        )

    def text(self, format: SnippetFormat) -> str:
        """The snippet in one format; empty if it is not possible."""
        return str(getattr(self, format))


class CapabilityWithSnippets(Capability):
    """One capability's profile, and texts that call it."""

    snippets: Snippets

    @classmethod
    def with_snippets(
        cls, profile: Profile, *, internal_details: bool = False, reliability: Reliability | None = None
    ) -> Self:
        capability = Capability.of(profile, internal_details=internal_details, reliability=reliability)
        return cls(
            **{name: getattr(capability, name) for name in Capability.model_fields}, snippets=Snippets.of(profile)
        )


def _schema(profile: Profile) -> Mapping[str, Any]:
    found = json.loads(profile.input_schema) if profile.input_schema else {}
    return found if isinstance(found, dict) else {}


def _request(invocation: Invocation | None, schema: Mapping[str, Any]) -> HttpRequest | None:
    match invocation:
        case HttpCall():
            return operation_request(invocation, schema)
        case A2aCall():
            return message_request(invocation)
    return None


def _python(invocation: Invocation | None, request: HttpRequest | None, schema: Mapping[str, Any]) -> str:
    match invocation:
        case McpStdio() | McpRemote():
            arguments = example_of(schema, schema) if schema.get("required") else {}
            return mcp_program(invocation, arguments if isinstance(arguments, dict) else {})
        case BedrockCall():
            return converse_program(invocation)
    return http_program(request) if request else ""


def _tool_spec(profile: Profile) -> str:
    """Empty for what `format=bedrock_tool_config` leaves out."""
    tool = tool_definition(profile, Format.BEDROCK_TOOL_CONFIG)
    return json_text(tool, indent=2) if tool else ""
