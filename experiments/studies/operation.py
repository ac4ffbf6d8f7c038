"""Operation: one registry of all four kinds, and abstention."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from experiments.studies.context import ExperimentContext, match_json
from mats import bootstrap
from mats.domain.capability.capability import Id, Kind
from mats.evaluation.calibration.thresholds import THRESHOLDS, below, relevance_scores
from mats.evaluation.data.datasets import FOUR_KINDS
from mats.evaluation.systems.base import Answers, ask
from mats.evaluation.systems.pipeline import shortlist_system
from mats.evaluation.systems.workbench import registry_of, without_timeouts


def kinds(context: ExperimentContext) -> dict[str, Any]:
    """Accuracy of the queries of every kind over the whole registry, without and with a kind filter."""
    sets = {kind: context.dataset(name) for kind, name in FOUR_KINDS.items()}
    everything = [registration for dataset in sets.values() for registration in dataset.registrations]
    kind_of = {registration.id: registration.kind for registration in everything}
    results = {}
    with registry_of(everything, context.models.offline, encoder=context.models.encoder) as local:
        discover = without_timeouts(local.discover)
        for kind, dataset in sets.items():
            context.log(f"all kinds: queries for a {kind}")
            unfiltered = ask(shortlist_system(discover), dataset.queries)
            filtered = ask(shortlist_system(discover, kinds=[kind]), dataset.queries)
            results[str(kind)] = {
                "queries": len(dataset.queries),
                "without_intent": match_json(unfiltered, dataset),
                "with_intent": match_json(filtered, dataset),
                "first_of_kind": first_of_kind(unfiltered, kind_of),
            }
    return {"documents": len(kind_of), "kinds": results}


def first_of_kind(answers: Answers, kind_of: Mapping[Id, Kind]) -> dict[str, float]:
    """The share of answers whose first result is of each kind; the rest is empty answers."""
    counts = Counter(kind_of[id] for answer in answers.values() for id in answer.ranked[:1])
    return {str(kind): round(counts[kind] / len(answers), 4) for kind in Kind}


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
