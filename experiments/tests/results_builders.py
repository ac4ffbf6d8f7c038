"""Made-up results in the shape of every experiment, with and without a judge."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.catalogue import EXPERIMENTS, RUNNABLE

NO_JUDGE = "no model that judges is turned on; MATS_BEDROCK=1 turns one on"
OFFLINE = ("regex", "bm25", "lexical", "dense", "hybrid")
JUDGED = ("full-ctx", "search-and-pick", "trial-and-err", "pipeline-bm25", "pipeline-dense", "pipeline-hybrid")
MEASURES = ("match@1", "match@3", "match@5", "match@15", "mrr", "recall@15")
SETS = ("tools", "models", "skills", "agents", "mcp-tools-closed", "multitool", "sparse-tools", "sparse-rotbench")
PROVENANCE = {
    "commit": "0123456789ab",
    "changed_files": 0,
    "machine": {"cpu": "Made-up CPU", "cores": 2, "memory_gb": 8, "system": "Linux"},
    "python": "3.11.7",
    "bootstrap": {"resamples": 1000, "seed": 1},
}


def an_estimate(mean: float, half: float = 0.03) -> dict[str, float]:
    return {"mean": round(mean, 4), "low": round(max(0, mean - half), 4), "high": round(min(1, mean + half), 4)}


def metrics(first: float) -> dict[str, Any]:
    return {name: an_estimate(min(0.99, first + 0.07 * i)) for i, name in enumerate(MEASURES)}


def sizes(name: str, i: int = 0) -> dict[str, Any]:
    return {
        "dataset": name, "data_sha256": "ab" * 32, "documents": 400 + 1_100 * i, "refused": 0, "queries": 60 + 400 * i,
        "unregistered_gold": i % 3,
    }  # fmt: skip


def systems(one: Any, judged: bool) -> dict[str, Any]:
    """The result of `one(i)` for every variant; the judged ones are not run if there is no judge."""
    made = {name: one(i) for i, name in enumerate(OFFLINE)}
    return made | {name: one(len(made) + i) if judged else {"not_run": NO_JUDGE} for i, name in enumerate(JUDGED)}


def main(judged: bool = True) -> dict[str, Any]:
    def one(shift: float) -> Any:
        return lambda i: {"metrics": metrics(0.2 + 0.04 * i + shift), "failed": int(i == 6)}

    return {
        "k": 15,
        "sets": {
            name: {**sizes(name, i), "systems": systems(one(0.02 * (i % 4)), judged)} for i, name in enumerate(SETS)
        },
    }


def language_model(judged: bool = True) -> dict[str, Any]:
    if not judged:
        return {"not_run": NO_JUDGE}
    arms = ("bm25", "hybrid", "pipeline-bm25", "pipeline-dense", "pipeline-hybrid")
    one = {"label_first": an_estimate(0.5), "grade_first": an_estimate(0.6), "ndcg@5": an_estimate(0.7)}
    hits = {arm: [int(arm.startswith("pipeline")), 1, 0] for arm in arms}
    test = {"gained": 3, "lost": 1, "p": 0.6}
    part = {"queries": 3, "raw": metrics(0.2), "enriched": metrics(0.3), "mcnemar": test, "wrong_places": [2, 3]}
    return {
        "recorded": True,
        "sets": {
            name: {
                "arms": {arm: {"queries": 3, "unjudged": 0.1, **one} for arm in arms},
                "by_label": hits,
                "by_grade": hits,
            }
            for name in SETS[:5]
        },
        "replies": {"queries": 60, "without": 0.4, "with": 0.5, "mcnemar": test},
        "writer": {"tools": {"registrations": 2, "written": part, "others": part}},
    }


def scale(judged: bool = True) -> dict[str, Any]:
    grid = [10, 25, 50, 100, 250, 500, 1_000, 2_000, 3_000, 4_000, 5_500, 7_271]

    def one(i: int) -> list[dict[str, Any]]:
        points = []
        for step, size in enumerate(grid):
            found, then = 1 - 0.035 * step, 0.9 - 0.012 * step - 0.03 * i
            factors = {"candidates": an_estimate(found, 0.05), "conditional": an_estimate(then, 0.06)}
            missing = dict.fromkeys(factors)
            points.append({"size": size, "match@1": an_estimate(found * then, 0.08), **(factors if i else missing)})
        return points

    crossover = {"single": "full-ctx", "two_stage": "pipeline-bm25", "size": 500} if judged else {"not_run": NO_JUDGE}
    return {
        "dataset": "tools", "queries": 100, "gold": 178, "sizes": grid, "systems": systems(one, judged),
        "crossover": crossover,
    }  # fmt: skip


def models(judged: bool = True) -> dict[str, Any]:
    one = {**metrics(0.4), "ms": {"total": {"p50": 700.0, "p95": 900.0}}} if judged else {"not_run": NO_JUDGE}
    names = ("search-and-pick", "pipeline-bm25", "pipeline-dense")
    return {"models": {"a-model": {"tools (1,000)": dict.fromkeys(names, one)}}}


def decided(judged: bool = True) -> dict[str, Any]:
    """An archived experiment: only its provenance is read."""
    return {}


ALL = {
    "language-model": language_model,
    "main": main, "scale": scale, "models": models,
} | dict.fromkeys(EXPERIMENTS.keys() - RUNNABLE.keys(), decided)  # fmt: skip


def all_results(judged: bool = True) -> dict[str, Any]:
    return {name: make(judged) for name, make in ALL.items()}


def write_results(folder: Path, results: Mapping[str, Any]) -> Path:
    """A folder of results files as experiments write them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, one in results.items():
        path = folder / f"experiment-{name}.json"
        path.write_text(json.dumps({**one, "seconds": 1.5, "provenance": PROVENANCE}), encoding="utf-8")
    return folder


def nothing_run(value: Any) -> Any:
    """The same results where every system that could be not run was not."""
    if isinstance(value, dict):
        return {
            key: {name: {"not_run": NO_JUDGE} for name in inner} if key == "systems" else nothing_run(inner)
            for key, inner in value.items()
        }
    return value
