"""The benchmark `attacks`: every attack on the sample and on the tools, and what defences cost the honest."""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.attacks.curve import prior_curve, rate_some
from experiments.attacks.false_reports import false_reports
from experiments.attacks.hidden import try_hidden
from experiments.attacks.honest import count_flags, count_matches, sum_flags, trust_cost
from experiments.attacks.items import SEED
from experiments.attacks.measures import measure_groups
from experiments.attacks.run import QUERIES, AttackedRegistry, Say, targets_of
from experiments.attacks.scene import Attack
from experiments.attacks.table import ATTACKS, TRUSTED
from mats.domain.capability.capability import Id
from mats.domain.profile.profile import Profile
from mats.evaluation.data.datasets import Dataset, load, sample, sets_in
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.ports import NO_LABELS, Encoder, Labels, RerankResult
from mats.settings import Settings

RIGHT, OTHER = 0.95, 0.2
"""Scores of what serves the request, or claims to, and of the rest."""


@dataclass(frozen=True, slots=True)
class DeceivedReranker:
    """Gives every capability that is not honest the score of the right one; it makes no other mistake.

    Args:
        relevant: The relevant capabilities by query text; a text may have more after its end.
        honest: The capabilities that no attacker has registered.
    """

    relevant: Mapping[str, frozenset[Id]]
    honest: Collection[Id]
    name: str = "deceived"
    prompt: str = ""

    def rerank(self, query: str, candidates: Sequence[Profile], labels: Labels = NO_LABELS) -> RerankResult:
        right = next((ids for text, ids in self.relevant.items() if query.startswith(text)), frozenset[Id]())
        deceived = (profile.id in right or profile.id not in self.honest for profile in candidates)
        return RerankResult(scores=tuple(RIGHT if high else OTHER for high in deceived))


ATTACKED_SET = "tools"
_RATED = 80
"""Trust of the targets where only they are rated."""
_HONEST = 300
"""Queries without attack that are asked with each prior."""


def attacks(data: Path, settings: Settings) -> dict[str, Any]:
    """Attacks on the ranking, without a reranker, and what the defences cost."""
    encoder = cached_encoder(settings)
    results: dict[str, Any] = {"seed": SEED, "queries": QUERIES, "trusted_from": TRUSTED}
    with _open_registry(sample(), settings, encoder) as (dataset, registry):
        results["sample"] = _attack_sample(dataset, registry)
    flags = {}
    for name in sets_in(data):
        _say(f"attacks: {name}: registering")
        with _open_registry(load(data / name), settings, encoder) as (dataset, registry):
            _say(f"attacks: {name}: flags on the honest")
            flags[name] = count_flags(registry, dataset)
            if name == ATTACKED_SET:
                results[name] = _attack_set(dataset, registry)
    return {**results, "honest": {"all": sum_flags(flags.values()), "sets": flags}}


@contextmanager
def _open_registry(
    dataset: Dataset, settings: Settings, encoder: Encoder | None
) -> Iterator[tuple[Dataset, AttackedRegistry]]:
    with registry_of(dataset.registrations, settings, encoder=encoder, trust=dataset.trust) as local:
        targets = targets_of(dataset)
        yield (
            dataset,
            AttackedRegistry(local=local, registrations=dataset.registrations, targets=targets, trust=dataset.trust),
        )


def _attack_sample(dataset: Dataset, registry: AttackedRegistry) -> dict[str, Any]:
    """Every attack with the sample's own trust, with all targets rated, and with none."""
    served = [query for query in dataset.queries if query.relevant]
    trust = {"assigned": dataset.trust, "targets rated": rate_targets(registry), "none": {}}
    return {
        **_sizes(dataset),
        "hidden": try_hidden(registry),
        "trust_cost": {
            "rule": asdict(registry.pipeline.scoring.trust),
            **trust_cost(registry, served, dataset.trust),
        },
        "prior_curve": prior_curve(registry, dataset, dataset.trust, _HONEST),
        "attacks": run_attacks(registry, trust, say=_say),
        "deceived_reranker": _deceive(dataset, registry),
        "false_reports": _report_falsely(dataset, registry),
    }


def _deceive(dataset: Dataset, registry: AttackedRegistry) -> dict[str, Any]:
    """Every attack with a reranker that takes attackers for the right answer, with the sample's own trust."""
    relevant = {query.text: query.relevant for query in dataset.queries}
    honest = {registration.id for registration in dataset.registrations}
    with registry.reranking_by(DeceivedReranker(relevant, honest)):
        return run_attacks(registry, {"assigned": dataset.trust}, say=_say)


def _attack_set(dataset: Dataset, registry: AttackedRegistry) -> dict[str, Any]:
    """Every attack with all targets rated, and with none."""
    trust: Mapping[str, Mapping[Id, int]] = {"targets rated": rate_targets(registry), "none": {}}
    _say("attacks: the trust prior")
    return {
        **_sizes(dataset),
        "prior_curve": prior_curve(registry, dataset, rate_some(dataset.registrations), _HONEST),
        "attacks": run_attacks(registry, trust, say=_say),
        "false_reports": _report_falsely(dataset, registry),
    }


def _report_falsely(dataset: Dataset, registry: AttackedRegistry) -> dict[str, Any]:
    """False reports of one caller, with the set's own trust and with none; an honest crowd asks more queries."""
    crowd = targets_of(dataset, _HONEST)
    results = {}
    for name, trust in {"assigned": dataset.trust, "none": {}}.items():
        if trust or name == "none":
            _say(f"attacks: {len(registry.registrations):,} capabilities, trust {name}: false reports")
            registry.assign(trust)
            results[name] = false_reports(registry, crowd)
    return results


def run_attacks(
    registry: AttackedRegistry, trust: Mapping[str, Mapping[Id, int]], table: Sequence[Attack] = ATTACKS, *, say: Say
) -> dict[str, Any]:
    """The matches without attack and the measures of each attack, by the name of the trust assigned."""
    results: dict[str, Any] = {}
    for name, assigned in trust.items():
        registry.assign(assigned)
        rows = []
        for attack in table:
            say(f"attacks: {len(registry.registrations):,} capabilities, trust {name}: {attack.name}")
            waves = attack.waves(registry.scene)
            if observations := [one for wave in waves for one in registry.observe(wave)]:
                refused = sum(wave.refused for wave in waves)
                row = {"attack": attack.name, "knows": attack.knows, "refused": refused}
                rows.append({**row, **measure_groups(observations)})
        honest = count_matches(registry, [target.query for target in registry.targets])
        results[name] = {"rated": len(assigned), "without_attack": honest, "attacks": rows}
    return results


def rate_targets(registry: AttackedRegistry) -> dict[Id, int]:
    """Trust of every target, and of nothing else."""
    return {target.item.id: _RATED for target in registry.targets}


def _sizes(dataset: Dataset) -> dict[str, Any]:
    return {"documents": len(dataset.registrations), "judged": len(dataset.queries), "digest": dataset.digest}


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
