"""What a registration is told before it is made; and that telling it changes nothing."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from mats.domain.errors import DependencyFailed
from mats.domain.placement import Placed
from mats.domain.profile import Cause, Enrichment
from mats.domain.query import Filter
from mats.domain.ranking import Signal, Thresholds, VerdictThresholds
from mats.domain.registration import Registration
from mats.ports import Change, Stored, Written
from mats.usecases.enrich import Enrich
from mats.usecases.overlay import Overlay
from mats.usecases.preview import Preview, queries
from tests.builders import a_discover, a_profile, a_registration
from tests.fakes import (
    AtOnce,
    FakeEncoder,
    MemoryIndex,
    MemoryProfiles,
    MemoryRegistry,
    MemoryTrust,
    ScriptedReranker,
    ScriptedWriter,
)

EXACT = Thresholds(match=0.5, weak=0.1)


class World:
    """A registry with an index over it, and a preview of what is not there."""

    def __init__(
        self, *registrations: Registration, writer: ScriptedWriter | None = None, encoder: bool = True
    ) -> None:
        self.registry, self.trust = MemoryRegistry(), MemoryTrust()
        self.profiles, self.index = MemoryProfiles(), MemoryIndex()
        self.encoder = FakeEncoder()
        self.reranker = ScriptedReranker(lambda query, profiles: DependencyFailed("must not be asked"))
        self.enrich = Enrich(
            registry=self.registry, trust=self.trust, profiles=self.profiles, index=self.index,
            encoder=self.encoder if encoder else None, writer=None, readers=AtOnce(),
        )  # fmt: skip
        discover = a_discover(self.index, encoder=self.encoder if encoder else None, reranker=self.reranker)
        discover = replace(discover, thresholds=VerdictThresholds(reranked=EXACT, hybrid=EXACT, lexical=EXACT))
        self.put(*registrations)
        self.preview = Preview(
            discover=discover, enrich=replace(self.enrich, writer=writer), registry=self.registry, trust=self.trust
        )

    def put(self, *registrations: Registration) -> None:
        self.registry.put(registrations)
        self.enrich([Change(r.id, Cause(event_id="1", time="2026")) for r in registrations])

    def state(self) -> Any:
        kept = (self.registry.items, self.trust.given, self.profiles.kept, self.profiles.earlier, self.index.entries)
        return copy.deepcopy(kept)


TIDES = a_registration(
    name="tide_table", description="Says when the water is high or low at a harbour on a day.",
    examples=["when is high water at the harbour tomorrow"],
)  # fmt: skip
REFUND = a_registration(name="refund", description="Gives the money of a card payment back.")


def flags(outlook) -> set[str]:
    return {one.flag for one in outlook.advice}


def test_nothing_is_changed_and_no_judge_is_asked():
    world = World(TIDES, REFUND)
    before = world.state()
    world.preview(a_registration(name="new", description="high water", examples=["tides please"]))
    world.preview(TIDES)
    assert world.state() == before
    assert world.reranker.asked == 0


def test_the_owners_examples_are_the_queries_and_say_so():
    outlook = World(REFUND).preview(TIDES)
    (prospect,) = outlook.prospects
    assert (prospect.query, prospect.origin) == ("when is high water at the harbour tomorrow", "its examples")
    assert prospect.place == 1
    assert outlook.placed is Placed.NEW


def test_without_examples_queries_are_derived_of_the_text_and_say_so():
    outlook = World(TIDES).preview(a_registration(name="refundCard", tags=["money"], description="Pays back. Slowly."))
    assert [(p.query, p.origin) for p in outlook.prospects] == [
        ("Pays back.", "derived from its description"),
        ("refund Card", "derived from its name"),
        ("money", "derived from its tags"),
    ]
    assert "no examples" in flags(outlook)


def test_of_a_thing_that_says_nothing_no_query_is_made():
    assert queries(a_registration(name="?", description=None), a_profile(name="?", description=None)) == []


def test_a_candidate_behind_others_is_told_who_and_why():
    world = World(TIDES, REFUND)
    world.trust.put(TIDES.id, 90)
    world.put(TIDES)
    weak = a_registration(name="clock", description="Says what time it is.", examples=["high water at the harbour"])
    outlook = world.preview(weak)
    (prospect,) = outlook.prospects
    assert prospect.unaided
    assert prospect.unaided > 1
    rival = prospect.rivals[0]
    assert rival.id == TIDES.id
    assert any("harbour" in why for why in rival.why)
    assert any("trusted more" in why for why in rival.why)
    assert "outranked" in flags(outlook)


def test_an_example_that_finds_it_only_by_its_own_words_is_seen_through():
    outlook = World(TIDES).preview(
        a_registration(name="clock", description="Says the time.", examples=["high water at the harbour on a day"])
    )
    (prospect,) = outlook.prospects
    assert prospect.unaided == 2
    assert any("word for word" in one.what for one in outlook.advice if one.flag == "outranked") or prospect.place == 2


def test_what_is_registered_is_compared_with_others_and_not_with_itself():
    world = World(TIDES, REFUND)
    outlook = world.preview(a_registration(**{**TIDES.item(), "version": "2"}))
    assert outlook.placed is Placed.CHANGED
    assert not outlook.twins
    assert all(rival.id != TIDES.id for prospect in outlook.prospects for rival in prospect.rivals)
    assert "replaces" in flags(outlook)


def test_an_id_of_another_kind_is_said_to_be_taken():
    outlook = World(TIDES).preview(a_registration(**{**TIDES.item(), "kind": "agent"}))
    assert outlook.placed is Placed.OTHER_KIND
    assert outlook.advice[0].flag == "taken id"


def test_a_near_duplicate_is_found_by_words_and_by_meaning_with_both_numbers():
    copied = a_registration(**{**TIDES.item(), "namespace": "org.copy", "examples": []})
    (twin,) = World(TIDES, REFUND).preview(copied).twins
    assert (twin.id, twin.same_owner, twin.overlap) == (TIDES.id, False, 1.0)
    assert twin.cosine
    assert twin.cosine > 0.7


def test_without_an_encoder_words_alone_are_compared_and_that_is_said():
    outlook = World(TIDES, encoder=False).preview(a_registration(**{**TIDES.item(), "namespace": "org.copy"}))
    assert outlook.twins[0].cosine is None
    assert "encoder" in outlook.without[0]
    world = World(TIDES)
    world.encoder.broken = True
    assert "encoder" in world.preview(REFUND).without[0]


def test_a_writer_describes_it_if_there_is_one_and_where_it_fails_its_owner_does():
    written = Enrichment(summary="Tells tides.", positive_examples=("is it low water now",))
    outlook = World(writer=ScriptedWriter(lambda r: Written(enrichment=written))).preview(
        a_registration(name="tides", description="Says when the water is high or low.")
    )
    assert outlook.described_by == "fake-writer"
    assert outlook.prospects[0].origin == "the writer's examples"
    failing = World(writer=ScriptedWriter(lambda r: DependencyFailed("no credentials"))).preview(TIDES)
    assert failing.described_by == "its owner"
    assert "no credentials" in failing.without[0]


def test_what_the_caller_may_not_see_is_neither_a_rival_nor_a_twin():
    secret = a_registration(**{**TIDES.item(), "namespace": "org.secret", "visible_to": ["finance"]})
    world = World(secret)
    mine = a_registration(**{**TIDES.item(), "visible_to": ["finance"]})
    outlook = world.preview(mine)
    assert outlook.twins == ()
    assert [prospect.place for prospect in outlook.prospects] == [1]
    assert [twin.id for twin in world.preview(mine, ["finance"]).twins] == [secret.id]


def test_an_empty_registry_has_no_rivals():
    outlook = World().preview(TIDES)
    assert [(p.place, p.rivals) for p in outlook.prospects] == [(1, ())]


def test_an_overlay_shows_the_candidate_in_place_of_its_earlier_self_and_writes_nothing():
    world = World(TIDES, REFUND)
    profile = a_profile(**{**TIDES.item(), "description": "Says nothing of water any more."})
    overlay = Overlay.over(world.index, Stored(profile, world.encoder.encode_query("clock")), Filter())
    overlay.scores.learn(["refund", "nothing"])
    everything = Filter()
    assert overlay.fetch([TIDES.id])[TIDES.id].source == profile.source
    hits = overlay.lexical(["nothing"], everything, depth=5)
    assert [hit.id for hit in hits] == [TIDES.id]
    assert overlay.bm25_of(["nothing"], [TIDES.id, REFUND.id]).keys() == {TIDES.id, REFUND.id}
    vector = world.encoder.encode_query("clock")
    assert overlay.neural(vector, everything, depth=1)[0].id == TIDES.id
    assert overlay.cosine_of(vector, [TIDES.id])[TIDES.id] == pytest.approx(1.0, abs=1e-6)
    assert overlay.page(everything, after=None, limit=10) == world.index.page(everything, after=None, limit=10)
    assert list(overlay.revisions()) == list(world.index.revisions())
    for write in (lambda: overlay.put([]), lambda: overlay.purge([])):
        with pytest.raises(TypeError):
            write()


def test_signals_of_the_candidate_are_those_of_discovery():
    world = World(REFUND)
    world.trust.put(TIDES.id, 70)
    (prospect,) = world.preview(TIDES).prospects
    assert prospect.signals[Signal.QUALITY] == 0.7
    assert prospect.score
