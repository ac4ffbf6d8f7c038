"""9 · When to say that nothing fits: what is refused wrongly and what is accepted wrongly, threshold by threshold."""

from typing import Any

from mats import bootstrap
from mats.evaluation.calibration.thresholds import THRESHOLDS, below, relevance_scores
from mats.evaluation.data.datasets import FOUR_KINDS
from mats.evaluation.experiments.context import ExperimentContext


def abstention(context: ExperimentContext) -> dict[str, Any]:
    """False rejects of queries the registry serves; false accepts of those whose gold was taken out, and of gibberish.

    Scores are those of a registry without an LLM, on the scale that is shipped.
    """
    encoder, names = context.models.encoder, list(FOUR_KINDS.values())
    index = context.bench(names[0]).discover.retrieve.index.name
    calibration = bootstrap.calibrated(index, encoder.name if encoder else "none")
    measured = []
    for name in names:
        context.log(f"{name}: without its gold, and gibberish")
        measured.append(relevance_scores(context.dataset(name), context.models.offline, encoder, calibration.scale))
    shares = below(measured)
    return {
        "sets": names,
        "thresholds": list(THRESHOLDS),
        "false_reject": shares["good"],
        "false_accept": {kind: [round(1 - s, 4) for s in shares[kind]] for kind in ("bereft", "gibberish")},
        "chosen": {"weak": calibration.thresholds.weak, "match": calibration.thresholds.match},
    }
