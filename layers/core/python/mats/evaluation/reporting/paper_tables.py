"""The paper's tables that no experiment here repeats."""

from collections.abc import Iterable, Mapping
from typing import Any

from mats.evaluation.reporting.cells import Section, Table, number, percent
from mats.evaluation.reporting.results import Json

_OTHERS = (
    ("rerankers", "theirs-rerankers", "Four models as reranker", "reranker"),
    ("models", "theirs-models", "Three models throughout, Match@1", "model"),
    ("ablation", "theirs-ablation", "Raw and enriched on public registries", "profiles"),
    ("tool_tuned", "theirs-tool-tuned", "A retriever tuned for tools", "retriever"),
)
_SHORT = {"match@1": "Match@1", "match@3": "Match@3", "p50_ms": "p50, ms", "end_to_end": "Match@1, end to end"}


def paper_tables(paper: Json) -> Section:
    """A section with the paper's numbers."""
    tables = (_table(paper[key], id, caption, what) for key, id, caption, what in _OTHERS)
    return Section(
        id="theirs",
        title="The paper's other tables",
        summary="Copied from the paper, on its data and by its models; not measured with this code. Shares "
        "are in per cent.",
        tables=tuple(tables),
    )


def _table(known: Json, id: str, caption: str, what: str) -> Table:
    rows: Mapping[str, Mapping[str, Mapping[str, Any]]] = known["rows"]
    columns = tuple(dict.fromkeys(_columns(rows.values())))
    cells = tuple(
        (row, name, *(number(one[c]) if c.endswith("_ms") else percent(one.get(c)) for c in columns))
        for row, named in rows.items()
        for name, one in named.items()
    )
    return Table(
        id=id,
        caption=f"{caption} ({known['table']})",
        head=("set", what, *(_SHORT.get(column, column) for column in columns)),
        rows=cells,
        labels=2,
        paper_rows=frozenset(range(len(cells))),
    )


def _columns(rows: Iterable[Mapping[str, Mapping[str, Any]]]) -> Iterable[str]:
    return (column for named in rows for one in named.values() for column in one)
