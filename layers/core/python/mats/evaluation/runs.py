"""Runs as files in TREC's format, so that others can measure ours and we theirs."""

from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import ir_measures

from mats.domain.capability.capability import Id
from mats.domain.errors import Fault
from mats.evaluation.data.datasets import Dataset, DatasetInvalid
from mats.evaluation.measures import NAMES, Run, estimate, mcnemar, per_query


def write_run(path: Path, run: Run, tag: str) -> None:
    """Write `query Q0 id rank score tag` lines; ids are percent-encoded, because the format has no spaces in them."""
    lines = [
        f"{_word(query)} Q0 {_word(id)} {rank} {len(ids) - rank + 1} {tag}"
        for query, ids in run.items()
        for rank, id in enumerate(ids, start=1)
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read_run(path: Path) -> Run:
    """The ranked ids by query, by falling score.

    Raises DatasetInvalid: the file is missing, or no run in TREC's format.
    """
    scored: dict[str, list[tuple[float, Id]]] = {}
    try:
        for row in ir_measures.read_trec_run(str(path)):
            scored.setdefault(unquote(row.query_id), []).append((-row.score, Id(unquote(row.doc_id))))
    except (OSError, ValueError) as error:
        raise DatasetInvalid([Fault(str(path), f"is no TREC run: {error}")]) from error
    return {query: [id for _, id in sorted(pairs)] for query, pairs in scored.items()}


def compare_runs(before: Run, after: Run, dataset: Dataset) -> dict[str, Any]:
    """Every measure of two runs with the interval of the difference, and the paired test of first results.

    Raises DatasetInvalid: no query of the data set is in both.
    """
    queries = [query for query in dataset.queries if query.id in before and query.id in after]
    if not queries:
        raise DatasetInvalid([Fault(dataset.name, "has no query that is in both runs: name the set they belong to")])
    values = [per_query(run, queries) for run in (before, after)]
    measures = {}
    for name in NAMES:
        change = estimate(values[1][name] - values[0][name])
        measures[name] = {
            "before": float(values[0][name].mean()),
            "after": float(values[1][name].mean()),
            "difference": change.mean,
            "interval_95": [change.low, change.high],
        }
    first = asdict(mcnemar(values[0]["match@1"], values[1]["match@1"]))
    return {"dataset": dataset.name, "queries": len(queries), "measures": measures, "first_results": first}


def _word(text: str) -> str:
    return quote(text, safe="/:.-_")
