"""How a capability is called, in words."""

import shlex
from collections.abc import Iterator, Mapping, Sequence

from mats.domain.capability.capability import Kind
from mats.domain.protocols.authentication import AuthScheme
from mats.domain.protocols.invocation import A2aCall, BedrockCall, HttpCall, Invocation, SkillReading
from mats.domain.protocols.mcp_server import McpRemote, McpStdio

WAYS_TO_CALL: Mapping[Kind, str] = {
    Kind.TOOL: "add `descriptor.server` with the command or the address of its MCP server, or `endpoint` and "
    "`descriptor.method` of its HTTP operation",
    Kind.AGENT: "add its A2A agent card as `descriptor`, and its address as `endpoint`",
    Kind.SKILL: "add the text of its SKILL.md as `descriptor.instructions`",
    Kind.MODEL: "add the ARN of its Bedrock model as `endpoint`, or another way to call it: docs/how-to-register.md",
}
"""By kind, what would say how a capability is called."""
_TRANSPORTS = {"streamable-http": "streamable HTTP", "sse": "SSE"}
_MAX_NAMES = 10


def facts_of(invocation: Invocation) -> dict[str, str]:
    """The protocol, the address or command, and what the caller has to bring: texts by their names, in order."""
    return {name: text for name, text in (*_protocol(invocation), *_needs(invocation)) if text}


def _protocol(invocation: Invocation) -> Iterator[tuple[str, str]]:
    match invocation:
        case McpStdio():
            yield "protocol", "MCP over stdio"
            yield "command", shlex.join((invocation.command, *invocation.args))
            yield "tool", invocation.tool
        case McpRemote():
            yield "protocol", f"MCP over {_TRANSPORTS[invocation.transport]}"
            yield "endpoint", invocation.url
            yield "tool", invocation.tool
        case HttpCall():
            yield "protocol", "HTTP"
            yield "method", invocation.method
            yield "endpoint", invocation.url
            yield "body", invocation.body
        case A2aCall():
            version = f"A2A {invocation.version}".strip()
            yield "protocol", f"{version} over {invocation.transport}" if invocation.transport else version
            yield "endpoint", invocation.url
        case SkillReading():
            yield "protocol", "a skill: an agent reads its instructions and follows them"
            yield "endpoint", invocation.url
            yield "files", _join_names(invocation.files)
        case BedrockCall():
            yield "protocol", "Amazon Bedrock"
            yield "model", invocation.model
            yield "region", invocation.region


def _needs(invocation: Invocation) -> Iterator[tuple[str, str]]:
    if isinstance(invocation, McpStdio):
        yield "variables to set", _join_names(invocation.env)
    if isinstance(invocation, McpRemote):
        yield "headers to send", _join_names(invocation.headers)
    if isinstance(invocation, McpRemote | HttpCall | A2aCall):
        yield "authentication", _authentication(invocation.auth)
    if not isinstance(invocation, SkillReading | BedrockCall):
        yield "to fill in", _join_names([f"{{{name}}}" for name in invocation.inputs])


def _authentication(auth: Sequence[AuthScheme]) -> str:
    options: dict[int | None, list[str]] = {}
    for scheme in auth:
        named = f"{scheme.scheme} {scheme.name} ({scheme.in_ or 'header'})" if scheme.name else scheme.scheme
        options.setdefault(scheme.option, []).append(named)
    return ", or ".join(" and ".join(names) for names in options.values())


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
