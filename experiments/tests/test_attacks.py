"""Attacks over a tiny registry, and their measures against counting by hand."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from experiments.attacks import table
from experiments.attacks.benchmark import run_attacks
from experiments.attacks.false_reports import REPORT_ATTACKS, false_reports
from experiments.attacks.registry import AttackedRegistry, Observation, count_flags, measure_answers, targets_of
from experiments.attacks.scene import QUERIES as KNOWS_QUERIES
from experiments.attacks.scene import AttackTarget, Scene, Wave
from experiments.attacks.table import ATTACKS
from experiments.attacks.takeovers import TAKEOVERS, Attacker, takeovers
from mats.domain.capability.capability import Id
from mats.domain.profile.assignment import pattern_id
from mats.domain.search.blend import PAPER_TRUST
from mats.domain.search.query import Filter
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
SCENE = Scene(registrations=DATASET.registrations, targets=targets_of(DATASET), trust=DATASET.trust)


def an_answer(ranked: str, *, before: str = "r", flagged: str = "") -> Observation:
    """An answer with a letter per candidate: `r` is relevant, `a` to `e` are attackers."""
    ids = {"ranked": tuple(map(Id, ranked)), "before": tuple(map(Id, before)), "flagged": frozenset(map(Id, flagged))}
    return Observation(relevant=frozenset({Id("r")}), attackers=frozenset(map(Id, "abcde")), **ids)


@pytest.fixture
def registry() -> Iterator[AttackedRegistry]:
    with registry_of(DATASET.registrations, Settings(), encoder=FakeEncoder(), trust=DATASET.trust) as local:
        yield AttackedRegistry(
            local=local, registrations=DATASET.registrations, targets=targets_of(DATASET), trust=dict(DATASET.trust)
        )


class TestMeasures:
    def test_each_counts_as_by_hand(self):
        observations = [
            an_answer("arx", flagged="a"),  # first and flagged, the right one second
            an_answer("xxxxxbr", before="xr"),  # sixth, above the right one, which was second before
            an_answer("abcdexxxx", before="r"),  # five places, the right one is gone
            an_answer("rx", before="xx"),  # the right one was not found before
        ]
        assert measure_answers(observations) == {
            "queries": 4,
            "rank1": 2,
            "places": 1.75,  # (1 + 1 + 5 + 0) / 4
            "flagged": 1,
            "lost@1": 1,  # the first and the third lost it, the fourth won it
            "lost@15": 0,  # the third lost it, the fourth won it
        }


class TestAttacks:
    @pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
    def test_each_makes_valid_registrations_of_its_own(self, attack):
        waves = attack.waves(SCENE)
        honest = {registration.id for registration in SCENE.registrations}
        assert waves
        for wave in waves:
            ids = [item.id for item in wave.items]
            assert len(set(ids)) == len(ids)
            assert not honest & set(ids)
            assert wave.targets
            assert wave.attacker_ids

    def test_names_are_unique(self):
        assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)

    def test_what_needs_no_query_is_the_same_whatever_is_asked(self):
        other = [AttackTarget(JudgedQuery("q", "something else", t.query.relevant), t.item) for t in SCENE.targets]
        elsewhere = Scene(registrations=SCENE.registrations, targets=other, trust=SCENE.trust)
        for attack in ATTACKS:
            same = [w.items for w in attack.waves(SCENE)] == [w.items for w in attack.waves(elsewhere)]
            assert same is (attack.knows != KNOWS_QUERIES), attack.name

    def test_a_refused_copy_is_counted_and_left_out(self):
        bare = a_registration(namespace="com.acme", name="bare", description="")
        targets = [AttackTarget(JudgedQuery("q", "q", frozenset({item.id})), item) for item in (PAY, bare)]
        scene = Scene(registrations=[PAY, bare], targets=targets)
        [wave] = table.rewrite(table.zero_width)(scene)
        assert (len(wave.items), wave.refused) == (1, 1)

    def test_changed_copies_look_alike(self):
        assert table.one_homoglyph("send it") == "sеnd it"
        assert table.zero_width("send it") == "se\u200bnd it"
        assert table.half("one two three four") == "one three"


def test_takeovers_are_tried_beside_older_and_beside_rated_capabilities(registry, monkeypatch):
    monkeypatch.setattr("experiments.attacks.takeovers._ROUNDS", 1)
    rows = list(takeovers(Attacker(registry, FakeEncoder())))
    assert {(row["attack"], row["beside"]) for row in rows} == {
        (a, way) for a in TAKEOVERS for way in ("older", "rated", "rated later")
    }
    assert all(row["gone"] <= row["found"] <= row["queries"] == 2 for row in rows)
    assert len(registry.local.stores.index.page(Filter(), after=None, limit=50)) == 3


def test_rewordings_repeat_neither_the_request_nor_each_other(registry):
    texts = Attacker(registry, FakeEncoder()).rewordings("return the money of a purchase to a customer")
    assert len(set(texts)) == len(texts) > 1
    assert all(len(set(text.split()) & {"return", "money", "purchase", "customer"}) < 3 for text in texts)


def test_a_pasted_query_wins_and_is_removed_afterwards(registry):
    before = registry.rank_ids("return money to a customer")
    pasted = next(attack for attack in ATTACKS if attack.name == "1 item a query, as its example")
    results = run_attacks(registry, {"none": {}}, [pasted])
    [row] = results["none"]["attacks"]
    assert results["none"]["without_attack"] == {"match@1": 2, "match@15": 2}
    assert row["all"]["rank1"] == row["all"]["lost@1"] == 2
    assert row["all"]["places"] == 2
    assert set(registry.rank_ids("return money to a customer")) == set(before)


def test_trust_is_replaced_in_the_index(registry):
    registry.assign({MAP.id: 10})
    fetched = registry.local.stores.index.fetch([PAY.id, MAP.id])
    assert (fetched[PAY.id].trust, fetched[MAP.id].trust) == (None, 10)


def test_flags_on_the_honest_are_counted_once_each(registry):
    twin = a_registration(namespace="com.other", name="refund", description=PAY.description)
    hidden = a_registration(namespace="com.other", name="noted", description="a\U000e0041b")
    dataset = Dataset("more", (*DATASET.registrations, twin, hidden), QUERIES[:2], {}, "")
    with registry.with_wave(Wave(items=[twin, hidden], targets=())):
        flags = count_flags(registry, dataset)
    assert flags == {"registrations": 5, "at_registration": 1, "in_answers": 1, "ever": 2}


def test_a_target_is_the_best_rated_relevant_capability():
    query = JudgedQuery("q", "q", frozenset({PAY.id, MAP.id}))
    dataset = Dataset("tiny", (PAY, MAP), [query], {}, "", {MAP.id: 20})
    assert targets_of(dataset) == [AttackTarget(query, MAP)]


def test_a_claimed_provider_is_never_first_against_the_verified_one_and_nothing_stays_assigned(registry):
    attack = next(attack for attack in ATTACKS if attack.name == "claimed provider that is verified for the target")
    registry.assign({PAY.id: 70})
    with registry.changed(scoring=replace(registry.pipeline.scoring, trust=PAPER_TRUST)):
        observations = [one for wave in attack.waves(registry) for one in registry.observe(wave)]
    assert observations
    for one in observations:
        assert one.attackers
        assert one.ranked[0] not in one.attackers
        assert one.attackers.intersection(one.ranked) <= one.flagged
    assert not registry.local.stores.trust.rows([pattern_id("com.acme")])


def test_false_reports_of_one_caller_move_others_by_a_place_at_most_and_only_beside_a_crowd(registry):
    found = false_reports(registry, registry.targets)
    assert all(row["moved"] <= 1 for row in found["a crowd reports"])
    rows = found["nobody else reports"]
    assert [row["attack"] for row in rows] == [attack.name for attack in REPORT_ATTACKS]
    assert all(row["answers"] == 2 and row["moved"] == row["moved_answers"] == row["lost@1"] == 0 for row in rows)
    own = {row["attack"]: row["own_moved"] for row in rows}
    assert own["100 remembered successes of the last one"] > 0
