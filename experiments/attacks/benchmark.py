"""The benchmark `attacks`: every attack on the sample and on the tools, and the honest that are flagged."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.attacks.false_reports import false_reports
from experiments.attacks.registry import (
    QUERIES,
    AttackedRegistry,
    count_flags,
    count_matches,
    measure_answers,
    targets_of,
)
from experiments.attacks.scene import SEED, TRUSTED, Attack
from experiments.attacks.table import ATTACKS
from experiments.attacks.takeovers import RATED, Attacker, takeovers
from experiments.data.sets import sets_in
from mats.domain.capability.capability import Id
from mats.evaluation.data.datasets import Dataset, load, sample
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings

_ATTACKED, _TAKEN = "tools", ("agents", "skills", "tools")
_HONEST = 300  # Queries of the honest crowd that reports


def attacks(data: Path, settings: Settings) -> dict[str, Any]:
    """Attacks on the ranking, without a reranker, and the honest that are flagged."""
    results: dict[str, Any] = {"seed": SEED, "queries": QUERIES, "trusted_from": TRUSTED}
    dataset = sample()
    with _attacked(dataset, settings) as registry:
        results["sample"] = _attack(dataset, registry)
    flags = {}
    for name in sets_in(data):
        dataset = load(data / name)
        with _attacked(dataset, settings) as registry:
            _say(f"{name}: flags on the honest")
            flags[name] = count_flags(registry, dataset)
            if name == _ATTACKED:
                results[name] = _attack(dataset, registry)
            if (encoder := registry.pipeline.encoder) and name in _TAKEN:
                _say(f"{name}: takeovers")
                results.setdefault("takeovers", {})[name] = list(takeovers(Attacker(registry, encoder)))
    registrations, ever = (sum(one[count] for one in flags.values()) for count in ("registrations", "ever"))
    total = {"registrations": registrations, "ever": ever, "share": round(ever / registrations, 5)}
    return {**results, "honest": {"all": total, "sets": flags}}


@contextmanager
def _attacked(dataset: Dataset, settings: Settings) -> Iterator[AttackedRegistry]:
    _say(f"{dataset.name}: registering")
    encoder, registrations = cached_encoder(settings), dataset.registrations
    with registry_of(registrations, settings, encoder=encoder, trust=dataset.trust) as local:
        targets = targets_of(dataset)
        yield AttackedRegistry(local=local, registrations=registrations, targets=targets, trust=dataset.trust)


def _attack(dataset: Dataset, registry: AttackedRegistry) -> dict[str, Any]:
    """Every attack with all targets rated, and with none; false reports, beside those of a crowd that asks more."""
    rated = {target.item.id: RATED for target in registry.targets}
    crowd, reports = targets_of(dataset, _HONEST), {}
    rows = run_attacks(registry, {"targets rated": rated, "none": {}})
    for name, assigned in {**({"assigned": dataset.trust} if dataset.trust else {}), "none": {}}.items():
        _say(f"{dataset.name}, trust {name}: false reports")
        registry.assign(assigned)
        reports[name] = false_reports(registry, crowd)
    return {
        "documents": len(dataset.registrations),
        "judged": len(dataset.queries),
        "digest": dataset.digest,
        "attacks": rows,
        "false_reports": reports,
    }


def run_attacks(
    registry: AttackedRegistry, trust: Mapping[str, Mapping[Id, int]], table: Sequence[Attack] = ATTACKS
) -> dict[str, Any]:
    """The matches without attack and the measures of each attack, by the name of the trust assigned."""
    results: dict[str, Any] = {}
    for name, assigned in trust.items():
        registry.assign(assigned)
        rows = []
        for attack in table:
            _say(f"{len(registry.registrations):,} capabilities, trust {name}: {attack.name}")
            waves = attack.waves(registry)
            if observations := [one for wave in waves for one in registry.observe(wave)]:
                refused = sum(wave.refused for wave in waves)
                row = {"attack": attack.name, "knows": attack.knows, "refused": refused}
                rows.append({**row, "all": measure_answers(observations)})
        queries = [target.query for target in registry.targets]
        honest = count_matches((query.relevant, registry.rank_ids(query.text)) for query in queries)
        results[name] = {"rated": len(assigned), "without_attack": honest, "attacks": rows}
    return results


def _say(line: str) -> None:
    sys.stderr.write(f"attacks: {line}\n")
