"""Fit the score scale, and the verdict thresholds of a registry without an LLM, for the encoder of the settings.

The scale is the one of a grid with the best Match@1 (`scale.py`). The thresholds are fitted on one half of the queries
and tested on the other (`thresholds.py`).
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import mats
from experiments.calibration.scale import candidate_scores, fit, fit_spread
from experiments.calibration.thresholds import fit_match, fit_weak, halves, join, relevance_scores, verdict_rates
from experiments.data.sets import FOUR_KINDS, operations, sets_in
from experiments.fresh import write_results
from experiments.report.results import load_results
from mats.adapters.opensearch.mapping import VERSION
from mats.adapters.sqlite.index import SqliteIndex
from mats.bootstrap.models import load_calibration, model_of
from mats.domain.search.scale import Scale
from mats.evaluation.data.datasets import Dataset, DatasetInvalid, load
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.workbench import registry_of, without_timeouts
from mats.settings import Settings

_TABLE = Path(mats.__file__).with_name("calibration.json")  # The constants that the service reads
_LEAST_MATCH = 0.72  # Small registries, which are not among the sets, need it: docs/decisions/0017


def main() -> None:
    parser = argparse.ArgumentParser(prog="make calibrate", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of judged data sets")
    parser.add_argument("--keep-scale", action="store_true", help="fit the thresholds only, for the scale in use")
    chosen, settings = parser.parse_args(), Settings.from_env(os.environ)
    table = json.loads(_TABLE.read_text(encoding="utf-8"))
    try:
        datasets = {name: load(chosen.data / name) for name in sets_in(chosen.data)}
    except DatasetInvalid as error:
        parser.error(str(error))
    kinds = [datasets[name] for name in FOUR_KINDS.values() if name in datasets]
    models = Models(settings)
    index, scale, grids = _kept_scale(models) if chosen.keep_scale else _fit_scale(list(datasets.values()), models)
    report: dict[str, Any] = {}
    fitted_to = [(model_of(models.encoder.name), models.encoder)] if models.encoder else []
    for key, encoder in (*fitted_to, ("none", None)):
        measure = partial(relevance_scores, settings=models.offline, encoder=encoder, scale=scale)
        apis = [join(list(map(measure, operations("open"))))] if kinds else []
        fitted, tested = halves([*map(measure, kinds or datasets.values()), *apis])
        weak, match = fit_weak(fitted), fit_match(fitted)
        thresholds = {"weak": round(weak, 3), "match": round(max(weak, match, _LEAST_MATCH), 3)}
        table[f"{index}/{key}"] = {"scale": asdict(scale), "thresholds": thresholds}
        report[key] = {
            **thresholds,
            "fitted": verdict_rates(fitted, **thresholds),
            "tested": verdict_rates(tested, **thresholds),
        }
    write_results("calibration", {"scale": asdict(scale), "sets": list(datasets), **grids, "verdict": report})
    _write_table(table)
    sys.stdout.write(json.dumps(report) + "\n")


def _write_table(table: dict[str, Any]) -> None:
    """Write the rows for SQLite, and those for OpenSearch by the ratio of BM25 scores that `aws-parity` measured."""
    ratio = load_results("aws-parity")["bm25_ratio"]
    local = {key: row for key, row in table.items() if key.startswith("sqlite-")}
    scaled = {
        f"opensearch-{VERSION}/{key.partition('/')[2]}": {
            **row,
            "scale": {**row["scale"], "c": round(row["scale"]["c"] * ratio, 1)},
        }
        for key, row in local.items()
    }
    _TABLE.write_text(json.dumps({**local, **scaled}, indent=1) + "\n", encoding="utf-8")


def _kept_scale(models: Models) -> tuple[str, Scale, dict[str, Any]]:
    """The name of the index, the scale in use, and the grids that it was chosen from."""
    index, encoder = SqliteIndex.name, models.encoder
    results = load_results("calibration")
    scale = load_calibration(index, encoder.name if encoder else "none").scale
    return index, scale, {name: results[name] for name in ("grid", "spread")}


def _fit_scale(datasets: Sequence[Dataset], models: Models) -> tuple[str, Scale, dict[str, Any]]:
    """The name of the index, the scale fitted over it, and both grids."""
    sets = []
    index = ""
    for dataset in datasets:
        with registry_of(dataset.registrations, models.offline, encoder=models.encoder) as local:
            index = local.stores.index.name
            sets.append(candidate_scores(without_timeouts(local.discover), dataset.queries))
    mixing, grid = fit(sets)
    spread, wider = fit_spread(sets, mixing)
    return index, spread, {"grid": grid, "spread": wider}


if __name__ == "__main__":
    main()
