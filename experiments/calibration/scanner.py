"""Fit the weights of `mats.domain.capability.steering`, and measure them on registrations that they were not fitted to.

    python -m experiments.calibration.scanner --data ../shared/data

An attack is a bag of windows of which at least one steers (multiple-instance learning): logistic regression over all
windows, then again over the highest scored window of each attack, the lowest as honest, and the highest of the honest
registrations. Four times a quarter of the writers and of the namespaces is left out; their scores give the threshold.
"""

import argparse
import gzip
import json
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from experiments.data.sets import sets_in
from mats.domain.capability import steering
from mats.domain.capability.registration import Registration
from mats.domain.capability.steering import REASONS, SLOTS, SLOTS_OF_REASON, decoded_forms, windows_of, without_mentions
from mats.domain.capability.suspicion import CLASSES, visible_forms
from mats.domain.text.fence import visible
from mats.domain.text.words import every_text
from mats.evaluation.data.datasets import load, sample
from mats.evaluation.results import write_results
from mats.resources import REPOSITORY

_WRITTEN = Path(__file__).parents[1] / "data" / "poisoned.jsonl.gz"
_BATCHES = REPOSITORY / "tests" / "data" / "poisoned"
_HELD_BACK = 8  # Batches from this one on are never fitted to
_CLASSES = [CLASSES[reason] for reason in REASONS]
_HONEST, _PLAIN = -1, -2  # What resembles an attack, and terse texts such as attacks begin with
_LABELS = {name: label for label, name in enumerate(_CLASSES)} | {"plain": _PLAIN}
_FOLDS, _ROUNDS, _SHOWN = 4, 6, 25_000
_FALSE = 0.05  # Share of hard negatives above the threshold
_PENALTY = 0.01
_WEIGHT_OF_HARD = 3.0  # Of an attack, and of an honest registration that resembles one, beside the honest of the sets

Floats = npt.NDArray[np.float64]


class Bags(NamedTuple):
    """Registrations: the features of all windows, where those of each begin, and a group to leave out together."""

    windows: sparse.csr_matrix
    starts: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64]
    classes: npt.NDArray[np.int64]

    def best(self, scores: Floats) -> Floats:
        """The highest score of each registration."""
        bounds = zip(self.starts, self.starts[1:], strict=False)
        return np.array([scores[a:b].max() if b > a else -np.inf for a, b in bounds])

    def peaks(self, scores: Floats) -> npt.NDArray[np.bool_]:
        """True for the window of each registration that has the highest score."""
        return scores >= np.repeat(self.best(scores), np.diff(self.starts))

    def select(self, chosen: npt.NDArray[np.bool_]) -> "Bags":
        sizes = np.diff(self.starts)
        rows = np.repeat(chosen, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes[chosen])])
        return Bags(self.windows[rows], starts, self.groups[chosen], self.classes[chosen])


def read_bags(rows: Iterable[tuple[Registration, str, int]]) -> Bags:
    """Registrations with their group and class."""
    slots, ends, starts, groups, classes = array("i"), [0], [0], [], []
    for registration, group, label in rows:
        for window in {w.slots for text in _texts(registration) for w in windows_of(text)}:
            slots.extend(window)
            ends.append(len(slots))
        starts.append(len(ends) - 1)
        groups.append(zlib.crc32(group.encode()) % _FOLDS)
        classes.append(label)
    counts = np.diff(ends)
    values = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts)
    windows = sparse.csr_matrix((values, np.frombuffer(slots, np.int32), ends), (len(counts), SLOTS))
    return Bags(windows, np.array(starts), np.array(groups), np.array(classes))


def _texts(registration: Registration) -> Iterable[str]:
    for text in dict.fromkeys(every_text(registration.item())):
        yield from map(without_mentions, visible_forms(text))
        yield from (visible(decoded) for decoded, _, _ in decoded_forms(text))


def _fit_logistic(windows: sparse.csr_matrix, labels: Floats, weights: Floats) -> Floats:
    """Weights and, last, the intercept, with a quadratic penalty."""
    signs, across = 2 * labels - 1, windows.T.tocsr()

    def loss(at: Floats) -> tuple[float, Floats]:
        margins = signs * (windows @ at[:-1] + at[-1])
        slope = -signs * weights * expit(-margins)
        value = -(weights * log_expit(margins)).sum() + _PENALTY / 2 * at[:-1] @ at[:-1]
        return value, np.append(across @ slope + _PENALTY * at[:-1], slope.sum())

    def curve(at: Floats, along: Floats) -> Floats:
        """The second derivative times `along`."""
        share = expit(windows @ at[:-1] + at[-1])
        bend = weights * share * (1 - share) * (windows @ along[:-1] + along[-1])
        return np.append(across @ bend + _PENALTY * along[:-1], bend.sum())

    begin = np.zeros(windows.shape[1] + 1)
    found: Floats = minimize(loss, begin, jac=True, hessp=curve, method="trust-ncg", options={"gtol": 1.0}).x
    return found


def fit(attacks: Bags, hard: Bags, honest: Bags) -> Floats:
    """The weights of SLOTS features and the intercept."""
    chance = np.random.default_rng(1)
    count = honest.windows.shape[0]
    sizes = np.diff(attacks.starts)
    steers, plain = np.ones(sizes.sum(), bool), np.zeros(sizes.sum(), bool)
    shown = chance.choice(count, min(_SHOWN, count), replace=False)
    for _ in range(_ROUNDS):
        parts = [attacks.windows[steers], hard.windows, honest.windows[shown], attacks.windows[plain]]
        counts = [part.shape[0] for part in parts]
        labels = np.repeat([1.0, 0.0, 0.0, 0.0], counts)
        weights = np.repeat([_WEIGHT_OF_HARD, _WEIGHT_OF_HARD, 1.0, 1.0], counts)
        at = _fit_logistic(sparse.vstack(parts).tocsr(), labels, weights)
        scores, others = (bags.windows @ at[:-1] + at[-1] for bags in (attacks, honest))
        steers = attacks.peaks(scores)
        plain = attacks.peaks(-scores) & (np.repeat(sizes, sizes) > 1)
        drawn = chance.choice(count, min(_SHOWN // 2, count), replace=False)
        shown = np.union1d(np.argsort(-others)[: _SHOWN // 2], drawn)
    return at


def fit_reasons(attacks: Bags, at: Floats) -> list[Floats]:
    """Weights of SLOTS_OF_REASON features of each reason, from the window of each attack that steers most."""
    peaks = attacks.peaks(attacks.windows @ at[:-1])
    windows, classes = attacks.windows[peaks], np.repeat(attacks.classes, np.diff(attacks.starts))[peaks]
    folded = sparse.csr_matrix(
        (windows.data, windows.indices % SLOTS_OF_REASON, windows.indptr), (windows.shape[0], SLOTS_OF_REASON)
    )
    ones = np.ones(len(classes))
    return [_fit_logistic(folded, (classes == label).astype(float), ones)[:-1] for label in range(len(REASONS))]


def measure(attacks: Bags, hard: Bags, honest: Bags) -> tuple[float, dict[str, Any]]:
    """The threshold, as a score, and what it recognises, with each fold scored by weights of the others."""
    scores: list[list[Floats]] = [[], [], []]
    classes = []
    for fold in range(_FOLDS):
        at = fit(*(bags.select(bags.groups != fold) for bags in (attacks, hard, honest)))
        left_out = [bags.select(bags.groups == fold) for bags in (attacks, hard, honest)]
        classes.append(left_out[0].classes)
        for into, bags in zip(scores, left_out, strict=True):
            into.append(bags.best(bags.windows @ at[:-1] + at[-1]))
    found, resembling, others = map(np.concatenate, scores)
    threshold = float(np.quantile(resembling, 1 - _FALSE))
    of_class = np.concatenate(classes)
    return threshold, {
        "threshold": round(threshold, 3),
        "attacks": len(found),
        "recall": round(float((found > threshold).mean()), 3),
        "recall_by_class": {
            name: round(float((found[of_class == label] > threshold).mean()), 3) for label, name in enumerate(_CLASSES)
        },
        "hard_negatives": len(resembling),
        "hard_negatives_flagged": round(float((resembling > threshold).mean()), 3),
        "honest": len(others),
        "honest_flagged": round(float((others > threshold).mean()), 4),
    }


def pack(at: Floats, of_reason: Sequence[Floats], threshold: float) -> bytes:
    """The weights as `steering.Weights` reads them."""
    scale = np.abs(at[:-1]).max() / 127
    reasons = np.concatenate([weights / np.abs(weights).max() * 127 for weights in of_reason])
    stored = np.concatenate([at[:-1] / scale, reasons]).round().astype(np.int8)
    return zlib.compress(np.float32((threshold - at[-1]) / scale).tobytes() + stored.tobytes(), 9)


def _poisoned(data: Path) -> Iterator[dict[str, Any]]:
    """Attacks and hard negatives, each with its `class` and `writer`."""
    with gzip.open(_WRITTEN, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)
    for name in ("attacks", "honest"):
        for row in map(json.loads, (_BATCHES / f"{name}.jsonl").read_text("utf-8").splitlines()):
            if (batch := row.get("batch", 1)) < _HELD_BACK:
                yield {"class": "honest", "writer": f"batch {batch}", **row}
    for row in map(json.loads, (data / "poisoned-tools" / "entries.jsonl").read_text("utf-8").splitlines()):
        yield {**row, "writer": "public", "class": "orders" if row["label"] == "malicious" else "honest"}


def _bag(row: dict[str, Any]) -> tuple[Registration, str, int]:
    item = {key: row[key] for key in ("name", "description", "input_schema") if row.get(key)}
    registration = Registration.parse({"namespace": "scanner", "kind": "tool", **item})
    return registration, row["writer"], _LABELS.get(row["class"], _HONEST)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of judged data sets and of poisoned-tools")
    data = parser.parse_args().data
    rows = [_bag(row) for row in _poisoned(data)]
    attacks = read_bags(row for row in rows if row[2] >= 0)
    hard = read_bags(row for row in rows if row[2] == _HONEST)
    sets = {r.id: r for name in (*sets_in(data), "mcp-tools") for r in load(data / name).registrations}
    sets |= {r.id: r for r in sample().registrations}
    plain = [row for row in rows if row[2] == _PLAIN]
    honest = read_bags([*plain, *((each, each.namespace, _HONEST) for each in sets.values())])
    threshold, report = measure(attacks, hard, honest)
    at = fit(attacks, hard, honest)
    weights = pack(at, fit_reasons(attacks, at), threshold)
    Path(steering.__file__).with_name("steering.weights").write_bytes(weights)
    write_results("scanner", {"weights_bytes": len(weights), **report})
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
