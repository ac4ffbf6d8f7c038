"""Judged data sets in BEIR's layout: `corpus.jsonl`, `queries.jsonl`, `qrels.tsv`, each plain or `.gz`."""

import csv
import gzip
import hashlib
import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault, Invalid, RegistrationInvalid
from mats.evaluation.data.beir import item_of
from mats.resources import resource

EXAMPLES = resource("examples")
_GOLDEN, TRANSLATED, TASKS = "queries.jsonl", "queries-translated.jsonl", "queries-tasks.jsonl"
"""The queries of the sample: golden ones, some of them and new ones in twelve languages, and tasks of several steps."""


class DatasetInvalid(Invalid):
    """The folder does not hold a judged data set."""


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    id: str
    text: str
    relevant: frozenset[Id]
    source: str = ""  # The upstream source of the query


@dataclass(frozen=True, slots=True)
class Dataset:
    """Registrations with judged queries. Gold that is not registered stays in the qrels and counts as missed."""

    name: str
    registrations: Sequence[Registration]
    queries: Sequence[JudgedQuery]
    refused: Mapping[str, str]  # The faults of rows that are no registrations
    digest: str  # SHA-256 over the uncompressed files
    trust: Mapping[Id, int] = field(default_factory=dict)  # Trust by id, where the set has any
    absent: Sequence[JudgedQuery] = ()  # Queries that nothing here serves, by the judgement: all of their grades are 0
    unasked: Sequence[str] = ()  # Ids of queries that are judged, and not among the queries

    @property
    def unregistered_gold(self) -> dict[Id, str]:
        """Gold that is not registered, with the source of a query it belongs to."""
        registered = {registration.id for registration in self.registrations}
        return {id: query.source for query in self.queries for id in sorted(query.relevant) if id not in registered}


def load(folder: Path) -> Dataset:
    """Read a data set. Raises DatasetInvalid: a file is missing or cannot be read; the message names the line."""
    digest = hashlib.sha256()
    rows = list(_json_lines("corpus.jsonl", _text(folder, "corpus.jsonl", digest)))
    queries_by_id = {}
    for number, row in enumerate(_json_lines("queries.jsonl", _text(folder, "queries.jsonl", digest)), start=1):
        if not (isinstance(row.get("_id"), str) and isinstance(row.get("text"), str)):
            raise DatasetInvalid([Fault(f"queries.jsonl, query {number}", "needs `_id` and `text` as strings")])
        queries_by_id[row["_id"]] = row
    ids: dict[str, Id] = {}
    registrations: list[Registration] = []
    refused: dict[str, str] = {}
    for row in rows:
        if row.keys() in ({"trust"}, {"held"}):
            continue  # of `mats export`: measured without trust, as registered
        name = row.get("_id") or f"{row.get('namespace', 'no namespace')}/{row.get('name', 'no name')}"
        try:
            registration = Registration.parse({k: row[k] for k in row if k != "_id"} if "kind" in row else item_of(row))
        except RegistrationInvalid as error:
            refused[name] = str(error)
            continue
        ids[name] = registration.id
        registrations.append(registration)
    gold: dict[str, set[Id]] = {}
    for query, document, grade in _judgements(_text(folder, "qrels.tsv", digest)):
        gold.setdefault(query, set()).update([ids.get(document, Id(document))] if grade > 0 else ())
    unasked = sorted(gold.keys() - queries_by_id.keys())
    queries = [
        JudgedQuery(query, queries_by_id[query]["text"], frozenset(relevant), queries_by_id[query].get("source", ""))
        for query, relevant in sorted(gold.items())
        if query in queries_by_id
    ]
    served, absent = ([one for one in queries if bool(one.relevant) is has] for has in (True, False))
    return Dataset(
        folder.resolve().name, registrations, served, refused, digest.hexdigest(), absent=absent, unasked=unasked
    )


def load_judged(folder: Path) -> Dataset:
    """Read a data set to measure on. Raises DatasetInvalid: also if it has no judged query."""
    found = load(folder)
    if not (found.queries or found.absent):
        message = "has no judged query: name in qrels.tsv ids of queries.jsonl, each with what is relevant to it"
        raise DatasetInvalid([Fault("", f"{folder} {message}")])
    return found


def sample(asked: str = _GOLDEN) -> Dataset:
    """The sample registry with the queries of this file; some of them have no relevant capability."""
    texts = [(EXAMPLES / name).read_text(encoding="utf-8") for name in ("registry.jsonl", "trust.jsonl", asked)]
    registry, trust, queries = ([json.loads(line) for line in text.splitlines() if line] for text in texts)
    return Dataset(
        name=EXAMPLES.name,
        registrations=[Registration.parse(item) for item in registry],
        queries=[JudgedQuery(row["id"], row["text"], frozenset(map(Id, row["relevant"]))) for row in queries],
        refused={},
        digest=hashlib.sha256("".join(texts).encode()).hexdigest(),
        trust={Id(row["id"]): int(row["trust"]) for row in trust},
    )


def _text(folder: Path, name: str, digest: "hashlib._Hash") -> str:
    plain, packed = folder / name, folder / f"{name}.gz"
    try:
        data = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    except (OSError, EOFError) as error:
        raise DatasetInvalid(
            [Fault(str(folder), f"holds no readable {name} or {name}.gz: name the folder of a data set")]
        ) from error
    digest.update(data)
    return data.decode("utf-8", "replace")


def _json_lines(name: str, text: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DatasetInvalid([Fault(f"{name}, line {number}", f"is not JSON: {error}")]) from error
            if not isinstance(row, dict):
                raise DatasetInvalid([Fault(f"{name}, line {number}", "must hold a JSON object")])
            yield row


def _judgements(text: str) -> Iterator[tuple[str, str, int]]:
    """Query, document and grade of each row; the first one is a header if its last cell has no digit."""
    for number, row in enumerate(csv.reader(io.StringIO(text), delimiter="\t"), start=1):
        if row and (number > 1 or any(map(str.isdigit, row[-1]))):
            try:
                query, document, grade = row
                yield query, document, int(grade)
            except ValueError as error:
                message = "needs query, document and a whole number as grade, separated by tabs"
                raise DatasetInvalid([Fault(f"qrels.tsv, line {number}", message)]) from error


_FEW = 5  # Sources with fewer labels are not judged


@dataclass(frozen=True, slots=True, kw_only=True)
class Defects:
    """Counts of one source of a set; each label counts once."""

    source: str
    queries: int
    labels: int
    unregistered: int  # Labels that are not in the registry
    unanswerable: int  # Queries without a registered label
    shared: int  # The largest group of labels with the same name and description; 0 if there is none

    @property
    def suspicions(self) -> tuple[str, ...]:
        """Reasons not to trust the source; empty if there are none."""
        reasons = []
        if self.labels >= _FEW and 2 * self.shared > self.labels:
            reasons.append(f"{self.shared:,} of {self.labels:,} labels share one document")
        if 2 * self.unregistered > self.labels:
            reasons.append(f"{self.unregistered:,} of {self.labels:,} labels are not in the registry")
        return tuple(reasons)


def defects(dataset: Dataset) -> tuple[Defects, ...]:
    described = {r.id: (r.name, r.description) for r in dataset.registrations}
    by_source = defaultdict(list)
    for query in dataset.queries:
        by_source[query.source].append(query)
    found = []
    for source, queries in sorted(by_source.items()):
        labels = {id for query in queries for id in query.relevant}
        known = Counter(described[id] for id in labels if id in described)
        shared = max(known.values(), default=0)
        found.append(
            Defects(
                source=source or dataset.name,
                queries=len(queries),
                labels=len(labels),
                unregistered=len(labels) - known.total(),
                unanswerable=sum(query.relevant.isdisjoint(described) for query in queries),
                shared=shared if shared > 1 else 0,
            )
        )
    return tuple(found)


FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")


class FolderInUse(Invalid):
    """The output folder is a file, or is not empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSet:
    """A judged set before it is written; rows by id."""

    corpus: Mapping[str, Mapping[str, Any]]
    queries: Mapping[str, Mapping[str, Any]]
    qrels: Mapping[tuple[str, str], int]  # Grades by query and capability
    left_out: Mapping[str, int] = field(default_factory=dict)  # Counts of rows that were dropped or merged, by reason
    suspicions: tuple[str, ...] = ()  # Defects of the local copy


def write(judged: JudgedSet, out: Path, *, force: bool = False) -> None:
    """Write a set to a folder. Raises FolderInUse: the folder is not empty, and `force` is false."""
    if out.exists() and not out.is_dir():
        raise FolderInUse([Fault(str(out), "is a file: name a folder")])
    if not force and out.is_dir() and any(out.iterdir()):
        raise FolderInUse([Fault(str(out), "is not empty: choose another folder, or replace the set with --force")])
    out.mkdir(parents=True, exist_ok=True)
    qrels = io.StringIO()
    table = csv.writer(qrels, delimiter="\t", lineterminator="\n")
    table.writerow(("query-id", "corpus-id", "score"))
    table.writerows((query, document, judged.qrels[query, document]) for query, document in sorted(judged.qrels))
    texts = (_lines(judged.corpus), _lines(judged.queries), qrels.getvalue())
    for name, text in zip(FILES, texts, strict=True):
        part = out / f"{name}.part"
        part.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        part.replace(out / name)
    for name in FILES:  # of an older set, which would be read instead
        (out / f"{name}.gz").unlink(missing_ok=True)


def _lines(rows: Mapping[str, Mapping[str, Any]]) -> str:
    return "".join(json.dumps({"_id": id, **rows[id]}, ensure_ascii=False) + "\n" for id in sorted(rows))
