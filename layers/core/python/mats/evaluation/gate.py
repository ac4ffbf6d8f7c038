"""The gate: fails when a measure has fallen below its baseline.

A baseline is a file: `{"sets": {NAME: {"data_sha256", "variant", "metrics": {MEASURE: {"mean", "low", "high"}}}}}`, or
the results of the main experiment, which has every variant. The set `examples` is the sample registry with its golden
queries; any other is a folder of judged data sets. A measure has dropped if it is below its bootstrap interval.
Of a set that has changed nothing is judged.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mats.domain.errors import Fault, Invalid
from mats.evaluation.data.datasets import EXAMPLES, Dataset, load, sample
from mats.evaluation.systems.base import Progress, no_progress
from mats.evaluation.systems.catalogue import VARIANTS, Variant
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.score import metrics_json
from mats.evaluation.systems.workbench import Workbench

SHIPPED = "hybrid"


class BaselineInvalid(Invalid):
    """The file is no baseline, or is one of other data."""


def read_baseline(path: Path, variant: str = SHIPPED) -> dict[str, Any]:
    """Hash and measures of a variant on the sets in a baseline file.

    Raises BaselineInvalid: the file cannot be read, is no baseline, or is one of another variant.
    """
    sets: dict[str, Any] = {}
    try:
        for name, one in json.loads(path.read_text(encoding="utf-8"))["sets"].items():
            measured = {"variant": variant, **one["systems"][variant]} if "systems" in one else one
            if (found := measured.get("variant", SHIPPED)) != variant:
                raise ValueError(f"it is one of {found}, not of {variant}")
            bounds = {m: {"mean": value["mean"], "low": value["low"]} for m, value in measured["metrics"].items()}
            sets[name] = {"data_sha256": str(one["data_sha256"]), "metrics": bounds}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"is no baseline ({error}): make one with `mats gate --update`"
        raise BaselineInvalid([Fault(str(path), message)]) from error
    return sets


def measure_set(
    dataset: Dataset,
    models: Models,
    variant: Variant = VARIANTS[SHIPPED],
    *,
    indexed: Progress = no_progress,
    asked: Progress = no_progress,
) -> Any:
    """The measures of a variant on the queries with relevant capabilities, as in a baseline."""
    served = replace(dataset, queries=[query for query in dataset.queries if query.relevant])
    with Workbench(dataset=served, models=models, indexed=indexed) as bench:
        answers = variant.answers(bench, progress=asked)
    return {"data_sha256": dataset.digest, "variant": variant.name, "metrics": metrics_json(answers, served)}


def dataset_of(name: str, data: Path | None) -> Dataset:
    """The data set of a baseline by name.

    Raises:
        BaselineInvalid: it needs a folder of data sets, which was not given.
        DatasetInvalid: it is not in the folder.
    """
    if name == EXAMPLES.name:
        return sample()
    if data is None:
        raise BaselineInvalid([Fault(name, "is a judged data set: name its folder with --data")])
    return load(data / name)


def drops(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each measure of a set that fell below its interval.

    Raises BaselineInvalid: the two belong to different data.
    """
    if before["data_sha256"] != now["data_sha256"]:
        message = (
            "has changed since the baseline was measured, and this change is not judged: "
            "compare `mats evaluate --misses` before and after it, then measure a new baseline with --update"
        )
        raise BaselineInvalid([Fault(name, message)])
    for measure, was in before["metrics"].items():
        value = now["metrics"][measure]["mean"]
        if value < was["low"]:
            yield (
                f"{name}: {measure} was {100 * was['mean']:.1f} % (at least {100 * was['low']:.1f} %), "
                f"now {100 * value:.1f} %"
            )
