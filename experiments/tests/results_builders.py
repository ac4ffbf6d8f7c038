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
            points.append(
                {
                    "size": size, "match@1": an_estimate(found * then, 0.08), "match@15": an_estimate(found, 0.05),
                    "candidates": an_estimate(found, 0.05) if i else None,
                    "conditional": an_estimate(then, 0.06) if i else None,
                }
            )  # fmt: skip
        return points

    crossover = {"single": "full-ctx", "two_stage": "pipeline-bm25", "size": 500} if judged else {"not_run": NO_JUDGE}
    return {
        "dataset": "tools", "queries": 100, "gold": 178, "sizes": grid, "systems": systems(one, judged),
        "crossover": crossover,
    }  # fmt: skip


def decomposition(judged: bool = True) -> dict[str, Any]:
    def one(i: int) -> dict[str, Any]:
        return {
            "candidates": an_estimate(0.6 + 0.03 * i), "conditional": an_estimate(0.5 + 0.03 * i) if i else None,
            "match@1": an_estimate((0.6 + 0.03 * i) * (0.5 + 0.03 * i)), "misses_at_retrieval": 0.61,
            "categories": {"retrieval_miss": 61, "picked_another": 30, "several_gold": 9},
        }  # fmt: skip

    return {
        "k": 15,
        "sets": {
            name: {
                **sizes(name, i),
                "systems": {
                    s: r for s, r in systems(one, judged).items() if s[:4] not in ("rege", "full", "sear", "tria")
                },
            }
            for i, name in enumerate(SETS)
        },
    }


def enrichment(judged: bool = True) -> dict[str, Any]:
    def level(raw: float, gain: float) -> dict[str, Any]:
        if not judged:
            return {"raw": metrics(raw), "enriched": {"not_run": NO_JUDGE}, "mcnemar": None, "empty_summaries": None}
        return {
            "raw": metrics(raw), "enriched": metrics(raw + gain), "mcnemar": {"gained": 41, "lost": 3, "p": 0.0000001},
            "empty_summaries": 867,
        }  # fmt: skip

    fields = {
        name: {"metrics": metrics(0.4), "mcnemar": {"gained": 5, "lost": 9, "p": 0.42}}
        for name in ("description", "parameters")
    }
    levels = {"full": level(0.5, 0.03), "hint": level(0.46, 0.06), "name-only": level(0.1, 0.2)}
    return {
        "dataset": "tools", "variant": "hybrid", "pool": 1_000, "queries": 431, "levels": levels, "reranked": levels,
        "ablation": {"tools, 1,000": level(0.5, 0.0)},
        "added_fields": fields if judged else {"not_run": NO_JUDGE},
    }  # fmt: skip


def signals(judged: bool = True) -> dict[str, Any]:
    without: dict[str, Any] = {name: metrics(0.5) for name in ("nothing", "quality", "bm25")}
    without |= {name: metrics(0.45) if judged else {"not_run": NO_JUDGE} for name in ("intent", "llm")}
    test = {"gained": 90, "lost": 40, "p": 0.0004}
    return {
        "sample": {
            "queries": 142,
            "without": without | {"quality and intent": metrics(0.48)},
            "reranker": "a-model",
            "four_against_two": {"match@1": test, "match@3": test},
        },
    }


def efficiency(judged: bool = True) -> dict[str, Any]:
    def one(i: int) -> dict[str, Any]:
        ms = {"encode": {"p50": 4.1, "p95": 6.3}, "lexical": {"p50": 1.2, "p95": 2.9}, "neural": {"p50": 1.9, "p95": 3}}
        if i == 3:
            ms["lexical"] = {"p50": 0.0, "p95": 0.0}
        if i > len(OFFLINE):
            ms["rerank"] = {"p50": 740.0, "p95": 1_350.5}
        ms["total"] = {"p50": sum(t["p50"] for t in ms.values()), "p95": sum(t["p95"] for t in ms.values())}
        return {
            "match@1": 0.3 + 0.02 * i, "calls": 1.0, "input_tokens": 1_587.3 if i > len(OFFLINE) else 0.0,
            "output_tokens": 75.0, "usd_per_1000": 0.066 if i > len(OFFLINE) else None, "ms": ms,
        }  # fmt: skip

    return {"dataset": "tools", "sets": {"tools": {"systems": systems(one, judged)}}}


def models(judged: bool = True) -> dict[str, Any]:
    one = {**metrics(0.4), "ms": {"total": {"p50": 700.0, "p95": 900.0}}} if judged else {"not_run": NO_JUDGE}
    names = ("search-and-pick", "pipeline-bm25", "pipeline-dense")
    return {"models": {"a-model": {"tools (1,000)": dict.fromkeys(names, one)}}}


def decided(judged: bool = True) -> dict[str, Any]:
    """An archived experiment: only its provenance is read."""
    return {}


ALL = {
    "language-model": language_model,
    "main": main, "scale": scale, "decomposition": decomposition, "enrichment": enrichment, "signals": signals,
    "efficiency": efficiency, "models": models,
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
