"""The causes of misses: retrieval, or the order of its candidates."""

from collections.abc import Mapping
from typing import Any

from experiments.report.cells import INTERVALS, Section, Table, comma_list, number, percent
from experiments.report.results import measured_only, not_run_notes
from experiments.studies.context import OURS, Experiment, ExperimentContext, first_is_right, has_candidate, share_json
from experiments.variants import SYSTEMS
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.results import Json
from mats.evaluation.systems.base import Answers, SystemAnswer
from mats.evaluation.systems.score import dataset_json

_PICKERS = frozenset({"regex", "full-ctx", "search-and-pick", "trial-and-err"})  # Systems without a first stage
_FACTORS = ("candidate", "of those, ranked first", "Match@1", "misses at retrieval")
_MISSES = {
    "retrieval_miss": "no relevant candidate",
    "picked_another": "another first",
    "several_gold": "several relevant",
}


def run(context: ExperimentContext) -> dict[str, Any]:
    """Both factors and the categories of misses."""
    sets = {}
    for name in context.sets:
        variants = [variant for variant in SYSTEMS if variant not in _PICKERS]
        systems = {variant: context.result(name, variant, _factors) for variant in variants}
        sets[name] = {**dataset_json(context.dataset(name)), "systems": systems}
    return {"k": context.models.settings.k, "sets": sets}


def _factors(answers: Answers, dataset: Dataset) -> dict[str, Any]:
    hits, candidates = first_is_right(answers, dataset), has_candidate(answers, dataset)
    missed = [(query, answers[query.id]) for query, hit in zip(dataset.queries, hits, strict=True) if not hit]
    kinds = [category(query, answer) for query, answer in missed]
    return {
        "candidates": share_json(candidates),
        "conditional": share_json(hits[candidates > 0]),
        "match@1": share_json(hits),
        "misses_at_retrieval": round(kinds.count("retrieval_miss") / len(kinds), 4) if kinds else 0.0,
        "categories": {kind: kinds.count(kind) for kind in ("retrieval_miss", "picked_another", "several_gold")},
    }


def category(query: JudgedQuery, answer: SystemAnswer) -> str:
    """The category of a miss, of those in the paper that labels can tell.

    `retrieval_miss`: no relevant candidate. `several_gold`: the query needs several capabilities, and some of them are
    candidates. `picked_another`: the relevant capability is a candidate, and another one is first.
    """
    if not query.relevant.intersection(answer.retrieved):
        return "retrieval_miss"
    return "several_gold" if len(query.relevant) > 1 else "picked_another"


def section(results: Json, paper: Json) -> Section:
    sets = results["sets"]
    shares = ("candidates", "conditional", "match@1", "misses_at_retrieval")
    rows = tuple(
        (
            name,
            system,
            *(percent(result[share]) for share in shares),
            *(number(result["categories"].get(kind)) for kind in _MISSES),
        )
        for name, one in sets.items()
        for system, result in measured_only(one["systems"]).items()
    )
    known = paper["decomposition"]["misses_at_retrieval"].items()
    losses = comma_list(f"{100 * share:.0f} % on {row}" for row, share in known)
    low, high = paper["scale"]["conditional"]
    table = Table(
        id="decomposition-factors",
        caption="A relevant candidate × first if there is one = Match@1, %; and the causes of misses",
        head=("set", "system", *_FACTORS, *_MISSES.values()),
        rows=rows,
        labels=2,
        notes=(
            f"The paper loses {losses} of its misses at retrieval; where it found a relevant candidate, its reranker "
            f"ranks one first in {100 * low:.0f} to {100 * high:.0f} % of queries.",
            *not_run_notes((system, value) for one in sets.values() for system, value in one["systems"].items()),
        ),
    )
    return Section(
        id="decomposition",
        title="Causes of misses",
        summary=f"Recall of the first stage at k = {number(results['k'])}, times the accuracy of the order of its "
        f"candidates. {INTERVALS}",
        tables=(table,),
    )


def finding(results: Json) -> str:
    shares = {
        name: one["systems"][OURS]["misses_at_retrieval"]
        for name, one in results["sets"].items()
        if OURS in measured_only(one["systems"])
    }
    known = {name: share["mean"] if isinstance(share, Mapping) else share for name, share in shares.items() if share}
    if not known:
        return ""
    least, most = min(known, key=lambda each: known[each]), max(known, key=lambda each: known[each])
    return (
        f"Causes: of what `{OURS}` does not rank first, {100 * known[least]:.0f} % (`{least}`) to "
        f"{100 * known[most]:.0f} % (`{most}`) is not among its candidates; the rest is a matter of their order, "
        "which a reranker can still change."
    )


EXPERIMENTS = (Experiment(name="decomposition", place=30, run=run, section=section, finding=finding),)
