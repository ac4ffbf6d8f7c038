"""Fit what makes scores absolute, and the verdict's thresholds for a registry without an LLM.

The scale is the one of a grid that puts gold first most often (`scale.py`). The thresholds are fitted on one half of
the queries and tested on the other. In scope are the judged queries; out of scope are the same queries asked of a
registry without their gold, and gibberish. `weak` is the highest threshold at which at most 5 % of good queries are
told `none`; `match` is the lowest from which at least 80 % of the good queries it accepts have gold in their list.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mats import bootstrap
from mats.adapters.opensearch.mapping import VERSION
from mats.domain.query import Query
from mats.domain.ranking import Scale
from mats.evaluation.cache import cached
from mats.evaluation.datasets import FOUR_KINDS, Dataset, DatasetInvalid, JudgedQuery, load, sets_in
from mats.evaluation.metrics import SEED, Values
from mats.evaluation.provenance import RESULTS, write
from mats.evaluation.scale import fit, fit_spread, measured
from mats.evaluation.workbench import PATIENT, registry_of
from mats.ports import Encoder
from mats.settings import Settings
from mats.usecases.discover import Discover

_TOLD_NONE = 0.05
_MATCH_PRECISION = 0.8
_GIBBERISH = 300
KINDS = ("good", "bereft", "gibberish")
THRESHOLDS = tuple(round(step / 20, 2) for step in range(21))
_TABLE = Path(bootstrap.__file__).parents[1] / "calibration.json"


@dataclass(frozen=True, slots=True)
class Scores:
    """The best relevance per query: of good ones, with whether gold was found, and of the two kinds out of scope."""

    good: Values
    found: Values
    bereft: Values
    """The same queries, asked of a registry without their gold."""
    gibberish: Values


def main() -> None:
    """Fit, test, and write both the results and the table that the service reads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of judged data sets")
    parser.add_argument("--carry-over", action="store_true", help="only carry the constants over to OpenSearch")
    chosen, settings = parser.parse_args(), Settings.from_env(os.environ)
    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    if chosen.carry_over:
        _keep(_carried_over(table))
        return
    try:
        datasets = {name: load(chosen.data / name) for name in sets_in(chosen.data)}
    except DatasetInvalid as error:
        parser.error(str(error))
    kinds = [datasets[name] for name in FOUR_KINDS.values() if name in datasets] or list(datasets.values())
    own = cached(settings)
    index, fitted, grids = _fitted_scale(list(datasets.values()), settings, own)
    report: dict[str, Any] = {}
    for key, encoder in ((encoder_key(settings), own), ("none", None)):
        sets = [scores(dataset, settings, encoder, fitted) for dataset in kinds]
        halves = _halves(sets)
        weak, match = _weak(halves[0]), _match(halves[0])
        thresholds = {"weak": round(weak, 3), "match": round(max(weak, match), 3)}
        table[f"{index}/{key}"] = {"scale": asdict(fitted), "thresholds": thresholds}
        report[key] = {
            **thresholds,
            "fitted": _judged(halves[0], weak, match),
            "tested": _judged(halves[1], weak, match),
        }
    write("calibration", {"scale": asdict(fitted), "sets": list(datasets), **grids, "verdict": report})
    _keep(_carried_over(table))
    sys.stdout.write(json.dumps(report) + "\n")


def encoder_key(settings: Settings) -> str:
    """How the names of an encoder's vectors begin, whichever weights and precision made them."""
    return Path(settings.encoder).name


def _carried_over(table: dict[str, Any]) -> dict[str, Any]:
    """The table with rows for OpenSearch: its BM25 is larger by a ratio that `bench_aws parity` has measured."""
    ratio = json.loads((RESULTS / "aws-parity.json").read_text(encoding="utf-8"))["bm25_ratio"]
    local = {key: row for key, row in table.items() if key.startswith("sqlite-")}
    carried = {
        f"opensearch-{VERSION}/{key.partition('/')[2]}": {
            **row,
            "scale": {**row["scale"], "c": round(row["scale"]["c"] * ratio, 1)},
        }
        for key, row in local.items()
    }
    return {**local, **carried}


def _keep(table: dict[str, Any]) -> None:
    _TABLE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def _fitted_scale(
    datasets: Sequence[Dataset], settings: Settings, encoder: Encoder | None
) -> tuple[str, Scale, dict[str, Any]]:
    """The index it was fitted on, the scale, both grids."""
    sets = []
    index = ""
    for dataset in datasets:
        with registry_of(dataset.registrations, settings, encoder=encoder) as local:
            index = local.index.name
            sets.append(measured(replace(local.discovery.discover, budgets=PATIENT), dataset.queries))
    mixing, grid = fit(sets)
    spread, wider = fit_spread(sets, mixing)
    return index, spread, {"grid": grid, "spread": wider}


def scores(dataset: Dataset, settings: Settings, encoder: Encoder | None, scale: Scale) -> Scores:
    """The best relevance of every query of a set, as asked, without its gold, and of gibberish."""
    if encoder is None:
        settings = Settings(encoder="none", cache=settings.cache)
    gold = {id for query in dataset.queries for id in query.relevant}
    bereft = [r for r in dataset.registrations if r.id not in gold]
    with registry_of(dataset.registrations, settings, encoder=encoder) as local:
        discover = replace(local.discovery.discover, scale=scale, budgets=PATIENT)
        answers = [_best(discover, query) for query in dataset.queries]
        nonsense = [_best(discover, query)[0] for query in _nonsense(dataset.name)]
    with registry_of(bereft, settings, encoder=encoder) as local:
        discover = replace(local.discovery.discover, scale=scale, budgets=PATIENT)
        without = [_best(discover, query)[0] for query in dataset.queries]
    best, found = zip(*answers, strict=True)
    return Scores(np.array(best), np.array(found), np.array(without), np.array(nonsense))


def _best(discover: Discover, query: JudgedQuery) -> tuple[float, float]:
    """The relevance of the most relevant candidate, and whether gold is among them (1 or 0)."""
    ranked = discover(Query(query=query.text[:2_000])).ranked
    best = max((result.relevance for result in ranked), default=0.0)
    return best, float(any(result.candidate.profile.id in query.relevant for result in ranked))


def _nonsense(seed: str) -> list[JudgedQuery]:
    """Words of random letters, two to eight a query."""
    chance = random.Random(f"{SEED}-{seed}")
    letters = "abcdefghijklmnopqrstuvwxyz"

    def word() -> str:
        return "".join(chance.choice(letters) for _ in range(chance.randint(3, 9)))

    texts = [" ".join(word() for _ in range(chance.randint(2, 8))) for _ in range(_GIBBERISH)]
    return [JudgedQuery(f"nonsense-{i}", text, frozenset()) for i, text in enumerate(texts)]


def _halves(sets: Sequence[Scores]) -> tuple[list[Scores], list[Scores]]:
    """Every other query of every set, and the rest; each set keeps its own, so that none drowns the others."""
    return [_slice(s, 0) for s in sets], [_slice(s, 1) for s in sets]


def _slice(scores: Scores, start: int) -> Scores:
    return Scores(scores.good[start::2], scores.found[start::2], scores.bereft[start::2], scores.gibberish[start::2])


def _weak(sets: Sequence[Scores]) -> float:
    """The highest threshold that tells at most 5 % of good queries `none`, on average over the sets."""
    candidates = np.linspace(0, 1, 1_001)
    told = np.array([np.mean([(s.good < t).mean() for s in sets]) for t in candidates])
    return float(candidates[told <= _TOLD_NONE][-1])


def _match(sets: Sequence[Scores]) -> float:
    """The lowest threshold from which at least 80 % of the good queries it calls a match have gold in their list."""
    for threshold in np.linspace(0, 1, 1_001):
        matched = [(s.found[s.good >= threshold].sum(), (s.good >= threshold).sum()) for s in sets]
        rates = [hits / total for hits, total in matched if total]
        if rates and np.mean(rates) >= _MATCH_PRECISION:
            return float(threshold)
    return 1.0


def _judged(sets: Sequence[Scores], weak: float, match: float) -> dict[str, Any]:
    """What each kind of query is told, and the shares below each threshold of a curve; means over the sets."""
    kinds = {kind: [getattr(s, kind) for s in sets] for kind in KINDS}
    told = {
        kind: {"none": _mean([(v < weak).mean() for v in each]), "match": _mean([(v >= match).mean() for v in each])}
        for kind, each in kinds.items()
    }
    return {"told": told, "curve": {"threshold": list(THRESHOLDS), "below": below(sets)}}


def below(sets: Sequence[Scores]) -> dict[str, list[float]]:
    """The share of each kind of query whose best relevance is below each threshold; means over the sets."""
    return {
        kind: [_mean([(getattr(s, kind) < threshold).mean() for s in sets]) for threshold in THRESHOLDS]
        for kind in KINDS
    }


def _mean(values: Sequence[Any]) -> float:
    return round(float(np.mean(values)), 4)


if __name__ == "__main__":
    main()
