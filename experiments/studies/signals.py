"""Signals: each one left out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from experiments.report.cells import INTERVALS, NONE, PaperRow, Section, Table, gained_lost, measures, number
from experiments.report.results import if_run, not_run_notes, part
from experiments.studies.context import Experiment, ExperimentContext, mcnemar_json, outcome
from mats.domain.learning.reliability import PAPER_TRUST
from mats.domain.ranking.blend import PAPER_WEIGHTS, Signal, Weights
from mats.evaluation.data.datasets import sample
from mats.evaluation.results import Json
from mats.evaluation.systems.base import ask
from mats.evaluation.systems.catalogue import shortlist_system
from mats.usecases.discover import Discover

_MEASURES = ("match@1", "match@3", "recall@15")


def without(*run: Signal) -> Weights:
    """The paper's weights without some signals; the others share their weight."""
    return {signal: weight for signal, weight in PAPER_WEIGHTS.items() if signal not in run}


def run(context: ExperimentContext) -> dict[str, Any]:
    """Each signal left out over the sample registry, which has trust and tags; trust is added, as in the paper."""
    dataset = sample()
    dataset = replace(dataset, queries=[query for query in dataset.queries if query.relevant])
    lacking = context.lacking({"llm"})
    with context.bench_of(dataset) as bench:
        discover = bench.discover.with_scoring(trust=PAPER_TRUST)
        if not lacking:
            reranker = context.models.reranker()
            discover = replace(discover, rerank=replace(discover.rerank, reranker=reranker))
        left_out: Mapping[str, Discover | None] = {
            "nothing": discover,
            "quality": discover.with_scoring(weights=without(Signal.QUALITY)),
            "bm25": discover.with_scoring(weights=without(Signal.BM25)),
            "quality and intent": discover.with_scoring(weights=without(Signal.QUALITY, Signal.INTENT)),
            "intent": None if lacking else discover.with_scoring(weights=without(Signal.INTENT)),
            "llm": None if lacking else replace(discover, rerank=replace(discover.rerank, reranker=None)),
        }
        answers = {
            name: ask(shortlist_system(system), dataset.queries) if system else lacking
            for name, system in left_out.items()
        }
    two, four = answers["quality and intent"], answers["nothing"]
    found = {
        "queries": len(dataset.queries),
        "without": {name: outcome(each, dataset) for name, each in answers.items()},
        "reranker": "none" if lacking else context.models.names["reranker"],
        "four_against_two": {f"match@{n}": mcnemar_json(two, four, dataset, places=n) for n in (1, 3)},
    }
    return {"sample": found}


def section(results: Json, paper: Json) -> Section:
    without, known = results["sample"]["without"], paper["signals"]
    tests = part(results["sample"], "four_against_two", "signals")
    reranker = results["sample"].get("reranker", "none")
    sample = Table(
        id="signals-without",
        caption=f"Each signal left out, over the sample registry (reranker: {reranker}), %",
        head=("without", *_MEASURES),
        rows=tuple((name, *measures(metrics, _MEASURES)) for name, metrics in without.items()),
        notes=(
            "Trust is added, as in the paper, not as shipped. The paper's gain has a reranker.",
            *not_run_notes(without.items()),
        ),
    )
    pairs = Table(
        id="signals-pairs",
        caption="All four signals against LLM and BM25 alone",
        head=("system", "measure", "gain, pp", "gained / lost"),
        rows=(
            *(("ours", name, _gain(without, name), gained_lost(test)) for name, test in if_run(tests).items()),
            *(
                PaperRow(("paper", name, f"{100 * gain:+.1f}", gained_lost(known) if name == "match@1" else NONE))
                for name, gain in known["four_minus_two"].items()
            ),
        ),
        labels=2,
        notes=(
            f"The paper ({known['table']}) measures {known['queries']} queries of a registry that is not public.",
            *not_run_notes([("ours", tests)]),
        ),
    )
    return Section(
        id="signals",
        title="Signals",
        summary=f"{number(results['sample']['queries'])} queries over the sample registry, which has trust and type "
        f"tags; no public set has. {INTERVALS}",
        tables=(sample, pairs),
    )


def _gain(without: Json, name: str) -> str:
    four, two = (if_run(without[arm]).get(name) for arm in ("nothing", "quality and intent"))
    return f"{100 * (four['mean'] - two['mean']):+.1f}" if four and two else NONE


EXPERIMENTS = (Experiment(name="signals", place=50, run=run, section=section),)
