"""The judged data sets of the experiments, by folder."""

from pathlib import Path

from mats.domain.capability.capability import Kind
from mats.domain.errors import Fault
from mats.evaluation.data.datasets import DatasetInvalid

SETS = ("tools", "models", "skills", "agents", "mcp-tools-closed", "multitool", "sparse-tools", "sparse-rotbench")
FOUR_KINDS = {Kind.TOOL: "tools", Kind.MODEL: "models", Kind.SKILL: "skills", Kind.AGENT: "agents"}


def sets_in(folder: Path) -> list[str]:
    """The names of the data sets in a folder: those of SETS, else all, in order.

    Raises:
        DatasetInvalid: it holds none.
    """
    names = sorted({file.parent.name for file in folder.glob("*/qrels.tsv*")})
    if not names:
        raise DatasetInvalid([Fault(str(folder), "holds no folder with corpus.jsonl, queries.jsonl and qrels.tsv")])
    return [name for name in SETS if name in names] or names
