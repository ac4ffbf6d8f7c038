"""A capability with the snippets that call it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.capability.capability import Kind, parts
from mats.domain.profile.profile import Profile
from mats.domain.protocols.a2a import A2aCall
from mats.domain.protocols.authentication import AuthScheme
from mats.domain.protocols.bedrock import BedrockCall
from mats.domain.protocols.catalogue import Invocation, from_text
from mats.domain.protocols.mcp_server import McpRemote, McpServer, McpStdio
from mats.domain.protocols.openapi import HttpCall
from mats.edge.schema import Capability, Format
from mats.edge.snippets.http_request import example_of, first_option, message_request, operation_request
from mats.edge.snippets.programs import converse_program, curl_command, http_program, json_text, mcp_program
from mats.edge.tools.formats import tool_definition

_GENERAL = frozenset({"mcp", "server", "tools", "api", "www"})  # Labels of a namespace that name no server
_MAX_NAME = 64


def client_configuration(server: McpServer, id: str) -> str:
    """The JSON, with an empty value for each variable and placeholders in braces for credentials."""
    entry: dict[str, Any]
    if isinstance(server, McpStdio):
        entry = {"command": server.command, "args": list(server.args), "env": dict.fromkeys(server.env, "")}
    else:
        headers = dict.fromkeys(server.headers, "") | dict(_credentials(first_option(server.auth)))
        type = "sse" if server.transport == "sse" else "http"
        entry = {"type": type, "url": server.url, "headers": headers}
    shown = {name: value for name, value in entry.items() if value != {}}
    return json_text({"mcpServers": {_server_name(server, id): shown}}, indent=2)


def _credentials(auth: Iterable[AuthScheme]) -> Iterator[tuple[str, str]]:
    """The headers of schemes; clients sign in by themselves where OAuth is asked for."""
    for scheme in auth:
        match scheme.scheme:
            case "apiKey" if scheme.name and scheme.in_ in ("", "header"):
                yield scheme.name, ""
            case "bearer":
                yield "Authorization", "Bearer {token}"
            case "basic":
                yield "Authorization", "Basic {credentials}"


def _server_name(server: McpServer, id: str) -> str:
    """A name for the server: the last telling label of the namespace if a tool has the id, else the capability's."""
    namespace, name = parts(id)
    labels = [label for label in reversed(namespace.split(".")) if label not in _GENERAL]
    chosen = labels[0] if server.tool and labels else name
    return re.sub(r"[^A-Za-z0-9_-]+", "-", chosen).strip("-")[:_MAX_NAME] or "server"


WAYS_TO_CALL: Mapping[Kind, str] = {
    Kind.TOOL: "add `descriptor.server` with the command or the address of its MCP server, or `endpoint` and "
    "`descriptor.method` of its HTTP operation",
    Kind.AGENT: "add its A2A agent card as `descriptor`, and its address as `endpoint`",
    Kind.SKILL: "add the text of its SKILL.md as `descriptor.instructions`",
    Kind.MODEL: "add the ARN of its Bedrock model as `endpoint`, or another way to call it: docs/how-to-register.md",
}
"""By kind, what would say how a capability is called."""
_MAX_NAMES = 10


def facts_of(invocation: Invocation) -> dict[str, str]:
    """The facts of the call, and what the caller has to bring: texts by their names, in order."""
    names = {
        "files": getattr(invocation, "files", ()),
        "variables to set": getattr(invocation, "env", ()),
        "headers to send": getattr(invocation, "headers", ()),
    }
    options: dict[int | None, list[str]] = {}
    for scheme in getattr(invocation, "auth", ()):
        named = f"{scheme.scheme} {scheme.name} ({scheme.in_ or 'header'})" if scheme.name else scheme.scheme
        options.setdefault(scheme.option, []).append(named)
    facts = {
        **dict(invocation.facts()),
        **{label: _join_names(found) for label, found in names.items()},
        "authentication": ", or ".join(" and ".join(option) for option in options.values()),
        "to fill in": _join_names([f"{{{name}}}" for name in getattr(invocation, "inputs", ())]),
    }
    return {name: text for name, text in facts.items() if text}


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


class SnippetFormat(StrEnum):
    MCP = "mcp"
    CURL = "curl"
    PYTHON = "python"
    CONVERSE = "converse"
    OPENAI = "openai"


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
    openai: str = Field(default="", description="An entry of `tools` of OpenAI's chat completions.")

    @classmethod
    def of(cls, profile: Profile) -> Self:
        invocation = from_text(profile.invocation)
        found = json.loads(profile.input_schema or "{}")
        schema = found if isinstance(found, dict) else {}
        is_tool = invocation is not None and not isinstance(invocation, BedrockCall)
        mcp, curl, python, request = "", "", "", None
        match invocation:
            case McpStdio() | McpRemote():
                arguments = example_of(schema, schema) if schema.get("required") else {}
                python = mcp_program(invocation, arguments if isinstance(arguments, dict) else {})
                mcp = client_configuration(invocation, profile.id)
            case BedrockCall():
                python = converse_program(invocation)
            case HttpCall():
                request = operation_request(invocation, schema)
            case A2aCall():
                request = message_request(invocation)
        if request:
            curl, python = curl_command(request), http_program(request)

        def tool(format: Format) -> str:
            definition = tool_definition(profile, format) if is_tool else None
            return json_text(definition, indent=2) if definition else ""

        return cls(
            facts=facts_of(invocation) if invocation else {},
            missing="" if invocation else WAYS_TO_CALL[profile.indexed_kind],
            mcp=mcp,
            curl=curl,
            python=python,
            converse=tool(Format.BEDROCK_TOOL_CONFIG),
            openai=tool(Format.OPENAI_TOOLS),
        )

    def text(self, format: SnippetFormat) -> str:
        """The snippet in one format; empty if it is not possible."""
        return str(getattr(self, format))


class CapabilityWithSnippets(Capability):
    """One capability's profile, and texts that call it."""

    snippets: Snippets
