"""What semantic search loses when vectors are cut to a quarter of their components, as 256 are of Titan's 1,024.

The encoder here was not trained to be cut, so two cuts stand for what such training does: the first components as they
are, which is the worst, and principal axes that were fitted on other sets.
"""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mats.domain.profile.index_fields import embedded_text
from mats.domain.profile.profile import profile_of
from mats.evaluation.data.datasets import Dataset, load
from mats.evaluation.measures import SEED, estimate
from mats.evaluation.systems.models import cached_encoder
from mats.ports import Encoder
from mats.settings import Settings

_SETS = ("tools", "skills", "models", "agents")
_QUERIES = 500
_SHARE = 4
_DEPTHS = (1, 15)

Matrix = npt.NDArray[np.float32]


def cut_vectors(data: Path, settings: Settings) -> dict[str, Any]:
    """Match@1 and @15 of semantic search alone, with all components and with a quarter of them."""
    encoder = cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder: unset MATS_ENCODER=none")
    sets = {name: load(data / name) for name in _SETS}
    vectors = {name: _documents(one, encoder) for name, one in sets.items()}
    kept = encoder.dimension // _SHARE
    results: dict[str, Any] = {"encoder": encoder.name, "components": encoder.dimension, "kept": kept}
    for name, one in sets.items():
        others = np.vstack([each for other, each in vectors.items() if other != name])
        cuts = {"all": np.eye(encoder.dimension), "first": np.eye(encoder.dimension)[:, :kept]}
        cuts["principal"] = np.linalg.eigh(others.T @ others)[1][:, ::-1][:, :kept]
        results[name] = _matches(one, encoder, vectors[name], cuts)
    return results


def _documents(dataset: Dataset, encoder: Encoder) -> Matrix:
    texts = [embedded_text(profile_of(each, origin="")) for each in dataset.registrations]
    empty = [0.0] * encoder.dimension
    return np.array([empty if vector is None else vector for vector in encoder.encode_documents(texts)], np.float32)


def _matches(dataset: Dataset, encoder: Encoder, documents: Matrix, cuts: Mapping[str, Any]) -> dict[str, Any]:
    chosen = np.random.default_rng(SEED).permutation(len(dataset.queries))[:_QUERIES]
    asked = [dataset.queries[number] for number in chosen]
    queries = np.array([encoder.encode_query(query.text) for query in asked], np.float32)
    ids = [each.id for each in dataset.registrations]
    results: dict[str, Any] = {"queries": len(asked)}
    for name, cut in cuts.items():
        best = np.argsort(-(_cut(queries, cut) @ _cut(documents, cut).T), axis=1, kind="stable")[:, : max(_DEPTHS)]
        found = [[ids[at] in query.relevant for at in row] for query, row in zip(asked, best, strict=True)]
        hits: Matrix = np.array(found, np.float32)
        results[name] = {
            f"match@{n}": asdict(estimate(np.asarray(hits[:, :n].max(axis=1), np.float64))) for n in _DEPTHS
        }
    return results


def _cut(vectors: Matrix, cut: Any) -> Matrix:
    kept = vectors @ cut
    return np.asarray(kept / np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1e-9), np.float32)
