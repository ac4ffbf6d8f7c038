"""Benchmark of peers: other searches over the same sets, queries and vectors, in one run with ours."""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from experiments.benchmarks.runner import percentiles
from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.profile import profile_of
from mats.domain.text.words import LUCENE_STOP_WORDS, words
from mats.evaluation.data.datasets import Dataset, load
from mats.evaluation.measures import SEED, Run, estimate, mcnemar, per_query
from mats.evaluation.systems.base import LONGEST_QUERY, run_of
from mats.evaluation.systems.catalogue import VARIANTS
from mats.evaluation.systems.models import Models
from mats.evaluation.systems.score import estimate_json
from mats.evaluation.systems.workbench import Workbench
from mats.settings import Settings

SETS = ("tools", "agents", "skills", "mcp-tools-closed", "livemcp-tasks", "mcp-golden")
_MOST = 300  # Queries of a set, drawn with a seed: one of the peers is slow over the tools
_OURS = {"bm25": "rank-bm25", "lexical": "mats-words", "hybrid": "mats"}
_MEASURES = ("match@1", "match@15", "recall@5", "all@15")
_PYTHON = Path(sys.prefix) / ".integrations" / "bin" / "python"


def peers(data: Path, settings: Settings) -> dict[str, Any]:
    """Quality and latency of ours, of plain BM25, of a plain vector store, and of FastMCP's searches."""
    if not _PYTHON.exists():
        raise SystemExit(f"no peers in {_PYTHON.parents[1]}: run `make .venv/.integrations/.ready`")
    models, sets, versions = Models(settings), {}, {"rank-bm25": f"rank-bm25 {version('rank-bm25')}"}
    for name in (name for name in SETS if (data / name).is_dir()):
        dataset = load(data / name)
        drawn = random.Random(SEED).sample(list(dataset.queries), min(_MOST, len(dataset.queries)))
        queries = [replace(query, text=query.text[:LONGEST_QUERY]) for query in drawn]
        dataset = replace(dataset, queries=sorted(queries, key=lambda query: query.id))
        sys.stderr.write(f"{name}: {len(dataset.queries)} queries\n")
        runs, taken = _ours(dataset, models)
        for system, one in _theirs(dataset, models).items():
            ids = [registration.id for registration in dataset.registrations]
            runs[system] = {
                q.id: [ids[row] for row in rows] for q, rows in zip(dataset.queries, one["ranked"], strict=True)
            }
            taken[system], versions[system] = one["ms"], one["version"]
        sets[name] = _json(dataset, runs, taken)
    return {"versions": versions, "sets": sets}


def _ours(dataset: Dataset, models: Models) -> tuple[dict[str, Run], dict[str, list[float]]]:
    with Workbench(dataset=dataset, models=models) as bench:
        answers = {name: VARIANTS[variant].answers(bench) for variant, name in _OURS.items()}
    taken = {name: [answer.took_ms["total"] for answer in one.values()] for name, one in answers.items()}
    return {name: run_of(one) for name, one in answers.items()}, taken


def _theirs(dataset: Dataset, models: Models) -> Mapping[str, Any]:
    """The rows that peers rank, and milliseconds; those of the vector store are with the encoding of the query."""
    encoder = models.encoder
    if encoder is None:
        raise SystemExit("no encoder to compare with: unset MATS_ENCODER=none")
    texts = [embedded_text(profile_of(one, origin="bench")) for one in dataset.registrations]
    encoded, encoding_ms = [], []
    for query in dataset.queries:
        began = time.perf_counter()
        encoded.append(encoder.encode_query(query.text))
        encoding_ms.append(1_000 * (time.perf_counter() - began))
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        documents = np.array([each or [] for each in encoder.encode_documents(texts)], np.float32)
        np.savez(file, documents=documents, queries=np.array(encoded, np.float32))
        file.flush()
        asked = {
            "documents": [
                {"name": one.name, "text": one.description, "schema": one.input_schema or {}}
                for one in dataset.registrations
            ],
            "queries": [query.text for query in dataset.queries],
            "patterns": [_pattern(query.text) for query in dataset.queries],
            "k": models.settings.k,
            "vectors": file.name,
        }
        ran = subprocess.run(
            [_PYTHON, "-P", Path(__file__).with_name("peers_process.py")],
            input=json.dumps(asked),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    results: dict[str, Any] = json.loads(ran.stdout)
    results["faiss"]["ms"] = [sum(pair) for pair in zip(results["faiss"]["ms"], encoding_ms, strict=True)]
    return results


def _pattern(query: str) -> str:
    """A pattern that a model might send for a request: its words without stop words, any of which may match."""
    return "|".join(dict.fromkeys(word for word in words(query) if word not in LUCENE_STOP_WORDS))[:1_000].rstrip("|")


def _json(dataset: Dataset, runs: Mapping[str, Run], taken: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    values = {name: per_query(run, dataset.queries) for name, run in runs.items()}
    return {
        "documents": len(dataset.registrations),
        "queries": len(dataset.queries),
        "data_sha256": dataset.digest,
        "systems": {
            name: {
                **{measure: estimate_json(estimate(one[measure])) for measure in _MEASURES},
                "against_mats": asdict(mcnemar(one["match@1"], values["mats"]["match@1"])),
                "ms": percentiles(taken[name]),
            }
            for name, one in values.items()
        },
    }
