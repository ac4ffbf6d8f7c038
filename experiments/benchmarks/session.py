"""Benchmark of a session: the share of its prompts that stands in an unchanged prefix, which APIs of models cache.

Ten requests of the sample, each a call of the search tool, its result, and a reply. An agent's own tools and system
prompt, half of the size each, stand before and behind the tools that were found. Definitions are `replaced` (a new list
with each answer), `appended` to the tools (`known`, format `openai_tools`), or `deferred`: read where the result refers
to them (`known`, `claude_tool_reference`).
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from experiments.benchmarks.mcp import Count, sample_application
from experiments.benchmarks.reranker import token_counter
from mats.edge.app import Application
from mats.edge.http import Caller
from mats.edge.mcp.tools import definitions
from mats.edge.routes import search_answer
from mats.edge.schema import DiscoverRequest, Format
from mats.edge.tools.formats import ReadyMade
from mats.evaluation.data.datasets import sample
from mats.settings import Settings

TURNS, REPLY = 10, 150  # Requests, and tokens of a reply to the user
SIZES = (2_000, 10_000, 20_000)
"""Tokens of an agent's own system prompt and tools; those of coding agents have 10,000 and more."""
TOKENIZERS = {"bpe-65k": "anthropic_tokenizer.json", "bpe-129k": "deepseek_tokenizer.json"}
"""Files of the package litellm (the extra `prices`), which need no network."""
Part = tuple[str, int]  # Of a prompt: what it is, and its tokens
Prompt = Sequence[Part]
Host = Callable[[Application, Count, int], Iterator[Prompt]]


def session(data: Path, settings: Settings) -> dict[str, Any]:
    """Shares in % by tokenizer, host and size: of the tokens of prompts, and of those that the prompt before had."""
    counts = {"wordpiece-30k": token_counter(), **dict(_bpe_counters())}
    with sample_application(settings) as application:
        shares = {
            name: {
                host: {str(size): shares_of(list(prompts(application, count, size))) for size in SIZES}
                for host, prompts in HOSTS.items()
            }
            for name, count in counts.items()
        }
    return {"turns": TURNS, "reply_tokens": REPLY, "sizes": list(SIZES), "shares": shares}


def _bpe_counters() -> Iterator[tuple[str, Count]]:
    spec = find_spec("litellm")
    folder = Path(next(iter((spec and spec.submodule_search_locations) or [""]))) / "litellm_core_utils" / "tokenizers"
    for name, file in TOKENIZERS.items():
        if (folder / file).is_file():
            yield name, partial(_count, Tokenizer.from_file(str(folder / file)))


def _count(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


def shares_of(prompts: Sequence[Prompt]) -> dict[str, float]:
    pairs = list(pairwise(prompts))
    same = sum(_prefix(before, after) for before, after in pairs)
    return {
        "of_prompts": round(100 * same / sum(_tokens(after) for _, after in pairs), 1),
        "of_prompts_before": round(100 * same / sum(_tokens(before) for before, _ in pairs), 1),
    }


def _prefix(before: Prompt, after: Prompt) -> int:
    total = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        total += one[1]
    return total


def _tokens(prompt: Prompt) -> int:
    return sum(tokens for _, tokens in prompt)


def _requests() -> list[str]:
    queries = sample().queries
    return [query.text for query in queries[:: len(queries) // TURNS][:TURNS]]


def _answer(application: Application, text: str, format: Format, known: Sequence[str] | None) -> ReadyMade:
    wish = DiscoverRequest(query=text, format=format, known=None if known is None else tuple(known))
    answer = search_answer(application, Caller(), wish)
    assert isinstance(answer, ReadyMade)
    return answer


def _turn(count: Count, text: str, result: Sequence[Any]) -> list[Part]:
    call = json.dumps({"name": "search_tools", "input": {"query": text}})
    return [*_parts(count, [text, call, *result]), (f"reply to {text}", REPLY)]


def _parts(count: Count, values: Sequence[Any]) -> list[Part]:
    texts = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
    return [(text, count(text)) for text in texts]


def _in_tools(known: bool) -> Host:
    """Definitions stand among the tools, before system prompt and conversation."""

    def prompts(application: Application, count: Count, size: int) -> Iterator[Prompt]:
        search = _parts(count, [definitions(["search_tools"])[0]])
        tools: list[Any] = []
        turns: list[Part] = []
        for text in _requests():
            yield [("own tools", size // 2), *search, *_parts(count, tools), ("system prompt", size // 2), *turns]
            named = [tool["function"]["name"] for tool in tools]
            answer = _answer(application, text, Format.OPENAI_TOOLS, named if known else None)
            found = answer.output if isinstance(answer.output, list) else []
            tools = [*tools, *found] if known else found
            turns += _turn(count, text, [list(answer.names)])

    return prompts


def _in_results(application: Application, count: Count, size: int) -> Iterator[Prompt]:
    """Definitions stand where the results refer to them."""
    search, known, turns = _parts(count, [definitions(["search_tools"])[0]]), list[str](), list[Part]()
    for text in _requests():
        yield [("own tools", size // 2), *search, ("system prompt", size // 2), *turns]
        answer = _answer(application, text, Format.CLAUDE_TOOL_REFERENCE, known)
        new = answer.definitions or []
        known += [tool["name"] for tool in new]
        turns += _turn(count, text, [list(answer.names), *new])


HOSTS: dict[str, Host] = {"replaced": _in_tools(False), "appended": _in_tools(True), "deferred": _in_results}
