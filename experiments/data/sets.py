"""The judged data sets of the experiments, by folder."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from mats.domain.capability.capability import Kind
from mats.domain.errors import Fault
from mats.evaluation.data.datasets import Dataset, DatasetInvalid, load

SETS = ("tools", "models", "skills", "agents", "mcp-tools-closed", "multitool", "sparse-tools", "sparse-rotbench")
FOUR_KINDS = {Kind.TOOL: "tools", Kind.MODEL: "models", Kind.SKILL: "skills", Kind.AGENT: "agents"}

OPERATIONS = Path(__file__).parent / "operations"
VENDORS = {
    "box": "Box", "discord": "Discord", "xero": "Xero", "digitalocean": "DigitalOcean", "intercom": "Intercom",
    "slack": "Slack",
}  # fmt: skip
"""Each with the name of its product."""


def operations(half: Literal["open", "kept"]) -> Iterator[Dataset]:
    """The operations of each vendor, with the requests of one half."""
    for vendor in (load(OPERATIONS / name) for name in VENDORS):
        yield replace(vendor, queries=[query for query in vendor.queries if query.source.endswith(half)])


def sets_in(folder: Path) -> list[str]:
    """The names of the data sets in a folder: those of SETS, else all, in order.

    Raises:
        DatasetInvalid: it holds none.
    """
    names = sorted({file.parent.name for file in folder.glob("*/qrels.tsv*")})
    if not names:
        raise DatasetInvalid([Fault(str(folder), "holds no folder with corpus.jsonl, queries.jsonl and qrels.tsv")])
    return [name for name in SETS if name in names] or names
