"""The gate: compares answers without a language model with a stored baseline, query by query, and fails at a loss.

A baseline is a file: for each set the digest of its data and, in the order of its queries, the place of the first
relevant capability (0 if none is among the results) and the first letter of the verdict. The set `examples` is the
sample registry with its golden queries; any other is a folder of judged data sets. Of a set that has changed nothing is
judged.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mats.domain.errors import Fault, Invalid
from mats.evaluation.data.datasets import EXAMPLES, Dataset, load_judged, sample
from mats.evaluation.measures import PairedTest, Values, mcnemar
from mats.evaluation.systems.base import Progress
from mats.evaluation.systems.catalogue import VARIANTS
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.workbench import Workbench

_MOST_FALL, _ALPHA = 0.01, 0.05  # Share of the queries; level of the one-sided exact McNemar test


class BaselineInvalid(Invalid):
    """The file is no baseline, or is one of other data."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What a system answered to the queries of a set, in their order."""

    digest: str  # Of the data set
    places: Sequence[int]
    verdicts: str  # A letter for each query


class Check(NamedTuple):
    """What is wanted of answers: its name, the share of queries that had and have it, and which gained or lost it."""

    name: str
    before: float
    now: float
    test: PairedTest

    @property
    def is_loss(self) -> bool:
        """Whether so many more are lost than gained, of which chance is half of the two-sided p, or it falls far."""
        significant = self.test.lost > self.test.gained and self.test.p / 2 < _ALPHA
        return significant or self.before - self.now > _MOST_FALL + 1e-9


_MAKE = "`mats gate --baseline {} --update`"


def read_baseline(path: Path) -> dict[str, Outcomes]:
    """The outcomes on each set of a baseline file. Raises BaselineInvalid: it cannot be read, or is no baseline."""
    try:
        return {
            name: Outcomes(one["data_sha256"], [int(place) for place in one["places"].split()], one["verdicts"])
            for name, one in json.loads(path.read_text(encoding="utf-8"))["sets"].items()
        }
    except OSError as error:
        message = f"cannot be read ({error.strerror}): correct its path, or make one with {_MAKE.format(path)}"
        raise BaselineInvalid([Fault(str(path), message)]) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"is not a baseline ({error}): remove it, and make one with {_MAKE.format(path)}"
        raise BaselineInvalid([Fault(str(path), message)]) from error


def write_baseline(path: Path, sets: Mapping[str, Outcomes]) -> None:
    stored = {
        name: {"data_sha256": one.digest, "places": " ".join(map(str, one.places)), "verdicts": one.verdicts}
        for name, one in sets.items()
    }
    path.write_text(json.dumps({"sets": stored}, indent=1) + "\n", encoding="utf-8")


def measure_set(dataset: Dataset, models: Models, *, indexed: Progress, asked: Progress) -> Outcomes:
    """What the pipeline as shipped answers to every query of a set."""
    with Workbench(dataset=dataset, models=models, indexed=indexed) as bench:
        answers = VARIANTS["hybrid"].answers(bench, progress=asked)
    places = [
        next((place for place, id in enumerate(answers[query.id].ranked, start=1) if id in query.relevant), 0)
        for query in dataset.queries
    ]
    verdicts = ((answers[query.id].verdict or "-")[:1] for query in dataset.queries)
    return Outcomes(dataset.digest, places, "".join(verdicts))


def dataset_of(name: str, data: Path | None) -> Dataset:
    """The data set of a baseline by name.

    Raises BaselineInvalid: it needs a folder of data sets, which was not given; DatasetInvalid: it is not in the
    folder, or has no judged query.
    """
    if name == EXAMPLES.name:
        return sample()
    if data is None:
        raise BaselineInvalid([Fault(name, "is a judged data set: name its folder with --data")])
    found = load_judged(data / name)
    return replace(found, queries=[*found.queries, *found.absent])  # the latter are judged by their verdicts


def compare(dataset: Dataset, before: Outcomes, now: Outcomes) -> list[Check]:
    """The checks of a set: relevant first, relevant among fifteen, and both mistakes that a verdict can make.

    Raises BaselineInvalid: the two belong to different data.
    """
    if (before.digest, len(before.places)) != (now.digest, len(now.places)):
        message = (
            "has changed since the baseline was measured, and this change is not judged: "
            "compare `mats evaluate --misses` before and after it, then measure a new baseline with --update"
        )
        raise BaselineInvalid([Fault(dataset.name, message)])
    judged = np.array([bool(query.relevant) for query in dataset.queries])
    pairs = zip(_properties(before, judged), _properties(now, judged), strict=True)
    return [Check(name, float(had.mean()), float(has.mean()), mcnemar(had, has)) for (name, had), (_, has) in pairs]


def _properties(outcomes: Outcomes, judged: npt.NDArray[np.bool_]) -> Iterator[tuple[str, Values]]:
    """By name, 1 for each query that has what is wanted, else 0; verdicts can also be judged of those without gold.

    A match is false if the first is wrong; it is missed if the first is right and the verdict is another.
    """
    places = np.array(outcomes.places)
    first, sure = places == 1, np.array([letter == "m" for letter in outcomes.verdicts])
    if judged.any():
        yield "match@1", first[judged].astype(float)
        yield "match@15", ((places > 0) & (places <= 15))[judged].astype(float)
    yield "no false match", (first | ~sure).astype(float)
    yield "no missed match", (sure | ~first).astype(float)
