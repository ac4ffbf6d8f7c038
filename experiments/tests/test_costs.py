"""The bound of a run's cost holds against models that spend all they can, and latencies count what they should."""

import json
from contextlib import AbstractContextManager
from types import TracebackType

import pytest

from experiments.baselines import conversation
from experiments.baselines.chat_model import ModelTurn, UserMessage
from experiments.baselines.costs import bound_cost, bound_writing_cost
from experiments.baselines.full_context import FullContext
from experiments.baselines.search_and_pick import SearchAndPick
from experiments.baselines.trial_and_error import TrialAndError
from experiments.tests.scripted_chat import Heard, ScriptedChat, asked, calls, registry, words
from experiments.variants import SYSTEMS
from mats.domain.capability.capability import Id
from mats.domain.prompts.usage import Usage
from mats.domain.text.fence import size
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.workbench import Workbench
from mats.local.cli.spending import dollars
from mats.settings import Settings
from tests.builders import a_discover, a_registration
from tests.fakes import FakeClock, MemoryIndex

BASELINES = {"full-ctx": FullContext, "search-and-pick": SearchAndPick, "trial-and-err": TrialAndError}
REGISTRY = [
    a_registration(namespace="n", name=f"取引_{n:03}" if n % 3 else f"t{n}", description='pay "外国為替" ' * (n % 40))
    for n in range(300)
]
TALK = "Well… " * 30
SPENT = {"usage": Usage(input_tokens=0, output_tokens=200, usd=0.0), "text": TALK}
HOSTILE = {
    "eight calls of each turn": calls(*[("list", {"page": 2})] * 8, **SPENT),
    "eight searches": calls(*[("search", {"query": "pay 外国為替"})] * 8, **SPENT),
    "fifty calls": calls(*[("list", {"page": n}) for n in range(50)], **SPENT),
    "calls of no tool": calls(*[("x" * 64, {})] * 8, **SPENT),
    "words alone": words(TALK),
    "cut off": calls(*[("list", {"page": 1})] * 8, stop="max_tokens", **SPENT),
}


def tokens_of(heard: Heard, reply_tokens: int) -> int:
    """The most tokens of a request: the bytes of our text, and of each earlier turn the tokens it was allowed."""
    total = size(heard.system) + size(json.dumps(heard.tools, ensure_ascii=False))
    for message in heard.messages:
        if isinstance(message, UserMessage):
            total += sum(map(size, message.texts)) + sum(size(text) for _, text in message.results)
        else:
            total += reply_tokens
    return total


def a_dataset(registrations=REGISTRY):
    queries = [JudgedQuery(f"q{n}", "pay " * n + "外国為替 <b>", frozenset({Id("n/t0")})) for n in (1, 700)]
    return Dataset("made-up", registrations, queries, {}, "digest")


@pytest.mark.parametrize("turn", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", BASELINES)
def test_no_model_can_spend_more_than_the_bound(name, turn):
    bound, max_tokens = bound_cost(SYSTEMS[name], Settings(), a_dataset()), []
    heard = []
    for query in a_dataset().queries:
        chat = LimitedChat([turn], max_tokens)
        BASELINES[name](REGISTRY, chat)(query)
        heard += chat.heard
    assert len(heard) <= bound.calls
    assert sum(max_tokens) <= bound.usage.output_tokens
    assert sum(tokens_of(each, max_tokens[0]) for each in heard) <= bound.usage.input_tokens


class LimitedChat(ScriptedChat):
    """Notes the token limit of each call."""

    def __init__(self, script: list[ModelTurn], max_tokens: list[int]) -> None:
        super().__init__(script)
        self.max_tokens = max_tokens

    def turn(self, *arguments, max_tokens, **more):
        self.max_tokens.append(max_tokens)
        return super().turn(*arguments, max_tokens=max_tokens, **more)


def test_the_bound_of_the_worst_model_is_near_what_it_spends():
    chat = LimitedChat([HOSTILE["eight searches"]], [])
    query = a_dataset().queries[1]
    SearchAndPick(REGISTRY, chat)(query)
    dataset = Dataset("made-up", REGISTRY, [query], {}, "digest")
    spent = sum(tokens_of(each, 200) for each in chat.heard)
    assert bound_cost(SYSTEMS["search-and-pick"], Settings(), dataset).usage.input_tokens < 2 * spent


def test_a_bound_covers_all_its_data_sets():
    one, two = (bound_cost(SYSTEMS["full-ctx"], Settings(), *[a_dataset()] * n) for n in (1, 2))
    assert (two.calls, two.usage.input_tokens) == (2 * one.calls, 2 * one.usage.input_tokens)
    assert bound_cost(SYSTEMS["full-ctx"], Settings()).calls == 0
    assert bound_writing_cost(Settings(), []).calls == 0


def test_small_costs_are_not_zero():
    assert [dollars(usd) for usd in (0.0, 0.00004, 0.0004, 12.0)] == ["$0.0000", "< $0.0001", "$0.0004", "$12.0000"]
    assert dollars(None) == "price not known"


def test_a_baselines_total_holds_local_work_and_not_the_harness(monkeypatch):
    cpu = FakeClock()
    monkeypatch.setattr(conversation.time, "thread_time", lambda: cpu.ms / 1_000)

    def slow_harness(number):
        cpu.ms += 1_000
        return calls(("search", {"query": "t001"})) if number == 0 else calls(("pick", {"number": 1}))

    system = SearchAndPick(registry(5), ScriptedChat([slow_harness]))
    search = system._search

    def slow_search(text):
        cpu.ms += 7
        return search(text)

    monkeypatch.setattr(system, "_search", slow_search)
    answer = system(asked())
    assert answer.took_ms["llm"] == 10
    assert answer.took_ms["total"] == pytest.approx(17)


class Busy(AbstractContextManager[None]):
    """A gate at which every query waits 30 ms."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock

    def __enter__(self) -> None:
        self.clock.ms += 30

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        pass


def test_a_pipelines_total_does_not_count_the_wait_for_other_queries():
    clock = FakeClock()
    answer = shortlist_system(a_discover(MemoryIndex(), clock=clock, gate=Busy(clock)))(asked())
    assert (answer.took_ms["queue"], answer.took_ms["total"]) == (30, 0)


@pytest.mark.parametrize("name", ["regex", "bm25"])
def test_systems_without_a_model_have_a_total(name):
    bench = Workbench(dataset=a_dataset(), models=Models(Settings()))
    answer = SYSTEMS[name].build(bench)(a_dataset().queries[0])
    assert answer.took_ms["total"] > 0
