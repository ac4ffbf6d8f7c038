"""Write a judged set: corpus.jsonl, queries.jsonl, qrels.tsv; deterministic."""

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
    """The output folder is a file, or is not empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSet:
    """A judged set before it is written; rows by id."""

    corpus: Mapping[str, Mapping[str, Any]]
    queries: Mapping[str, Mapping[str, Any]]
    qrels: Mapping[tuple[str, str], int]
    """Grades by query and capability."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Counts of rows that were dropped or merged, by reason."""
    suspicions: tuple[str, ...] = ()
    """Defects of the local copy."""


def write(judged: JudgedSet, out: Path, *, force: bool = False) -> None:
    """Write a set to a folder.

    Raises:
        FolderInUse: the folder is not empty, and `force` is false.
    """
    if out.exists() and not out.is_dir():
        raise FolderInUse([Fault(str(out), "is a file: name a folder")])
    if not force and out.is_dir() and any(out.iterdir()):
        raise FolderInUse([Fault(str(out), "is not empty: choose another folder, or replace the set with --force")])
    out.mkdir(parents=True, exist_ok=True)
    texts = (_lines(judged.corpus), _lines(judged.queries), _tsv(judged.qrels))
    for name, text in zip(FILES, texts, strict=True):
        part = out / f"{name}.part"
        part.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        part.replace(out / name)
    for name in FILES:  # of an older set, which would be read instead
        (out / f"{name}.gz").unlink(missing_ok=True)


def _lines(rows: Mapping[str, Mapping[str, Any]]) -> str:
    return "".join(json.dumps({"_id": id, **rows[id]}, ensure_ascii=False) + "\n" for id in sorted(rows))


def _tsv(qrels: Mapping[tuple[str, str], int]) -> str:
    out = io.StringIO()
    rows = csv.writer(out, delimiter="\t", lineterminator="\n")
    rows.writerow(("query-id", "corpus-id", "score"))
    rows.writerows((query, document, qrels[query, document]) for query, document in sorted(qrels))
    return out.getvalue()
