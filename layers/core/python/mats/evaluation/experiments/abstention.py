"""9 · Abstention: false rejects and false accepts at every threshold."""

from typing import Any

from mats import bootstrap
from mats.evaluation.calibration.thresholds import THRESHOLDS, below, relevance_scores
from mats.evaluation.data.datasets import FOUR_KINDS
from mats.evaluation.experiments.context import ExperimentContext


def abstention(context: ExperimentContext) -> dict[str, Any]:
    """False rejects of in-scope queries; false accepts of queries without their gold, and of gibberish.

    Scores are those of a registry without an LLM, on the shipped scale.
    """
    encoder, names = context.models.encoder, list(FOUR_KINDS.values())
    index = context.bench(names[0]).discover.retrieve.index.name
    calibration = bootstrap.load_calibration(index, encoder.name if encoder else "none")
    scores = []
    for name in names:
        context.log(f"{name}: in scope, gold removed, gibberish")
        scores.append(relevance_scores(context.dataset(name), context.models.offline, encoder, calibration.scale))
    shares = below(scores)
    return {
        "sets": names,
        "thresholds": list(THRESHOLDS),
        "false_reject": shares["good"],
        "false_accept": {kind: [round(1 - s, 4) for s in shares[kind]] for kind in ("bereft", "gibberish")},
        "chosen": {"weak": calibration.thresholds.weak, "match": calibration.thresholds.match},
    }
