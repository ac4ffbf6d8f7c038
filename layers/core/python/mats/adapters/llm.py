"""Writer and reranker over any service that runs language models, and the question and reply that it exchanges."""

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import ReplyUnusable
from mats.domain.profile.profile import Profile
from mats.domain.prompts.prompt import Prompt, Written, brief, close_risk, fill_template
from mats.domain.prompts.prompt import parse_reply as parse_fields
from mats.domain.prompts.rerank_prompt import cards
from mats.domain.prompts.rerank_reply import RerankResult, known_type
from mats.domain.prompts.rerank_reply import parse_reply as parse_scores
from mats.domain.prompts.usage import Prices, Usage
from mats.domain.text.fence import encode_json, visible
from mats.ports import NO_LABELS, Labels

MAX_BYTES = 32_000_000  # Far beyond any reply: bounds the memory of an endless body


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Texts of one user message, to be answered at temperature 0 through the prompt's tool, or as JSON of its schema.

    `lengths` are the exact numbers of items of array properties, for services that enforce a schema. `labels` go into
    the service's log, if it has one. `query` and `ids`, of the candidates in order or of the registration, say what the
    question is about; they are never sent.
    """

    model: str
    prompt: Prompt
    texts: tuple[str, ...]
    max_tokens: int
    labels: Labels
    lengths: Mapping[str, int] = field(default_factory=dict)
    query: str = ""
    ids: tuple[Id, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call as the model made it: the tool need not exist, and `arguments` may be any JSON."""

    id: str
    tool: str
    arguments: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply:
    """A model's reply: tool calls, text, both or neither. Stop reasons are named as in Bedrock's Converse API."""

    stop: str
    calls: tuple[ToolCall, ...]
    text: str
    usage: Usage

    @property
    def tool(self) -> str:
        """The tool of the first call; empty without a call."""
        return self.calls[0].tool if self.calls else ""

    @property
    def arguments(self) -> object:
        """The arguments of the first call, any JSON."""
        return self.calls[0].arguments if self.calls else None

    @property
    def is_refusal(self) -> bool:
        """True if the model or a guardrail declined."""
        return self.stop in (FILTERED, "guardrail_intervened")

    @property
    def is_malformed(self) -> bool:
        """True if the service itself reports malformed model output."""
        return self.stop.startswith(MALFORMED)

    @property
    def is_cut_off(self) -> bool:
        """True if the model reached a token limit."""
        return self.stop in CUT_OFF


AskModel: TypeAlias = Callable[[Question], ModelReply]
"""Asks a model.

Raises DependencyFailed if the model did not answer, NotPermitted if an operator has to act, ModelRefused if the model
refuses every request.
"""


_TOKENS_AROUND, _TOKENS_PER_SCORE = 80, 6
"""The token limit is about twice the length of a complete reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asks:
    ask: AskModel
    name: str
    text: Prompt

    @property
    def prompt(self) -> str:
        return self.text.hash


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmReranker(_Asks):
    """Scores all candidates of a query in one call.

    It asks for the type if a candidate has type tags.
    """

    def rerank(self, query: str, candidates: Sequence[Profile], labels: Labels = NO_LABELS) -> RerankResult:
        shown = {"query": encode_json(visible(query)), "candidates": cards(candidates), "count": str(len(candidates))}
        request = fill_template(self.text.request, shown)
        has_types = any(profile.type_tags for profile in candidates)
        prompt = self.text.variant("with_type") if has_types else self.text
        question = Question(
            model=self.name,
            prompt=prompt,
            texts=(request,),
            max_tokens=_TOKENS_AROUND + _TOKENS_PER_SCORE * len(candidates),
            lengths={"s": len(candidates)},
            labels=labels,
            query=query,
            ids=tuple(profile.id for profile in candidates),
        )
        reply = self.ask(question)
        if reply.is_refusal:
            return RerankResult(void=f"the model refused ({reply.stop})", usage=reply.usage)
        found = parse_scores(_text_of(reply), len(candidates), ended_early=reply.is_cut_off)
        return replace(
            found,
            intent=known_type(found.intent or "", candidates),
            usage=reply.usage,
            void=f"{found.void} ({reply.stop})" if found.void and reply.is_malformed else found.void,
        )


def _text_of(reply: ModelReply) -> str:
    """The tool's arguments as JSON, or its text; arguments may themselves be text."""
    if not reply.tool:
        return reply.text
    return reply.arguments if isinstance(reply.arguments, str) else json.dumps(reply.arguments)


_MAX_TOKENS = 1_200  # Four times the length of a complete reply


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmWriter(_Asks):
    """Describes a registration in one call, or in two if the first reply is unusable."""

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        """Retry once after an unusable reply, with its fault added to the request."""
        shown = brief(registration)
        request = fill_template(self.text.request, {"registration": shown})
        question = Question(
            model=self.name,
            prompt=self.text,
            texts=(request,),
            max_tokens=_MAX_TOKENS,
            labels=labels,
            ids=(registration.id,),
        )
        first = self.ask(question)
        try:
            return replace(self._parse(first, shown), usage=first.usage)
        except ReplyUnusable as error:
            repair = fill_template(self.text.parts["repair"], {"error": str(error)})
            second = self.ask(replace(question, texts=(request, repair)))
            try:
                parsed = self._parse(second, shown)
            except ReplyUnusable as again:
                raise ReplyUnusable(f"the reply cannot be used: {again}; the one before: {error}") from again
            note = f"written at the second attempt; the first could not be used: {error}"
            return replace(parsed, notes=(note, *parsed.notes), usage=first.usage.plus(second.usage))

    def _parse(self, reply: ModelReply, shown: str) -> Written:
        said = reply.arguments if reply.tool else reply.text
        if reply.is_refusal:
            raise ReplyUnusable(f"it was refused ({reply.stop})")
        if reply.is_cut_off and (said := close_risk(said) if isinstance(said, str) else None) is None:
            raise ReplyUnusable("it was cut off, so it must be shorter")
        if reply.is_malformed:
            raise ReplyUnusable(f"it breaks the form ({reply.stop})")
        if reply.tool and reply.tool != self.text.tool["name"]:
            raise ReplyUnusable("it calls another tool")
        return parse_fields(said, self.text.example_requests, shown)


class Meter:
    """Usage of this process by model; safe to use from several threads."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._totals: dict[str, Usage] = defaultdict(Usage)
        self._lock = threading.Lock()

    def add(self, model: str, input_tokens: object, output_tokens: object = 0) -> Usage:
        """Count one call; a value that is not a number of tokens counts as 0."""
        usage = self._prices.usage(model, _to_count(input_tokens), _to_count(output_tokens))
        with self._lock:
            self._totals[model] = self._totals[model].plus(usage)
        return usage

    def totals(self) -> dict[str, Usage]:
        with self._lock:
            return dict(self._totals)


def _to_count(tokens: object) -> int:
    """A number of tokens; 0 for anything but a positive integer."""
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else 0


@dataclass(eq=False)
class LanguageModels:
    """A service that runs language models; makes its writers and rerankers, which share a meter. Making it calls none.

    `prices` are for the cost of usage.
    """

    prices: Prices

    def __post_init__(self) -> None:
        self.meter = Meter(self.prices)

    def warning(self) -> str:
        """The reason why the models cannot answer, as far as it is known without a call; empty if none is known."""
        raise NotImplementedError

    def openers(self) -> Sequence[Callable[[], None]]:
        """Functions that open the connections that answers need; none asks a model."""
        return ()

    def ask(self, question: Question) -> ModelReply:
        """The reply to a question, within the timeout of a rerank call."""
        raise NotImplementedError

    def ask_patiently(self, question: Question) -> ModelReply:
        """The same for what nobody waits for: a longer timeout, more attempts."""
        return self.ask(question)

    def writer(self, model: str, prompt: Prompt) -> LlmWriter:
        return LlmWriter(ask=self.ask_patiently, name=model, text=prompt)

    def reranker(self, model: str, prompt: Prompt) -> LlmReranker:
        return LlmReranker(ask=self.ask, name=model, text=prompt)


MAX_TOKENS, CONTEXT_FULL = "max_tokens", "model_context_window_exceeded"
CUT_OFF = (MAX_TOKENS, CONTEXT_FULL)  # Stop reasons of a reply that reached a token limit
FILTERED = "content_filtered"
MALFORMED = "malformed_"  # How the stop reasons begin by which the service itself reports malformed model output
