"""The experiment `length-bias` over OpenSearch, where weights are part of the documents."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from experiments.benchmarks.aws.opensearch import REGION, index_on, node
from experiments.studies import length_bias as experiment
from experiments.studies.slices import dense_slice
from mats.adapters.opensearch import mapping
from mats.bootstrap.cloud import cloud_system
from mats.domain.profile.index_fields import FIELD_WEIGHTS
from mats.evaluation.data.datasets import load
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of, without_timeouts
from mats.settings import Settings

WEIGHTS = ("as shipped", "every field 1")
ARMS = ("medium", "bare names")
SIZE = 1_200
"""Fewer capabilities than in the experiment: each query is a round trip."""


def length_bias(data: Path, settings: Settings) -> dict[str, Any]:
    """Half of a registry described at a time, by the weights of WEIGHTS."""
    dataset = dense_slice(load(data / experiment.DATASET), SIZE)
    encoder = cached_encoder(settings)
    if encoder is None:
        raise SystemExit("no encoder to describe for: unset MATS_ENCODER=none")
    results: dict[str, Any] = {"documents": len(dataset.registrations), "queries": len(dataset.queries), "arms": {}}
    for label in WEIGHTS:
        weights = {**FIELD_WEIGHTS, **experiment.WEIGHTS[label]}
        with (
            patch.object(mapping, "FIELD_WEIGHTS", weights),
            registry_of(dataset.registrations, settings, encoder=encoder) as local,
            node("1g") as url,
            index_on(url, encoder) as index,
        ):
            searchable = replace(index, refresh="true")
            searchable.put(list(local.stores.profiles.get([r.id for r in dataset.registrations]).values()))
            shipped = cloud_system(replace(settings, index_endpoint=url, region=REGION), encoder=encoder).discover
            discover = without_timeouts(replace(shipped, retrieve=replace(shipped.retrieve, index=searchable)))
            arms = experiment.arms_of(dataset, encoder)
            for name, arm in ((name, arms[name]) for name in ARMS):
                measured = experiment.measure(dataset, arm, searchable, encoder, {label: discover})
                results["arms"].setdefault(name, {}).update(measured)
    return results
