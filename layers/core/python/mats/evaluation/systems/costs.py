"""What a run will cost, before anything is spent: the real prompts of some queries, with nobody asked.

A system is run as it is over an understudy of its model, which calls the tool that goes on and never the one that ends,
so that every loop takes all the turns it may: an upper bound in calls. Replies that are kept are taken as they are, and
cost nothing. Tokens are counted by `evaluation.tokens`, dollars by `prices.json`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

from mats import bootstrap
from mats.domain.errors import ReplyUnusable
from mats.domain.usage import Prices, Usage
from mats.evaluation.benchmarks.tokens import TOKENIZER, Tokens
from mats.evaluation.systems.catalogue import Variant
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.workbench import Workbench
from mats.ports import Chat, Replies, Reranker, Writer
from mats.usecases.discover import Discover

if TYPE_CHECKING:
    from mats.adapters.bedrock.rehearsal import Rehearsal

T = TypeVar("T")
SAMPLE = 100
"""Queries whose prompts are made, evenly spaced."""
_WRITTEN_TOKENS = 300
"""Of what a writer answers: a quarter of what it may."""
_LONG_WORD = "document-conversion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a run is expected to take.

    `usage` is that of all its calls; `due` is what has to be paid for, since `kept` of the `calls` were made before.
    Both are scaled up from `sampled` of the `asked`; their dollars are None where a price is not known.
    """

    what: str
    model: str
    asked: int
    sampled: int
    calls: int
    kept: int
    usage: Usage
    due: Usage
    tokenizer: str = TOKENIZER


@dataclass(kw_only=True)
class _Understudy:
    """Answers Converse in a model's place and counts."""

    tokens: Tokens
    replies: Replies
    prices: Prices
    k: int
    query: str = ""
    calls: int = 0
    kept: int = 0
    usage: Usage = field(default_factory=Usage)
    due: Usage = field(default_factory=Usage)

    def __call__(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The reply that is kept, or one that makes the most of the conversation."""
        model = str(request["modelId"])
        self.calls += 1
        if known := self.replies.get(request):
            self.kept += 1
            spent = known.reply["usage"]
            self.usage = self.usage.plus(self.prices.usage(model, spent["inputTokens"], spent["outputTokens"]))
            return known.reply
        block, tokens_out = self._said(request)
        tokens_in = self.tokens.of_request(request)
        cost = self.prices.usage(model, tokens_in, tokens_out)
        self.usage, self.due = self.usage.plus(cost), self.due.plus(cost)
        return {
            "output": {"message": {"content": [block]}},
            "stopReason": "tool_use",
            "usage": {"inputTokens": tokens_in, "outputTokens": tokens_out},
        }

    def _said(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
        """A content block and its tokens."""
        spec = _tool(request)
        if not spec:  # a judge that is told the form in words
            text = json.dumps({"t": _LONG_WORD, "s": [100] * self.k})
            return {"text": text}, self.tokens.of(text)
        turn = len(request["messages"]) // 2 + 1
        properties = spec["inputSchema"]["json"]["properties"]
        arguments = {name: self._filled(name, shape, turn) for name, shape in properties.items()}
        use = {"toolUseId": f"turn-{turn}", "name": spec["name"], "input": arguments}
        spoken = self.tokens.of(json.dumps({spec["name"]: arguments}))
        return {"toolUse": use}, max(spoken, _WRITTEN_TOKENS) if "summary" in properties else spoken

    def _filled(self, name: str, shape: Mapping[str, Any], turn: int) -> object:
        if shape["type"] == "array":
            return [100] * self.k if shape["items"]["type"] == "integer" else [_LONG_WORD]
        if shape["type"] == "integer":
            return turn
        return self.query if name == "query" else _LONG_WORD


def _tool(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """The tool that must be called, else the first: prompts name the one that goes on before the one that ends."""
    config = request.get("toolConfig", {"tools": []})
    specs = [tool["toolSpec"] for tool in config["tools"]]
    forced = config.get("toolChoice", {}).get("tool", {}).get("name")
    return next((spec for spec in specs if forced in (None, spec["name"])), {})


@dataclass(frozen=True)
class _RehearsedModels(Models):
    """Models none of which is asked."""

    rehearsal: "Rehearsal"

    def reranker(self, model: str) -> Reranker:
        """The judge's understudy."""
        return self.rehearsal.reranker(model, bootstrap.prompt("rerank"))

    def chat(self, model: str) -> Chat:
        """The understudy of a model that converses."""
        return self.rehearsal.chat(model)

    @cached_property
    def writer(self) -> Writer:
        """The writer's understudy."""
        return self.rehearsal.writer(self.settings.writer_model, bootstrap.prompt("enrich"))


@dataclass(kw_only=True)
class _RehearsedBench(Workbench):
    """A workbench with other models over the same registry."""

    bench: Workbench

    @cached_property
    def discover(self) -> Discover:
        """That of the other."""
        return self.bench.discover


def forecast(variant: Variant, bench: Workbench, *, sample: int = SAMPLE) -> Forecast:
    """What asking a variant every query of a workbench's data set takes; a variant without a model takes nothing."""
    study, models = _rehearsed(bench.models)
    queries = bench.dataset.queries
    chosen = _spaced(queries, sample) if "llm" in variant.needs else []
    if chosen:
        rehearsed = _RehearsedBench(dataset=bench.dataset, settings=bench.settings, models=models, bench=bench)
        system = variant.built(rehearsed)
        for query in chosen:
            study.query = query.text
            system(query)
    return _scaled(study, variant.name, bench.settings.rerank_model, asked=len(queries), sampled=len(chosen))


def forecast_writing(bench: Workbench, *, sample: int = SAMPLE) -> Forecast:
    """What describing every registration of a workbench's data set takes, at one call each."""
    study, models = _rehearsed(bench.models)
    registrations = bench.dataset.registrations
    chosen = _spaced(registrations, sample)
    for registration in chosen:
        try:
            models.writer.describe(registration)
        except ReplyUnusable:  # of a reply that is kept: it was as useless then
            continue
    return _scaled(study, "enrichment", bench.settings.writer_model, asked=len(registrations), sampled=len(chosen))


def _rehearsed(models: Models) -> tuple[_Understudy, _RehearsedModels]:
    study = _Understudy(tokens=Tokens(), replies=models.replies, prices=bootstrap.prices(), k=models.settings.k)
    answering: Callable[[Mapping[str, Any]], Mapping[str, Any]] = study
    return study, _RehearsedModels(models.settings, bootstrap.rehearsal(answering))


def _spaced(values: Sequence[T], most: int) -> list[T]:
    """At most so many of them, evenly spaced."""
    return list(values[:: max(1, ceil(len(values) / most))])


def _scaled(study: _Understudy, what: str, model: str, *, asked: int, sampled: int) -> Forecast:
    factor = asked / sampled if sampled else 0.0
    return Forecast(
        what=what,
        model=model,
        asked=asked,
        sampled=sampled,
        calls=ceil(study.calls * factor),
        kept=int(study.kept * factor),
        usage=_times(study.usage, factor),
        due=_times(study.due, factor),
    )


def _times(usage: Usage, factor: float) -> Usage:
    return Usage(
        input_tokens=ceil(usage.input_tokens * factor),
        output_tokens=ceil(usage.output_tokens * factor),
        usd=None if usage.usd is None else usage.usd * factor,
    )
