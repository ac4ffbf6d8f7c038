"""Shortlists as ready-made tools for the APIs of models, within a token budget."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.profile.profile import Profile
from mats.domain.prompts.rerank_prompt import tokens
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
    reason: Literal["token_budget", "less_relevant", "suspicious", "property_names"] = Field(
        description="`less_relevant`: it might fit, but is far less relevant than the first, or less than one that did "
        "not fit. `suspicious`: what its owner wrote seems meant to steer a model, and these tools go to one unread. "
        "`property_names`: it requires an input whose name Claude refuses, and all other tools with it."
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
    shortened: list[str] = Field(
        default=[], description="The ids of tools whose inputs are described in fewer words, to fit the budget."
    )
    tokens: int = Field(description="The size of the tools in tokens, estimated: within a fifth for English.")

    @classmethod
    def of(cls, shortlist: Shortlist, format: Format, token_budget: int | None) -> Self:
        tool_format = _TOOL_FORMATS[format]
        results = () if shortlist.verdict is Verdict.NONE else shortlist.results
        fitted = _Fitted(tool_format, token_budget, for_parts=bool(shortlist.parts))
        for result in results:
            fitted.add(result)
        kept = fitted.kept
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
            left_out=fitted.left_out,
            shortened=fitted.shortened,
            tokens=fitted.tokens,
        )


def tool_definition(profile: Profile, format: Format) -> dict[str, Any] | None:
    """The definition of one capability as a tool; None if an answer in this format would leave it out."""
    tool_format, tool = _TOOL_FORMATS[format], tool_of(profile)
    return None if _reason_to_leave_out(profile, tool, tool_format) else tool_format.definition(tool)


_OF_UPPER_BOUND = 0.7
"""Share of the upper bound of tokens that tokenizers make of a tool's JSON: docs/decisions/0085."""


def estimated_tokens(value: Any) -> int:
    """An estimate of the tokens of a value's JSON, for English within a fifth of what tokenizers make of it."""
    return math.ceil(_OF_UPPER_BOUND * tokens(json.dumps(value, ensure_ascii=False)))


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


_SHORTER = (60, 0)
"""Characters to which descriptions of inputs are shortened, one after the other, until a tool fits."""
_FAR_LESS, _NEARLY = 0.5, 0.9
"""Shares of a relevance below which a result is far less relevant, or not nearly as relevant."""


@dataclass(slots=True)
class _Fitted:
    """The tools that fit a budget, best first, and what was left out; a worse tool never takes a better one's room.

    `for_parts`: the results serve different parts, so their relevance is not compared.
    """

    format: _ToolFormat
    budget: int | None
    for_parts: bool = False
    kept: list[ToolDefinition] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    shortened: list[str] = field(default_factory=list)
    tokens: int = 0
    _least: float = 0.0
    """The relevance below which a result is left out."""

    def add(self, result: Result) -> None:
        """Take in the next result, with shorter descriptions of its inputs if it does not fit otherwise."""
        whole, budget = tool_of(result.candidate.profile), self.budget
        reason: Any = _reason_to_leave_out(result.candidate.profile, whole, self.format)
        if reason is None and budget is not None and not self.for_parts and result.relevance < self._least:
            reason = "less_relevant"
        if reason is None:
            for tool in (whole, *(whole.shorten(most) for most in _SHORTER if budget is not None)):
                alone = self.format.tokens(tool)
                if budget is None or self.tokens + alone <= budget:
                    self.kept.append(tool)
                    self.tokens += alone
                    self.shortened += [spell_out(tool.id)] if tool is not whole else []
                    self._least = max(self._least, _FAR_LESS * result.relevance)
                    return
            # what no budget of this size could hold must not empty the answer
            share = _NEARLY if alone <= (budget or 0) else _FAR_LESS
            reason, self._least = "token_budget", max(self._least, share * result.relevance)
        self.left_out.append(LeftOut(id=spell_out(whole.id), reason=reason, tokens=self.format.tokens(whole)))


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
