"""The trust prior: what an unrated attacker gains on trusted targets against what the honest lose."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from experiments.attacks.honest import count_matches
from experiments.attacks.items import SEED
from experiments.attacks.run import QUERIES, AttackedRegistry, targets_of
from experiments.attacks.scene import Scene
from experiments.attacks.table import ATTACKS, TRUSTED
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.learning.reliability import PAPER_TRUST, TrustRule
from mats.evaluation.data.datasets import Dataset, JudgedQuery

PRIORS = (None, 0, 10, 20, 30, 40, 50, 60)
RULES: Mapping[str, TrustRule] = {
    "paper": PAPER_TRUST,
    **{f"prior {'none' if prior is None else prior}": TrustRule(prior=prior, proportional=True) for prior in PRIORS},
}
"""The paper's rule, and trust in proportion to relevance with each prior."""
ATTACKS_TRIED = (
    "1 item, 50 queries everywhere",
    "20 items, 2-3 queries each, everywhere",
    "1 item a query, as its example",
    "1 item a query, half its words as example",
    "copy, one word added",
)
_SHARE, _RATED = 0.15, 80
"""Share of a set without trust that is rated, as in the sample, and its trust."""


def rate_some(registrations: Sequence[Registration]) -> dict[Id, int]:
    """A seeded share of the registrations, all with the same trust."""
    chosen = random.Random(SEED).sample(registrations, round(_SHARE * len(registrations)))
    return {registration.id: _RATED for registration in chosen}


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
    registry.assign(trust)
    targets = targets_of(replace(dataset, trust=trust), len(dataset.queries))
    trusted = [target for target in targets if trust.get(target.item.id, 0) >= TRUSTED]
    others = [target for target in targets if target not in trusted]
    attacked = trusted[:QUERIES]
    scene = Scene(registrations=registry.registrations, targets=[*trusted, *others][:QUERIES], trust=trust)
    judged = [target.query for target in targets][:honest]
    queries = [target.query for target in attacked]
    rows: dict[str, dict[str, Any]] = {}
    held: dict[str, list[JudgedQuery]] = {}
    for rule in RULES:
        with registry.scoring_by(RULES[rule]):
            held[rule] = [query for query in queries if _is_first(registry, query, query.relevant)]
            honest_matches = count_matches(registry, judged)
        rows[rule] = {"honest": honest_matches, "held": len(held[rule]), "first": {}, "taken": {}}
    for attack in (attack for attack in ATTACKS if attack.name in ATTACKS_TRIED):
        for wave in attack.waves(scene):
            with registry.with_items(wave.items, wave.trust):
                for rule, row in rows.items():
                    with registry.scoring_by(RULES[rule]):
                        won = [query for query in queries if _is_first(registry, query, wave.attacker_ids)]
                    row["first"][attack.name] = len(won)
                    row["taken"][attack.name] = sum(query in held[rule] for query in won)
    return {"rated": len(trust), "honest_queries": len(judged), "trusted_targets": len(queries), "rules": rows}


def _is_first(registry: AttackedRegistry, query: JudgedQuery, ids: frozenset[Id]) -> bool:
    return not ids.isdisjoint(registry.rank_ids(query.text)[:1])
