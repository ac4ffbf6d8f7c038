"""GitHub's OpenAPI document, which npm's package `@octokit/openapi` carries: imported, searched and kept in step.

The document is downloaded, not kept here. Half of the questions were written before anything was tuned (`first`), the
others after (`second`); each names the operations that answer it.
"""

import json
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from experiments.benchmarks.runner import MatsCommand
from mats.bootstrap.local import DATABASE, local_system
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.protocols.protocol import Source
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.catalogue import shortlist_system
from mats.evaluation.systems.workbench import without_timeouts
from mats.local.imports.formats import map_value
from mats.settings import Settings

PACKAGE, DOCUMENT = "@octokit/openapi@23.0.2", "package/generated/api.github.com.json"
QUESTIONS = Path(__file__).with_name("github-questions.jsonl")
ENTRIES = 2_000  # Of the source that is synced without a change
_CUTS = (1, 5, 15)


def openapi(data: Path, settings: Settings) -> dict[str, Any]:
    """Seconds of the import, raw and complete, Match@k of each half of the questions, and seconds of a sync.

    `data` is not read. Without npm, nothing is measured.
    """
    npm = shutil.which("npm")
    if npm is None:
        return {"not_run": "npm is not installed"}
    with tempfile.TemporaryDirectory(prefix="mats-bench-") as folder:
        document = _download(npm, Path(folder))
        found = [
            mapped.registration
            for mapped in map_value(json.loads(document.read_bytes()), Source("openapi"))
            if mapped.registration
        ]
        with_encoder = replace(settings, home=Path(folder, "imported"), writer_model="none", rerank_model="none")
        imported = _import(document, with_encoder)
        answers = _answers(found, with_encoder)
        synced = _sync(found, Path(folder), replace(with_encoder, home=Path(folder, "synced"), encoder="none"))
    return {"package": PACKAGE, "operations": len(found), "import": imported, **answers, "sync": synced}


def _download(npm: str, folder: Path) -> Path:
    command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as package:
        file = package.extractfile(DOCUMENT)
        assert file is not None
        document = folder / "api.github.com.json"
        document.write_bytes(file.read())
    return document


def _import(document: Path, settings: Settings) -> dict[str, Any]:
    times = MatsCommand(settings, "import", str(document)).finish_import()
    return {
        "document_bytes": document.stat().st_size,
        "findable_s": times["findable_s"],
        "complete_s": times["complete_s"],
        "registry_bytes": (settings.home / DATABASE).stat().st_size,
    }


def _answers(found: Sequence[Registration], settings: Settings) -> dict[str, Any]:
    with closing(local_system(settings, create=False)) as local:
        answer = shortlist_system(without_timeouts(local.discover))
        ranks = [_rank(answer(query).ranked, query.relevant) for query in _questions(found)]
    half = len(ranks) // 2
    return {"questions": _matches(ranks), "first": _matches(ranks[:half]), "second": _matches(ranks[half:])}


def _sync(found: Sequence[Registration], folder: Path, settings: Settings) -> dict[str, Any]:
    """A source of the operations, some of them under a second name, synced again without a change."""
    source = folder / "source.jsonl"
    numbered = enumerate(islice(cycle(found), ENTRIES))
    rows = ({**one.item(), "name": f"{one.name[:190]} {number}"} for number, one in numbered)
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    MatsCommand(settings, "source", "add", str(source), "--name", "bench").finish()
    MatsCommand(settings, "sync").finish()
    before = _writes(settings.home)
    outcome, seconds = MatsCommand(settings, "sync").finish()
    (synced,) = outcome["sources"]
    assert synced["unchanged"] == ENTRIES
    return {"entries": ENTRIES, "seconds": round(seconds, 2), "writes": _writes(settings.home) - before}


def _writes(home: Path) -> int:
    """Changes announced and entries written to the index, ever."""
    with closing(sqlite3.connect(home / DATABASE)) as connection:
        announced = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()[0]
        return int(announced + connection.execute("SELECT change FROM counter").fetchone()[0])


def _questions(registrations: Sequence[Registration]) -> list[JudgedQuery]:
    ids = {registration.name: registration.id for registration in registrations}
    rows = [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]
    return [
        JudgedQuery(str(number), row["text"], frozenset(ids[name] for name in row["operations"]))
        for number, row in enumerate(rows)
    ]


def _rank(ranked: Sequence[Id], relevant: frozenset[Id]) -> int:
    """Of the first relevant one, from 1; 0 if there is none."""
    return next((place for place, id in enumerate(ranked, start=1) if id in relevant), 0)


def _matches(ranks: Sequence[int]) -> dict[str, float]:
    return {f"match@{k}": round(100 * sum(0 < rank <= k for rank in ranks) / len(ranks), 1) for k in _CUTS}
