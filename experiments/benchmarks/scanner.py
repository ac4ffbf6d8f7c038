"""Counts of what the scanner flags: of attacks and honest texts by corpus, and of real files by rule."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.data.sets import sets_in
from mats.domain.capability.registration import Registration
from mats.domain.capability.suspicion import Finding, Level, findings
from mats.evaluation.data.datasets import load
from mats.local.imports.importer import DryRunRegistry, Importer
from mats.local.imports.sources import open_sources
from mats.settings import Settings

_BY_WRITERS = Path(__file__).parents[1] / "data" / "poisoned.jsonl.gz"
_LOOK_ALIKES = Path(__file__).parents[2] / "tests" / "data" / "poisoned"
_SEEN = frozenset(("unit tests", *(f"writer {number}" for number in range(1, 7))))  # The rules were read against these
_HONEST = ("honest", "plain", "benign")


def scanner(data: Path, settings: Settings) -> dict[str, Any]:
    """Counts of flagged and of held registrations; real files are those below the folder `real` of the data."""
    corpora = dict[str, list[Registration]]()
    for name, row in _labelled(data):
        corpora.setdefault(name, []).append(Registration.parse({"namespace": "com.acme", "kind": "tool", **row}))
    honest = {f"set {name}": load(data / name).registrations for name in sets_in(data)}
    honest |= {f"real {folder.name}": list(_imported(folder)) for folder in sorted(data.glob("real/*"))}
    found = {name: list(map(findings, items)) for name, items in (*corpora.items(), *honest.items())}
    reasons = Counter(str(each) for name in honest for one in found[name] for each in one)
    return {
        "corpora": {name: _count(each) for name, each in found.items()},
        "reasons on honest": dict(reasons.most_common()),
    }


def _count(found: Sequence[Sequence[Finding]]) -> dict[str, int]:
    held = sum(any(each.level is not Level.NOTE for each in one) for one in found)
    return {"registrations": len(found), "flagged": sum(map(bool, found)), "held": held}


def _labelled(data: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The corpus and the registration of each labelled row."""
    for line in gzip.decompress(_BY_WRITERS.read_bytes()).decode().splitlines():
        row = json.loads(line)
        part, label = "seen" if row.pop("writer") in _SEEN else "kept back", row.pop("class")
        yield f"by writers, {part}: {'honest' if label in _HONEST else 'attacks'}", row
    for name in ("attacks", "honest"):
        for line in (_LOOK_ALIKES / f"{name}.jsonl").read_text("utf-8").splitlines():
            yield (
                f"look-alikes: {name}",
                {k: value for k, value in json.loads(line).items() if k not in ("class", "batch")},
            )
    if (public := data / "poisoned-tools" / "entries.jsonl").exists():
        for line in public.read_text("utf-8").splitlines():
            row = json.loads(line)
            texts = {key: row[key] for key in ("name", "description", "input_schema") if row[key]}
            yield f"public: {'honest' if row['label'] in _HONEST else 'attacks'}", {"name": row["_id"], **texts}


def _imported(folder: Path) -> Iterator[Registration]:
    """The registrations that an import makes of the files of a folder."""
    for number, file in enumerate(sorted(path for path in folder.rglob("*") if path.is_file())):
        registry = DryRunRegistry()
        Importer(registry).import_sources(open_sources(str(file), f"com.real{number}"))
        yield from map(Registration.parse, registry.items.values())
