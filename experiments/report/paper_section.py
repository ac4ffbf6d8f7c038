"""The section with the paper's tables that no experiment here repeats."""

from experiments.report.cells import PaperRow, Section, Table, number, percent
from mats.evaluation.results import Json

_PAPER_ONLY = (
    ("rerankers", "theirs-rerankers", "Four models as reranker", "reranker"),
    ("models", "theirs-models", "Three models throughout, Match@1", "model"),
    ("ablation", "theirs-ablation", "Raw and enriched on public registries", "profiles"),
    ("tool_tuned", "theirs-tool-tuned", "A retriever tuned for tools", "retriever"),
)
_SHORT = {"match@1": "Match@1", "match@3": "Match@3", "p50_ms": "p50, ms", "end_to_end": "Match@1, end to end"}


def paper_tables(paper: Json) -> Section:
    """The paper's tables that no experiment here repeats."""
    return Section(
        id="theirs",
        title="The paper's other tables",
        summary="Copied from the paper, on its data and by its models; not measured with this code. Shares "
        "are in per cent.",
        tables=tuple(_paper_table(paper[key], id, caption, what) for key, id, caption, what in _PAPER_ONLY),
    )


def _paper_table(known: Json, id: str, caption: str, what: str) -> Table:
    rows = [(row, name, one) for row, named in known["rows"].items() for name, one in named.items()]
    columns = tuple(dict.fromkeys(column for *_, one in rows for column in one))
    return Table(
        id=id,
        caption=f"{caption} ({known['table']})",
        head=("set", what, *(_SHORT.get(column, column) for column in columns)),
        rows=tuple(
            PaperRow((row, name, *(number(one[c]) if c.endswith("_ms") else percent(one.get(c)) for c in columns)))
            for row, name, one in rows
        ),
        labels=2,
    )
