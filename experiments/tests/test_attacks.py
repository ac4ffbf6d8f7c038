"""Attacks over a tiny registry."""

from collections.abc import Iterator

import pytest

from experiments.attacks import table
from experiments.attacks.registry import AttackedRegistry, targets_of
from experiments.attacks.scene import AttackTarget, Scene
from experiments.attacks.table import ATTACKS
from experiments.attacks.takeovers import Attacker
from mats.domain.profile.assignment import pattern_id
from mats.evaluation.data.datasets import Dataset, JudgedQuery
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings
from tests.builders import a_registration
from tests.fakes import FakeEncoder

PAY, MAP, MAIL = (
    a_registration(namespace="com.acme", name=name, description=text, provider="Acme")
    for name, text in (
        ("refund", "Gives the money of a purchase back to the card of the customer who paid for it."),
        ("geocode", "Turns a street address into coordinates of latitude and longitude on the earth."),
        ("send_mail", "Sends a letter with text and attached files to one or many electronic mailboxes."),
    )
)
QUERIES = (
    JudgedQuery("q1", "return money to a customer", frozenset({PAY.id})),
    JudgedQuery("q2", "coordinates of an\naddress", frozenset({MAP.id})),
    JudgedQuery("q3", "an unserved request", frozenset()),
)
DATASET = Dataset("tiny", (PAY, MAP, MAIL), QUERIES, {}, "", {PAY.id: 90})
SCENE = Scene(registrations=DATASET.registrations, targets=targets_of(DATASET, 9), trust=DATASET.trust)


@pytest.fixture
def registry() -> Iterator[AttackedRegistry]:
    with registry_of(DATASET.registrations, Settings(), encoder=FakeEncoder(), trust=DATASET.trust) as local:
        yield AttackedRegistry(
            local=local, registrations=DATASET.registrations, targets=targets_of(DATASET, 9), trust=dict(DATASET.trust)
        )


class TestAttacks:
    @pytest.mark.parametrize("name", ATTACKS)
    def test_each_makes_valid_registrations_of_its_own(self, name):
        waves = ATTACKS[name](SCENE)
        honest = {registration.id for registration in SCENE.registrations}
        assert waves
        for wave in waves:
            ids = [item.id for item in wave.items]
            assert len(set(ids)) == len(ids)
            assert not honest & set(ids)
            assert wave.targets
            assert wave.attacker_ids

    def test_a_refused_copy_is_left_out(self):
        bare = a_registration(namespace="com.acme", name="bare", description="")
        targets = [AttackTarget(JudgedQuery("q", "q", frozenset({item.id})), item) for item in (PAY, bare)]
        scene = Scene(registrations=[PAY, bare], targets=targets)
        [wave] = table.rewrite(table.zero_width)(scene)
        assert len(wave.items) == 1

    def test_changed_copies_look_alike(self):
        assert table.one_homoglyph("send it") == "sеnd it"
        assert table.zero_width("send it") == "se\u200bnd it"


def test_rewordings_repeat_neither_the_request_nor_each_other(registry):
    texts = Attacker(registry, FakeEncoder()).rewordings("return the money of a purchase to a customer")
    assert len(set(texts)) == len(texts) > 1
    assert all(len(set(text.split()) & {"return", "money", "purchase", "customer"}) < 3 for text in texts)


def test_nothing_stays_of_an_attack(registry):
    before = set(registry.local.stores.registry.ids())
    [wave] = ATTACKS["claimed provider that is verified for the target"](registry)
    with registry.with_wave(wave):
        assert set(registry.local.stores.registry.ids()) - before == wave.attacker_ids
        assert registry.local.stores.trust.rows([pattern_id("com.acme")])
    assert set(registry.local.stores.registry.ids()) == before
    assert not registry.local.stores.trust.rows([pattern_id("com.acme")])


def test_trust_is_replaced_in_the_index(registry):
    registry.assign({MAP.id: 10})
    fetched = registry.local.stores.index.fetch([PAY.id, MAP.id])
    assert (fetched[PAY.id].trust, fetched[MAP.id].trust) == (None, 10)


def test_a_target_is_the_best_rated_relevant_capability():
    query = JudgedQuery("q", "q", frozenset({PAY.id, MAP.id}))
    dataset = Dataset("tiny", (PAY, MAP), [query], {}, "", {MAP.id: 20})
    assert targets_of(dataset, 9) == [AttackTarget(query, MAP)]
