"""Benchmark of a large registry, without a reranker."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from experiments.data.enlarge import ComposedEncoder, enlarge, is_original
from experiments.data.sets import sets_in
from mats.evaluation.data.datasets import load
from mats.evaluation.systems.base import LONGEST_QUERY
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings

_DOCUMENTS, _QUERIES = 100_000, 1_000


def scale(data: Path, settings: Settings) -> dict[str, Any]:
    """Start, latency and resident memory of a process that serves 100,000 registrations, and what its searches miss."""
    originals = [each for name in sets_in(data) for each in load(data / name).registrations]
    registrations = enlarge(originals, _DOCUMENTS)
    encoder = cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder to measure: unset MATS_ENCODER=none")
    sys.stderr.write(f"encoding {sum(map(is_original, registrations)):,} texts that are not in the cache yet\n")
    composed = ComposedEncoder.of(encoder, registrations)
    texts = [query.text[:LONGEST_QUERY] for query in load(data / "tools").queries[:_QUERIES]]
    with (
        typer.progressbar(length=_DOCUMENTS, label="registering", file=sys.stderr) as bar,
        registry_of(registrations, settings, encoder=composed, progress=bar.update) as built,
    ):
        served = subprocess.run(
            [sys.executable, "-m", "experiments.benchmarks.serving"],
            env={**os.environ, **replace(settings, home=built.settings.home).to_env()},
            input=json.dumps(texts),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    count = sum(map(is_original, registrations))
    return {"documents": _DOCUMENTS, "originals": count, **json.loads(served.stdout)}
