"""Shortlists as ready-made tools for the APIs of models, within a token budget."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.profile.profile import Profile
from mats.domain.protocols.catalogue import Invocation
from mats.domain.ranking.blend import Verdict
from mats.domain.shortlist.rank import Result, Shortlist
from mats.domain.text.fence import spell_out
from mats.edge.requests import Format
from mats.edge.tools.tool import ToolDefinition, tool_of


class LeftOut(BaseModel):
    """A result that is not among the tools."""

    model_config = ConfigDict(extra="forbid")

    id: str
    reason: Literal["token_budget", "suspicious", "property_names"] = Field(
        description="`suspicious`: what its owner wrote seems meant to steer a model, and these tools go to one "
        "unread. `property_names`: it requires an input whose name Claude refuses, and all other tools with it."
    )
    tokens: int = Field(description="Its size in tokens, estimated.")


class ReadyMade(BaseModel):
    """A shortlist as tools, best first."""

    model_config = ConfigDict(extra="forbid")

    query_id: str
    verdict: Verdict
    degraded: list[str]
    without: list[str] = Field(default=[], description="Parts that are not configured or switched off: llm, neural.")
    notes: list[str] = Field(default=[], description="What limits this answer, such as the language of the query.")
    format: Format
    output: list[dict[str, Any]] | dict[str, Any] | None = Field(
        description="To be passed on as it is. `mcp_tools`: MCP tools. `bedrock_tool_config`: the `toolConfig` of "
        "Converse, or null where there is no tool, because Converse takes no empty one. `claude_tool_reference`: the "
        "`content` of a tool result. `openai_tools`: the `tools` of Chat Completions."
    )
    definitions: list[dict[str, Any]] | None = Field(
        default=None,
        description="With `claude_tool_reference`: what is referred to, for the request's `tools`; to be deferred.",
    )
    names: dict[str, str] = Field(description="The id of the capability behind each tool's name.")
    invocations: dict[str, Invocation] = Field(
        default={},
        description="By a tool's name, how the capability is called and where each property of the input goes. Tools "
        "whose owner gave no way to call them are not here.",
    )
    left_out: list[LeftOut]
    tokens: int = Field(description="The size of the tools in tokens, estimated as one for every two bytes of JSON.")

    @classmethod
    def of(cls, shortlist: Shortlist, format: Format, token_budget: int | None) -> Self:
        tool_format = _TOOL_FORMATS[format]
        results = () if shortlist.verdict is Verdict.NONE else shortlist.results
        kept, left_out, tokens = _fit_budget(results, tool_format, token_budget)
        return cls(
            query_id=shortlist.query_id,
            verdict=shortlist.verdict,
            degraded=list(shortlist.degraded),
            without=list(shortlist.without),
            notes=list(shortlist.notes),
            format=format,
            output=tool_format.output(kept),
            definitions=[tool_format.definition(tool) for tool in kept] if tool_format.deferred else None,
            names={tool.name: spell_out(tool.id) for tool in kept},
            invocations={tool.name: tool.invocation for tool in kept if tool.invocation},
            left_out=left_out,
            tokens=tokens,
        )


def tool_definition(profile: Profile, format: Format) -> dict[str, Any] | None:
    """The definition of one capability as a tool; None if an answer in this format would leave it out."""
    tool_format, tool = _TOOL_FORMATS[format], tool_of(profile)
    return None if _reason_to_leave_out(profile, tool, tool_format) else tool_format.definition(tool)


def estimated_tokens(value: Any) -> int:
    """An upper estimate of the tokens of a value's JSON: one for every two bytes.

    WordPiece, where every bracket and quote is a token, has at most one for 2.16 bytes over 3,000 registered tools. The
    tokenizers of current models have one for 3 to 4.
    """
    return -(-len(json.dumps(value, ensure_ascii=False).encode(errors="replace")) // 2)


@dataclass(frozen=True, slots=True)
class _ToolFormat:
    """The tool format of one API.

    With `deferred`, tools are defined apart from the output. With `plain`, every tool needs a plain schema.
    """

    definition: Callable[[ToolDefinition], dict[str, Any]]
    output: Callable[[Sequence[ToolDefinition]], list[dict[str, Any]] | dict[str, Any] | None]
    deferred: bool = False
    plain: bool = False

    def tokens(self, tool: ToolDefinition) -> int:
        """The tokens of a tool: its output, and its definition if that is apart."""
        apart = estimated_tokens([self.definition(tool)]) if self.deferred else 0
        return estimated_tokens(self.output([tool])) + apart


def _fit_budget(
    results: Iterable[Result], tool_format: _ToolFormat, budget: int | None
) -> tuple[list[ToolDefinition], list[LeftOut], int]:
    """The tools that fit (a smaller one may after a larger one did not), those left out, and the tokens that fit."""
    kept: list[ToolDefinition] = []
    left_out: list[LeftOut] = []
    tokens = 0
    for result in results:
        profile = result.candidate.profile
        tool = tool_of(profile)
        alone = tool_format.tokens(tool)
        if reason := _reason_to_leave_out(profile, tool, tool_format):
            left_out.append(LeftOut(id=spell_out(tool.id), reason=reason, tokens=alone))
        elif budget is not None and tokens + alone > budget:
            left_out.append(LeftOut(id=spell_out(tool.id), reason="token_budget", tokens=alone))
        else:
            kept.append(tool)
            tokens += alone
    return kept, left_out, tokens


def _reason_to_leave_out(
    profile: Profile, tool: ToolDefinition, tool_format: _ToolFormat
) -> Literal["suspicious", "property_names"] | None:
    if profile.suspicious:
        return "suspicious"
    return "property_names" if tool_format.plain and tool.plain_schema is None else None


def _mcp(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name, "title": tool.title, "description": tool.description, "inputSchema": tool.schema,
        "_meta": {"mats/id": spell_out(tool.id), "mats/kind": tool.kind},
    }  # fmt: skip


def _bedrock(tool: ToolDefinition) -> dict[str, Any]:
    spec = {"name": tool.name, "description": tool.description, "inputSchema": {"json": tool.plain_schema}}
    return {"toolSpec": spec}


def _claude(tool: ToolDefinition) -> dict[str, Any]:
    return {
        "name": tool.name, "description": tool.description, "input_schema": tool.plain_schema, "defer_loading": True,
    }  # fmt: skip


def _openai(tool: ToolDefinition) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.flat_schema}
    return {"type": "function", "function": function}


_TOOL_FORMATS: Mapping[Format, _ToolFormat] = {
    Format.MCP_TOOLS: _ToolFormat(_mcp, lambda tools: [_mcp(tool) for tool in tools]),
    Format.BEDROCK_TOOL_CONFIG: _ToolFormat(
        _bedrock, lambda tools: {"tools": [_bedrock(tool) for tool in tools]} if tools else None, plain=True
    ),
    Format.CLAUDE_TOOL_REFERENCE: _ToolFormat(
        _claude,
        lambda tools: [{"type": "tool_reference", "tool_name": tool.name} for tool in tools],
        deferred=True,
        plain=True,
    ),
    Format.OPENAI_TOOLS: _ToolFormat(_openai, lambda tools: [_openai(tool) for tool in tools]),
}
