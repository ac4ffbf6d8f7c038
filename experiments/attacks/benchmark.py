"""The benchmark `attacks`: every attack on the sample and on the tools, and what defences cost the honest."""

import random
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.attacks.false_reports import false_reports
from experiments.attacks.hidden import try_hidden
from experiments.attacks.measures import count_flags, honest_matches, measure_groups
from experiments.attacks.registry import QUERIES, AttackedRegistry, targets_of
from experiments.attacks.scene import SEED, TRUSTED, Attack, Scene
from experiments.attacks.table import ATTACKS
from mats.domain.capability.capability import Id
from mats.domain.learning.reliability import PAPER_TRUST, TrustRule
from mats.domain.profile.profile import Profile
from mats.evaluation.data.datasets import Dataset, JudgedQuery, load, sample, sets_in
from mats.evaluation.systems.models import cached_encoder
from mats.evaluation.systems.workbench import registry_of
from mats.ports import NO_LABELS, Labels, RerankResult
from mats.settings import Settings

RIGHT, OTHER = 0.95, 0.2
"""Scores of what serves the request, or claims to, and of the rest."""
RULES: Mapping[str, TrustRule] = {
    "paper": PAPER_TRUST,
    **{
        f"prior {'none' if prior is None else prior}": TrustRule(prior=prior, proportional=True)
        for prior in (None, 0, 10, 20, 30, 40, 50, 60)
    },
}
"""The paper's rule, and trust in proportion to relevance with each prior."""
ATTACKS_TRIED = (
    "1 item, 50 queries everywhere",
    "20 items, 2-3 queries each, everywhere",
    "1 item a query, as its example",
    "1 item a query, half its words as example",
    "copy, one word added",
)
"""With each rule."""
ATTACKED_SET = "tools"
_RATED, _SHARE = 80, 0.15
"""Trust of what is rated where a set has no trust: the targets, or a share of its registrations, as in the sample."""
_HONEST = 300
"""Queries without attack that are asked with each prior."""


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


def attacks(data: Path, settings: Settings) -> dict[str, Any]:
    """Attacks on the ranking, without a reranker, and what the defences cost.

    The sample's own trust is tried as well; other sets have none.
    """
    results: dict[str, Any] = {"seed": SEED, "queries": QUERIES, "trusted_from": TRUSTED}
    dataset = sample()
    with _attacked(dataset, settings) as registry:
        results["sample"] = {
            "hidden": try_hidden(registry),
            **_attack(dataset, registry, dataset.trust),
            "deceived_reranker": _deceive(dataset, registry),
        }
    flags = {}
    for name in sets_in(data):
        dataset = load(data / name)
        with _attacked(dataset, settings) as registry:
            _say(f"{name}: flags on the honest")
            flags[name] = count_flags(registry, dataset)
            if name == ATTACKED_SET:
                results[name] = _attack(dataset, registry, _rate_some(dataset))
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


def _rate_some(dataset: Dataset) -> dict[Id, int]:
    """A seeded share of the registrations, all with the same trust."""
    chosen = random.Random(SEED).sample(dataset.registrations, round(_SHARE * len(dataset.registrations)))
    return {registration.id: _RATED for registration in chosen}


def _attack(dataset: Dataset, registry: AttackedRegistry, trust: Mapping[Id, int]) -> dict[str, Any]:
    """Every attack with the set's own trust, with all targets rated, and with none; an honest crowd asks more queries.

    The curve of the prior is measured with `trust`.
    """
    own: dict[str, Mapping[Id, int]] = {"assigned": dataset.trust} if dataset.trust else {}
    rated = {target.item.id: _RATED for target in registry.targets}
    crowd, reports = targets_of(dataset, _HONEST), {}
    curve = prior_curve(registry, dataset, trust, _HONEST)
    rows = run_attacks(registry, {**own, "targets rated": rated, "none": {}})
    for name, assigned in {**own, "none": {}}.items():
        _say(f"{dataset.name}, trust {name}: false reports")
        registry.assign(assigned)
        reports[name] = false_reports(registry, crowd)
    return {
        "documents": len(dataset.registrations),
        "judged": len(dataset.queries),
        "digest": dataset.digest,
        "prior_curve": curve,
        "attacks": rows,
        "false_reports": reports,
    }


def _deceive(dataset: Dataset, registry: AttackedRegistry) -> dict[str, Any]:
    """Every attack with a reranker that takes attackers for the right answer, with the sample's own trust."""
    relevant = {query.text: query.relevant for query in dataset.queries}
    reranker = DeceivedReranker(relevant, {registration.id for registration in dataset.registrations})
    with registry.changed(rerank=replace(registry.pipeline.rerank, reranker=reranker)):
        return run_attacks(registry, {"assigned": dataset.trust})


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
            waves = attack.waves(registry.scene)
            if observations := [one for wave in waves for one in registry.observe(wave)]:
                refused = sum(wave.refused for wave in waves)
                row = {"attack": attack.name, "knows": attack.knows, "refused": refused}
                rows.append({**row, **measure_groups(observations)})
        honest = honest_matches(registry, [target.query for target in registry.targets])
        results[name] = {"rated": len(assigned), "without_attack": honest, "attacks": rows}
    return results


def prior_curve(registry: AttackedRegistry, dataset: Dataset, trust: Mapping[Id, int], honest: int) -> dict[str, Any]:
    """By rule: the trusted targets on which an attacker is first, by attack, and the honest matches without attack.

    `held` are the trusted targets that are first without attack, and `taken` those of them on which an attacker is.

    Attackers paste the queries of trusted targets; where there are fewer than QUERIES, those of others as well.

    Args:
        registry: The registry; its trust is replaced.
        dataset: What it holds.
        trust: Trust by id.
        honest: So many queries without attack are asked, a seeded sample.
    """
    targets = targets_of(replace(dataset, trust=trust), len(dataset.queries))
    trusted = [target for target in targets if trust.get(target.item.id, 0) >= TRUSTED]
    others = [target for target in targets if target not in trusted]
    scene = Scene(registrations=registry.registrations, targets=[*trusted, *others][:QUERIES], trust=trust)
    judged = [target.query for target in targets][:honest]
    queries = [target.query for target in trusted[:QUERIES]]
    registry.assign({})
    without_trust = honest_matches(registry, judged)
    registry.assign(trust)
    rows: dict[str, dict[str, Any]] = {}
    held: dict[str, list[JudgedQuery]] = {}
    for name, rule in RULES.items():
        with registry.scoring_by(rule):
            held[name] = [query for query in queries if _is_first(registry, query, query.relevant)]
            matches = honest_matches(registry, judged)
        rows[name] = {"honest": matches, "held": len(held[name]), "first": {}, "taken": {}}
    for attack in (attack for attack in ATTACKS if attack.name in ATTACKS_TRIED):
        _say(f"{len(registry.registrations):,} capabilities, each prior: {attack.name}")
        [wave] = attack.waves(scene)
        with registry.with_items(wave.items, wave.trust):
            for name, row in rows.items():
                with registry.scoring_by(RULES[name]):
                    won = [query for query in queries if _is_first(registry, query, wave.attacker_ids)]
                row["first"][attack.name] = len(won)
                row["taken"][attack.name] = sum(query in held[name] for query in won)
    return {
        "rated": len(trust),
        "honest_queries": len(judged),
        "trusted_targets": len(queries),
        "without_trust": without_trust,
        "rules": rows,
    }


def _is_first(registry: AttackedRegistry, query: JudgedQuery, ids: frozenset[Id]) -> bool:
    return not ids.isdisjoint(registry.rank_ids(query.text)[:1])


def _say(line: str) -> None:
    sys.stderr.write(f"attacks: {line}\n")
