"""Every system that asks a model, from its name to its answers, against a service as strict as the real one."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.measures import has_candidate
from experiments.studies.models import PAPERS
from experiments.variants import SYSTEMS
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, NotPermitted
from mats.evaluation.data.datasets import Dataset, JudgedQuery, JudgedSet, load, write
from mats.evaluation.systems.base import SystemAnswer, ask
from mats.evaluation.systems.models import Budget, BudgetSpent, Models
from mats.evaluation.systems.score import score
from mats.evaluation.systems.workbench import Workbench
from mats.settings import TITAN, Settings
from tests.aws.bedrock import Answer as Reply
from tests.aws.bedrock import BedrockServer, Exchange, Refuse, tool_reply
from tests.builders import a_registration

ASKING = ("full-ctx", "search-and-pick", "trial-and-err", "pipeline-bm25", "pipeline-dense", "pipeline-hybrid")
PIPELINES = ASKING[3:]
WORDS = (
    "refund a card payment",
    "forecast tomorrow weather",
    "translate a letter",
    "book a train seat",
    "resize photo",
)


def a_dataset() -> Dataset:
    registrations = [
        a_registration(namespace="n", name=f"t{n}", description=f"{text}.") for n, text in enumerate(WORDS)
    ]
    queries = [
        JudgedQuery(f"q{n}", f"please {text} for me", frozenset({Id(f"n/t{n}")})) for n, text in enumerate(WORDS)
    ]
    return Dataset("made-up", registrations, queries, {}, "digest")


@pytest.fixture(autouse=True)
def strict(server: BedrockServer) -> Iterator[None]:
    """Nothing asked here may break the service's rules."""
    yield
    assert server.rejected == []


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(bedrock=True, region="us-east-1", encoder=f"{TITAN}:0", cache=tmp_path / "cache")


def answers(
    name: str, settings: Settings, *, at_once: int = 1, budget: Budget | None = None
) -> dict[str, SystemAnswer]:
    """The answers of a variant by name, by models that remember only what is on disk."""
    dataset, models = a_dataset(), Models(settings, budget or Budget())
    assert models.lacking(SYSTEMS[name].needs) == ""
    with Workbench(dataset=dataset, models=models) as bench:
        return dict(ask(SYSTEMS[name].build(bench), dataset.queries, at_once=at_once))


def converse(server: BedrockServer) -> list[Exchange]:
    return [exchange for exchange in server.exchanges if exchange.operation == "Converse"]


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_retrieves_reranks_and_ranks_the_whole_shortlist(server, settings, name):
    given = answers(name, settings)
    assert [given[f"q{n}"].ranked[0] for n in range(5)] == [f"n/t{n}" for n in range(5)]
    assert len(converse(server)) == 5
    for answer in given.values():
        assert (answer.calls, answer.cached, answer.failed) == (1, 0, "")
        assert answer.usage.input_tokens > 0
        assert answer.took_ms["rerank"] > 0
    assert list(has_candidate(given, a_dataset())) == [1] * 5


def test_the_first_stages_are_words_vectors_or_both(server, settings):
    lexical, dense, hybrid = (answers(name, settings) for name in PIPELINES)
    assert {len(answer.ranked) for answer in dense.values()} == {5}
    assert {len(answer.ranked) for answer in hybrid.values()} == {5}
    assert min(len(answer.ranked) for answer in lexical.values()) < 5
    assert "encode" not in lexical["q0"].took_ms
    assert "encode" in dense["q0"].took_ms


@pytest.mark.parametrize("name", ASKING)
def test_a_second_run_makes_no_calls_and_gives_the_same_answers(server, settings, name):
    first = answers(name, settings)
    asked = len(converse(server))
    second = answers(name, settings, at_once=4)
    assert len(converse(server)) == asked > 0
    for query, answer in second.items():
        assert (answer.calls, answer.cached) == (first[query].calls, first[query].calls)
        assert first[query].cached == 0
        assert (answer.ranked, answer.usage, answer.failed) == (
            first[query].ranked, first[query].usage, first[query].failed,
        )  # fmt: skip
        stage = "rerank" if name in PIPELINES else "llm"
        assert answer.took_ms["total"] >= answer.took_ms[stage] > 0


def test_failures_in_a_row_open_no_circuit_breaker(server, settings):
    server.play = lambda exchange: Refuse("ValidationException", f"not number {exchange.number}")
    settings = replace(settings, encoder="none")
    given = answers("pipeline-bm25", settings)
    assert ["not asked" in answer.failed for answer in given.values()] == [False] * 5
    given = answers("pipeline-bm25", settings)
    assert len(converse(server)) == 10
    assert all(answer.failed for answer in given.values())


def test_missing_permission_ends_the_run_of_every_llm_system(server, settings):
    server.play = lambda exchange: Refuse("AccessDeniedException") if exchange.operation == "Converse" else None
    for name in ASKING:
        with pytest.raises(NotPermitted):
            answers(name, settings)


def picking(exchange: Exchange) -> Reply | None:
    """A baseline's model that picks the capability about weather, or tries one after the other."""
    if exchange.operation != "Converse":
        return None
    names = [tool["toolSpec"]["name"] for tool in exchange.body["toolConfig"]["tools"]]
    turn = len(exchange.body["messages"]) // 2
    if names == ["pick"]:
        return Reply(tool_reply("pick", {"line": 2}))
    if names[0] == "search":
        return Reply(tool_reply("pick", {"number": 1}) if turn else tool_reply("search", {"query": "weather"}))
    return Reply(tool_reply("try", {"number": f"t{turn}"}))


@pytest.mark.parametrize("model", PAPERS.values())
def test_every_model_of_the_paper_reranks_and_converses(server, settings, model):
    settings = replace(settings, rerank_model=model, encoder="none")
    answers("pipeline-bm25", settings)
    answers("search-and-pick", settings)
    assert {exchange.model for exchange in converse(server)} == {model}


def of_queries(exchange: Exchange) -> bool:
    return exchange.operation == "InvokeModel" and exchange.body["inputText"].startswith("please")


@pytest.mark.parametrize("name", ["dense", "hybrid", "pipeline-dense", "pipeline-hybrid"])
def test_an_answer_without_its_query_vector_is_a_failure(server, settings, name):
    server.play = lambda exchange: Refuse("ValidationException", "no vector") if of_queries(exchange) else None
    given = answers(name, settings)
    assert all("no vector" in answer.failed for answer in given.values())
    assert len([exchange for exchange in server.exchanges if of_queries(exchange)]) == 5


@pytest.mark.parametrize("operation", ["InvokeModel", "Converse"])
def test_a_registry_with_a_failed_model_is_not_measured(server, settings, operation):
    server.play = lambda exchange: Refuse("ValidationException", "out of") if exchange.operation == operation else None
    models = Models(settings)
    bench = Workbench(dataset=a_dataset(), models=models, writer=models.writer)
    with bench, pytest.raises(DependencyFailed, match=r"cannot be filled.*out of"):
        _ = bench.discover


def test_an_enriched_registry_is_written_once(server, settings):
    for asked in (5, 5):
        models = Models(settings)
        with Workbench(dataset=a_dataset(), models=models, writer=models.writer) as bench:
            profiles = bench.discover.index.fetch([Id("n/t0")])
        assert profiles[Id("n/t0")].enriched
        assert len(converse(server)) == asked


LABELS = ("distractor", "relevance", "label", "gold", "split", "judgement", "is_positive", "examples", "hard_negative")


def a_labelled_folder(folder: Path) -> Path:
    """A data set whose rows carry marks of an evaluation, each with a value that stands nowhere else."""
    kinds, labels = ("tool", "model", "agent", "skill", "tool"), {label: f"zz{label}value" for label in LABELS}
    corpus = {
        f"t{n}": {"type": kind, "name": f"t{n}", "description": f"{text}.", "source": "lab", **labels}
        | ({"parameters": {"topic": text}} if kind == "model" else {})
        for n, (text, kind) in enumerate(zip(WORDS, kinds, strict=True))
    }
    queries = {f"q{n}": {"text": f"please {text} for me"} for n, text in enumerate(WORDS)}
    write(JudgedSet(corpus=corpus, queries=queries, qrels={(f"q{n}", f"t{n}"): 1 for n in range(5)}), folder)
    return folder


def test_no_label_of_a_data_set_reaches_a_model(server, settings, tmp_path):
    models, dataset = Models(settings), load(a_labelled_folder(tmp_path / "labelled"))
    seen = []
    for writer in (None, models.writer):
        with Workbench(dataset=dataset, models=models, writer=writer) as bench:
            for name in ASKING:
                ask(SYSTEMS[name].build(bench), dataset.queries)
            profiles = bench.discover.index.fetch([r.id for r in dataset.registrations])
            seen += [profile.model_dump_json() for profile in profiles.values()]
    assert len(seen) == 10
    sent = [json.dumps(exchange.body.get("messages", exchange.body)) for exchange in server.exchanges]
    assert sum("<candidates>" in text for text in sent) >= 15
    assert sum("<registration>" in text for text in sent) == 5
    marks = re.compile("|".join(rf"{label}value|\b{label}\b" for label in LABELS))
    assert [text for text in sent if marks.search(text)] == []
    assert [text for text in seen if re.search("value", text)] == []


class TestNotRun:
    @pytest.mark.parametrize("name", ASKING)
    def test_without_an_llm_the_reason_names_the_settings(self, name):
        assert "MATS_LLM_URL and MATS_LLM_MODEL, or MATS_BEDROCK=1" in Models(Settings(encoder="none")).lacking(
            SYSTEMS[name].needs
        )

    def test_without_a_model_the_reason_names_the_setting(self, settings):
        lacking = Models(replace(settings, rerank_model="none")).lacking({"llm"})
        assert lacking == "needs an LLM: MATS_RERANK_MODEL is none"

    def test_without_an_encoder_systems_that_need_none_run(self, settings):
        models = Models(replace(settings, encoder="none"))
        assert models.lacking(SYSTEMS["pipeline-dense"].needs) == "needs an encoder: MATS_ENCODER is none"
        assert models.lacking(SYSTEMS["pipeline-bm25"].needs) == ""
        assert [name for name, v in SYSTEMS.items() if not Models(Settings(encoder="none")).lacking(v.needs)] == [
            "regex", "bm25-text", "bm25", "lexical",
        ]  # fmt: skip


class TestBudget:
    @pytest.mark.parametrize("name", ASKING)
    def test_a_run_stops_when_its_calls_are_spent_and_goes_on_from_the_cache(self, server, settings, name):
        with pytest.raises(BudgetSpent, match=r"the budget of 3 calls is spent after 3 calls.*--max-calls"):
            answers(name, settings, budget=Budget(max_calls=3))
        assert len(converse(server)) == 3
        answers(name, settings, budget=Budget(max_calls=100))
        needed = len(converse(server))
        assert len({json.dumps(exchange.body) for exchange in converse(server)}) == needed > 3
        answers(name, settings, budget=Budget(max_calls=0))
        assert len(converse(server)) == needed

    def test_no_call_is_made_once_the_dollars_are_spent(self, server, settings):
        with pytest.raises(BudgetSpent, match=r"the budget of \$0\.00 is spent after 1 calls.*--max-usd"):
            answers("pipeline-bm25", settings, budget=Budget(max_usd=1e-9))
        assert len(converse(server)) == 1

    def test_several_threads_make_no_call_beyond_it(self, server, settings):
        with pytest.raises(BudgetSpent):
            answers("full-ctx", settings, at_once=4, budget=Budget(max_calls=2))
        assert len(converse(server)) == 2

    def test_enriching_a_registry_stops_too(self, server, settings):
        models = Models(settings, Budget(max_calls=2))
        bench = Workbench(dataset=a_dataset(), models=models, writer=models.writer)
        with bench, pytest.raises(DependencyFailed, match=r"cannot be filled.*budget of 2 calls"):
            _ = bench.discover
        assert len(converse(server)) == 2


def scored(bench: Workbench, name: str) -> dict[str, Any]:
    return score(bench, SYSTEMS[name], SYSTEMS[name].answers(bench))


def test_results_name_the_model_and_count_what_failed(server, settings):
    with Workbench(dataset=a_dataset(), models=Models(settings)) as bench:
        results = scored(bench, "pipeline-hybrid")
    assert (results["llm"], results["prompt"]) == (settings.rerank_model, SYSTEMS["pipeline-hybrid"].prompt())
    assert (results["failed"], results["reasons"], results["calls"], results["replayed"]) == (0, {}, 5, 0)
    assert results["metrics"]["match@1"] == 1.0
    assert results["usage"]["usd"] > 0


@pytest.mark.parametrize(("name", "seen"), [("skills", False), ("made-up", True)])
def test_providers_that_give_golds_away_are_hidden_from_the_model(server, settings, name, seen):
    registrations = [r.model_copy(update={"provider": "Acme Works"}) for r in a_dataset().registrations]
    dataset = replace(a_dataset(), name=name, registrations=registrations)
    with Workbench(dataset=dataset, models=Models(settings)) as bench:
        SYSTEMS["pipeline-hybrid"].answers(bench)
    assert {"Acme" in json.dumps(exchange.body) for exchange in converse(server)} == {seen}


def of_refund(exchange: Exchange) -> bool:
    return "please refund" in str(exchange.body)


def test_results_count_the_reasons_of_failures(server, settings):
    server.play = lambda exchange: (
        Refuse("ValidationException", "too long") if of_refund(exchange) else picking(exchange)
    )
    with Workbench(dataset=a_dataset(), models=Models(settings)) as bench:
        results = scored(bench, "search-and-pick")
    [(reason, count)] = results["reasons"].items()
    assert (results["failed"], count) == (1, 1)
    assert "too long" in reason
    assert 0 < results["metrics"]["match@1"] < 1


def test_measures_of_a_single_pick_other_than_match_1_are_undefined(server, settings):
    server.play = picking
    with Workbench(dataset=a_dataset(), models=Models(settings)) as bench:
        results = scored(bench, "search-and-pick")
    assert results["metrics"]["match@1"] is not None
    for name in ("match@3", "match@5", "match@15", "mrr", "recall@15"):
        assert (results["metrics"][name], results["intervals_95"][name]) == (None, None)


def test_variants_have_the_papers_names_and_llm_variants_a_prompt():
    assert list(SYSTEMS) == [
        "regex", "full-ctx", "search-and-pick", "trial-and-err", "bm25-text", "dense", "pipeline-bm25",
        "pipeline-dense", "bm25", "lexical", "hybrid", "pipeline-hybrid",
    ]  # fmt: skip
    assert {name for name, variant in SYSTEMS.items() if variant.prompt()} == set(ASKING)
    assert {name for name, variant in SYSTEMS.items() if "llm" in variant.needs} == set(ASKING)
