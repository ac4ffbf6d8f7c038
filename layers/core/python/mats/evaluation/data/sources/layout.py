"""Our layout, written: corpus.jsonl, queries.jsonl, qrels.tsv, the same bytes for the same copy."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mats.domain.errors import Fault, Invalid

FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")


class FolderInUse(Invalid):
    """Something is where a set should be written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A set before it is written; rows by their ids."""

    corpus: Mapping[str, Mapping[str, Any]]
    queries: Mapping[str, Mapping[str, Any]]
    qrels: Mapping[tuple[str, str], int]
    """Grades by query and capability."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What was not taken over as it stands, by reason: nothing is dropped silently."""
    suspicions: tuple[str, ...] = ()
    """What is wrong with the copy itself."""


def write(judged: Judged, out: Path, *, force: bool = False) -> None:
    """Write a set into a folder.

    Raises:
        FolderInUse: the folder holds something, and `force` does not say to write over it.
    """
    if out.exists() and not out.is_dir():
        raise FolderInUse([Fault(str(out), "is a file")])
    if not force and out.is_dir() and any(out.iterdir()):
        raise FolderInUse([Fault(str(out), "is not empty; --force writes over the set that is there")])
    out.mkdir(parents=True, exist_ok=True)
    texts = (_lines(judged.corpus), _lines(judged.queries), _tsv(judged.qrels))
    for name, text in zip(FILES, texts, strict=True):
        part = out / f"{name}.part"
        part.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        part.replace(out / name)
    for name in FILES:  # an older, packed set would be another one
        (out / f"{name}.gz").unlink(missing_ok=True)


def _lines(rows: Mapping[str, Mapping[str, Any]]) -> str:
    return "".join(json.dumps({"_id": id, **rows[id]}, ensure_ascii=False) + "\n" for id in sorted(rows))


def _tsv(qrels: Mapping[tuple[str, str], int]) -> str:
    out = io.StringIO()
    rows = csv.writer(out, delimiter="\t", lineterminator="\n")
    rows.writerow(("query-id", "corpus-id", "score"))
    rows.writerows((query, document, qrels[query, document]) for query, document in sorted(qrels))
    return out.getvalue()
