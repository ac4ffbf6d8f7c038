"""Upper bounds of the cost of a run, computed from its prompts and data before a model is called.

Input: no tokenizer makes more tokens of a text than it has bytes of UTF-8, so each byte of a prompt counts as one;
English has about four bytes a token. The model's own turns return as at most the tokens that it was allowed. Output:
the token limit of every call. Calls: every turn and every retry is taken.
"""

import heapq
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from experiments.baselines import full_context, search_and_pick, trial_and_error
from experiments.baselines.conversation import (
    BROKEN,
    MOST_CALLS,
    ONE_CALL,
    alphabetical,
    list_line,
    prompt,
    request_of,
    tools_of,
)
from mats import bootstrap
from mats.adapters.bedrock.converse import ask_through
from mats.adapters.llm import ModelReply
from mats.domain.capability.registration import Registration
from mats.domain.errors import ReplyUnusable
from mats.domain.prompts.rerank_prompt import CARD_BYTES
from mats.domain.prompts.usage import Usage
from mats.domain.text.fence import size
from mats.evaluation.data.datasets import Dataset
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.catalogue import Variant
from mats.settings import Settings
from mats.usecases.drafts import ProfileMaker

_AROUND_REQUEST = 1_000
"""Tokens of a provider's own template around messages and tools; Claude's instructions for tools take 300 to 530."""
_AROUND_CALL = 50
"""Tokens of the template and the ids around a tool call and its result."""
_SHORT_TEXTS = 300
"""Bytes of what is said to a model beside results: errors of its calls, and reminders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBound:
    """The most calls, tokens and dollars of a run without cached replies; `usage.usd` is None if no price is known."""

    what: str
    model: str
    calls: int
    usage: Usage


class _Tokens(NamedTuple):
    """The most calls and tokens of some queries or registrations."""

    calls: int = 0
    input: int = 0
    output: int = 0

    @classmethod
    def total(cls, parts: "Iterable[_Tokens]") -> "_Tokens":
        return cls(*map(sum, zip(*parts, strict=True))) if (parts := list(parts)) else cls()


def bound_cost(variant: Variant, settings: Settings, *datasets: Dataset, what: str = "") -> CostBound:
    """Of asking a system every query of data sets, each over its registry; nothing for a system without an LLM."""
    bound = _BASELINES.get(variant.name, _pipeline)
    parts = [bound(dataset, settings) for dataset in datasets] if variant.has_llm else []
    return _with_price(what or variant.name, settings.rerank_model, _Tokens.total(parts))


def bound_writing_cost(
    settings: Settings, registrations: Sequence[Registration], *, what: str = "enrichment"
) -> CostBound:
    """Of describing registrations, each with the writer's retries."""
    from mats.adapters.llm import LlmWriter  # noqa: PLC0415 - as in models.py

    requests = _Requests()
    writer = LlmWriter(ask=ask_through(requests), name=settings.writer_model, text=bootstrap.prompt("enrich"))
    for registration in registrations:
        try:
            writer.describe(registration)
        except ReplyUnusable:
            continue
    return _with_price(what, settings.writer_model, _Tokens.total(map(_of_request, requests.made)))


def _with_price(what: str, model: str, tokens: _Tokens) -> CostBound:
    usage = bootstrap.prices().usage(model, tokens.input, tokens.output)
    return CostBound(what=what, model=model, calls=tokens.calls, usage=usage)


@dataclass
class _Requests:
    """Converse that records requests; every reply is empty, so that every retry is made."""

    made: list[Mapping[str, Any]] = field(default_factory=list)

    def __call__(self, request: Mapping[str, Any]) -> ModelReply:
        self.made.append(request)
        return ModelReply(stop="", calls=(), text="", usage=Usage())


def _of_request(request: Mapping[str, Any]) -> _Tokens:
    """A request whose messages hold texts only."""
    texts = [block["text"] for message in request["messages"] for block in message["content"]]
    texts += [block["text"] for block in request["system"]]
    around = _AROUND_REQUEST + _size_of_json(request.get("toolConfig", {}))
    return _Tokens(1, around + sum(map(size, texts)), request["inferenceConfig"]["maxTokens"])


def _size_of_json(value: Any) -> int:
    return size(json.dumps(value, ensure_ascii=False))


def _pipeline(dataset: Dataset, settings: Settings) -> _Tokens:
    """One rerank call a query, with k cards of the greatest size."""
    from mats.adapters.llm import LlmReranker  # noqa: PLC0415 - as in models.py

    requests = _Requests()
    reranker = LlmReranker(ask=ask_through(requests), name=settings.rerank_model, text=bootstrap.prompt("rerank"))
    tagged = next((r for r in dataset.registrations if r.type_tags), dataset.registrations[0])
    candidate = ProfileMaker(encoder=None, writer=None).raw(tagged)  # with type tags, more is asked
    reranker.rerank("", [candidate] * settings.k)
    reply = _of_request(requests.made.pop()).output
    for query in dataset.queries:
        reranker.rerank(query.text[:LONGEST_QUERY], [candidate])
    cards = settings.k * (CARD_BYTES + len("\n"))
    return _Tokens.total(_Tokens(1, _of_request(request).input + cards, reply) for request in requests.made)


def _full_context(dataset: Dataset, settings: Settings) -> _Tokens:
    lines = full_context.lines_within(full_context.BUDGET, alphabetical(dataset.registrations))
    registry = size(prompt("full-ctx").parts["registry"]) + sum(size(line) + 1 for line in lines)
    return _conversations(dataset, "full-ctx", turns=1, max_tokens=full_context.MAX_TOKENS, context=registry)


def _search_and_pick(dataset: Dataset, settings: Settings) -> _Tokens:
    highest, chars = search_and_pick.ROUNDS * search_and_pick.PAGE, search_and_pick.DESCRIPTION_CHARS
    rows = (size(list_line(highest, each, max_description=chars)) + 1 for each in dataset.registrations)
    return _conversations(
        dataset,
        "search-and-pick",
        "search",
        turns=search_and_pick.ROUNDS,
        max_tokens=search_and_pick.MAX_TOKENS,
        result=sum(heapq.nlargest(search_and_pick.PAGE, rows)),
    )


def _trial_and_error(dataset: Dataset, settings: Settings) -> _Tokens:
    pages = trial_and_error.pages(alphabetical(dataset.registrations))
    return _conversations(
        dataset,
        "trial-and-err",
        "list",
        turns=trial_and_error.ROUNDS,
        max_tokens=trial_and_error.MAX_TOKENS,
        result=max(sum(size(row) + 1 for row in page) for page in pages),
    )


def _conversations(
    dataset: Dataset, name: str, *tools: str, turns: int, max_tokens: int, context: int = 0, result: int = 0
) -> _Tokens:
    """A conversation a query.

    Args:
        dataset: The queries.
        name: The prompt.
        tools: Its tools beside its own.
        turns: Of the model, each a call.
        max_tokens: Of a turn.
        context: Bytes before the query.
        result: The most bytes of a tool's result; each turn gets one.
    """
    per_turn = result + _SHORT_TEXTS + max_tokens + MOST_CALLS * (max(size(ONE_CALL), size(BROKEN)) + _AROUND_CALL)
    grown = per_turn * turns * (turns - 1) // 2
    text = prompt(name)
    fixed = _AROUND_REQUEST + context + size(text.system) + _size_of_json(tools_of(text, *tools))
    firsts = [fixed + size(request_of(text, query)) for query in dataset.queries]
    return _Tokens.total(_Tokens(turns, turns * first + grown, turns * max_tokens) for first in firsts)


_BASELINES: Mapping[str, Callable[[Dataset, Settings], _Tokens]] = {
    "full-ctx": _full_context,
    "search-and-pick": _search_and_pick,
    "trial-and-err": _trial_and_error,
}
