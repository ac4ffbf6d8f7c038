"""`python -m experiments ablate`: one row for each policy, measured set by set in processes of their own."""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from experiments.ablate.measure import Comparison, Row
from experiments.ablate.requests import MADE, SEED
from experiments.ablate.sets import MOST, PAST, TAUGHT, measure_set
from mats.bootstrap.policies import NAMES
from mats.settings import Settings

_AT_ONCE = 2  # Processes: a registry of the tools takes 1 GB


def ablate(data: Path, settings: Settings, sets: Sequence[str], policies: Collection[str] = NAMES) -> dict[str, Any]:
    """The rows of these policies over these sets, without a language model."""
    with ProcessPoolExecutor(_AT_ONCE, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(measure_set, name, data, settings, policies) for name in sets]
        comparisons = [each for one in running for each in one.result()]
    return {
        "sets": list(sets),
        "seed": SEED,
        "most": {"judged": MOST, "made": MADE, "past": PAST, "taught": TAUGHT},
        "policies": {name: row.to_json() for name, row in rows(comparisons, policies).items()},
    }


def rows(comparisons: Sequence[Comparison], policies: Collection[str]) -> Mapping[str, Row]:
    """A row for each policy, also for one that no set could measure."""
    return {name: Row(name, [each for each in comparisons if each.policy == name]) for name in policies}
