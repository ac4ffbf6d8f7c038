"""Plain questions over the operations of GitHub's OpenAPI document, which npm's package `@octokit/openapi` carries.

The document is downloaded, not kept here. Half of the questions were written before anything was tuned (`first`), the
others after (`second`); each names the operations that answer it.
"""

import json
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mats.domain.capability import Id
from mats.domain.registration import Registration
from mats.evaluation.data.datasets import JudgedQuery
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.workbench import registry_of, without_timeouts
from mats.local.imports.formats import Source
from mats.local.imports.formats.openapi import map_value
from mats.settings import Settings

PACKAGE, DOCUMENT = "@octokit/openapi@23.0.2", "package/generated/api.github.com.json"
QUESTIONS = Path(__file__).with_name("github-questions.jsonl")
_CUTS = (1, 5, 15)


def openapi(data: Path, settings: Settings) -> dict[str, Any]:
    """Match@k of each half, and the seconds to map the document and to fill a registry from it.

    `data` is not read. Without npm, nothing is measured.
    """
    npm = shutil.which("npm")
    if npm is None:
        return {"not_run": "npm is not installed"}
    document = _download(npm)
    began = time.perf_counter()
    found = [mapped.registration for mapped in map_value(document, Source("openapi")) if mapped.registration]
    mapped_s = time.perf_counter() - began
    began = time.perf_counter()
    with registry_of(found, settings, encoder=cached_encoder(settings)) as local:
        filled_s = time.perf_counter() - began
        answer = shortlist_system(without_timeouts(local.discover))
        ranks = [_rank(answer(query).ranked, query.relevant) for query in _questions(found)]
    half = len(ranks) // 2
    return {
        "package": PACKAGE,
        "operations": len(found),
        "mapped_s": round(mapped_s, 2),
        "filled_s": round(filled_s, 1),
        "first": _matches(ranks[:half]),
        "second": _matches(ranks[half:]),
    }


def _download(npm: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", folder]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as package:
            file = package.extractfile(DOCUMENT)
            assert file is not None
            return json.load(file)


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
