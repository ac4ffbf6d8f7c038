"""Four signals against two, and each signal left out, over the registry that has trust and type tags."""

from collections.abc import Collection
from dataclasses import replace

from experiments.experiment import Arm, Experiment, Panel
from experiments.measures import paired, ranking
from experiments.report.cells import NONE, Column, TableForm, change, share
from mats.domain.search.blend import PAPER_TRUST
from mats.domain.search.signals import PAPER_WEIGHTS, Signal
from mats.evaluation.data.datasets import Dataset, sample
from mats.evaluation.systems.base import RankingSystem
from mats.evaluation.systems.catalogue import Variant, reranked_system, shortlist_system
from mats.evaluation.systems.workbench import Workbench

_TWO, _FOUR = "LLM and BM25", "all four"


def _arm(label: str, without: Collection[Signal] = (), *, llm: bool = True, before: str = "") -> Arm:
    """The pipeline with the paper's weights but for some signals; the others share their weight."""
    weights = {signal: weight for signal, weight in PAPER_WEIGHTS.items() if signal not in without}

    def build(bench: Workbench) -> RankingSystem:
        discover = bench.discover
        if llm:
            return reranked_system(discover, bench.models, weights=weights)
        return shortlist_system(
            replace(discover, scoring=replace(discover.scoring, weights=weights, trust=PAPER_TRUST))
        )

    needs = frozenset({"encoder", "llm"} if llm else {"encoder"})
    return Arm(label=label, system=Variant(name=label, description=label, needs=needs, build=build), before=before)


def _questions() -> Dataset:
    whole = sample()
    return replace(whole, queries=[query for query in whole.queries if query.relevant])


def _gain(name: str) -> Column:
    return lambda cell: f"{100 * cell['gain'][name]['mean']:+.1f}" if cell.get("gain") else NONE


_OPTIONAL = (Signal.QUALITY, Signal.INTENT)

EXPERIMENT = Experiment(
    name="signals",
    place=50,
    title="Four signals against two",
    about="The queries of the sample registry, which has trust and type tags; no public set has. Trust is added, as in "
    "the paper, not as shipped; candidates are the same.",
    panels=lambda _: [Panel("sample", (_questions(),), derived="sample")],
    arms=(
        _arm(_TWO, _OPTIONAL),
        _arm(_FOUR, before=_TWO),
        *(_arm(f"without {signal}", [signal], before=_FOUR) for signal in Signal if signal in PAPER_WEIGHTS),
        _arm("no LLM: retrieval and BM25", _OPTIONAL, llm=False),
        _arm("no LLM: and quality", [Signal.INTENT], llm=False, before="no LLM: retrieval and BM25"),
    ),
    measures=(ranking, paired),
    tables=(
        TableForm(
            id="signals-arms", caption="Signals, %, and the gain over the arm before, points", paper="tab:signals",
            columns={
                **{name: share(name) for name in ("match@1", "match@3", "recall@15")},
                **{f"gain, {name}": _gain(name) for name in ("match@1", "match@3", "recall@15")},
                "gained / lost": change,
            },
            note=f"`{_FOUR}` is compared with `{_TWO}`, what leaves a signal out with `{_FOUR}`. A language model "
            "infers the type for intent.",
        ),
    ),
)  # fmt: skip
