"""The preview of a registration; and that it changes nothing."""

import copy
from dataclasses import replace
from typing import Any

from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.origin import Placed
from mats.domain.profile.profile import Enrichment
from mats.domain.ranking.blend import Signal, Thresholds, VerdictThresholds
from mats.local.preview.report import Preview, choose_queries, without_example
from mats.ports import Written
from tests.builders import a_discover, a_profile, a_registration
from tests.fakes import FakeEncoder, ScriptedReranker, ScriptedWriter
from tests.world import World

EXACT = Thresholds(match=0.5, weak=0.1)


class PreviewWorld(World):
    """A registry with an index over it, and a preview of what is not there."""

    def __init__(
        self, *registrations: Registration, writer: ScriptedWriter | None = None, encoder: bool = True
    ) -> None:
        self.encoder = FakeEncoder()
        self.reranker = ScriptedReranker(lambda query, profiles: DependencyFailed("must not be asked"))
        given = self.encoder if encoder else None
        super().__init__(encoder=given)
        for registration in registrations:
            self.register(registration)
        discover = a_discover(self.index, encoder=given, reranker=self.reranker)
        self.preview = Preview(
            discover=replace(discover, thresholds=VerdictThresholds(reranked=EXACT, hybrid=EXACT, lexical=EXACT)),
            index=self.index,
            maker=replace(self.enrich.maker, writer=writer),
            registry=self.registry,
            trust=self.trust,
        )

    def state(self) -> Any:
        kept = (self.registry.items, self.trust.given, self.profiles.kept, self.profiles.earlier, self.index.entries)
        return copy.deepcopy(kept)


TIDES = a_registration(
    name="tide_table", description="Says when the water is high or low at a harbour on a day.",
    examples=["when is high water at the harbour tomorrow"],
)  # fmt: skip
REFUND = a_registration(name="refund", description="Gives the money of a card payment back.")


def flags(report) -> set[str]:
    return {one.flag for one in report.advice}


def test_a_preview_changes_nothing_and_asks_no_reranker():
    world = PreviewWorld(TIDES, REFUND)
    before = world.state()
    world.preview(a_registration(name="new", description="high water", examples=["tides please"]))
    world.preview(TIDES)
    assert world.state() == before
    assert world.reranker.asked == 0


def test_the_owners_examples_are_the_queries():
    report = PreviewWorld(REFUND).preview(TIDES)
    (query,) = report.queries
    assert (query.query, query.origin) == ("when is high water at the harbour tomorrow", "its examples")
    assert query.place == 1
    assert report.placed is Placed.NEW


def test_without_examples_queries_are_derived_from_the_text():
    report = PreviewWorld(TIDES).preview(
        a_registration(name="refundCard", tags=["money"], description="Pays back. Slowly.")
    )
    assert [(p.query, p.origin) for p in report.queries] == [
        ("Pays back.", "derived from its description"),
        ("refund Card", "derived from its name"),
        ("money", "derived from its tags"),
    ]
    assert "no examples" in flags(report)


def test_a_registration_without_words_has_no_queries():
    assert choose_queries(a_registration(name="?", description=None), a_profile(name="?", description=None)) == []


def test_competitors_are_named_with_the_reason():
    world = PreviewWorld(TIDES, REFUND)
    world.trust.put(TIDES.id, Assigned(trust=90))
    world.register(TIDES)
    weak = a_registration(name="clock", description="Says what time it is.", examples=["high water at the harbour"])
    report = world.preview(weak)
    (query,) = report.queries
    assert query.place_unaided
    assert query.place_unaided > 1
    competitor = query.outranked_by[0]
    assert competitor.id == TIDES.id
    assert any("harbour" in why for why in competitor.why)
    assert any("has more trust" in why for why in competitor.why)
    assert "outranked" in flags(report)


def test_a_registered_capability_does_not_compete_with_itself():
    world = PreviewWorld(TIDES, REFUND)
    report = world.preview(a_registration(**{**TIDES.item(), "version": "2"}))
    assert report.placed is Placed.CHANGED
    assert not report.duplicates
    assert all(competitor.id != TIDES.id for query in report.queries for competitor in query.outranked_by)
    assert "replaces" in flags(report)


def test_an_id_of_another_kind_is_taken():
    report = PreviewWorld(TIDES).preview(a_registration(**{**TIDES.item(), "kind": "agent"}))
    assert report.placed is Placed.OTHER_KIND
    assert report.advice[0].flag == "taken id"


def test_a_near_duplicate_has_its_overlap_and_its_cosine():
    copied = a_registration(**{**TIDES.item(), "namespace": "org.copy", "examples": []})
    (duplicate,) = PreviewWorld(TIDES, REFUND).preview(copied).duplicates
    assert (duplicate.id, duplicate.same_namespace, duplicate.overlap) == (TIDES.id, False, 1.0)
    assert duplicate.cosine
    assert duplicate.cosine > 0.7


def test_without_an_encoder_only_words_are_compared():
    report = PreviewWorld(TIDES, encoder=False).preview(a_registration(**{**TIDES.item(), "namespace": "org.copy"}))
    assert report.duplicates[0].cosine is None
    assert "encoder" in report.without[0]
    world = PreviewWorld(TIDES)
    world.encoder.broken = True
    assert "encoder" in world.preview(REFUND).without[0]


def test_a_failing_writer_leaves_the_owners_description():
    written = Enrichment(summary="Tells tides.", positive_examples=("is it low water now",))
    report = PreviewWorld(writer=ScriptedWriter(lambda r: Written(enrichment=written))).preview(
        a_registration(name="tides", description="Says when the water is high or low.")
    )
    assert report.described_by == "fake-writer"
    assert report.queries[0].origin == "the writer's examples"
    failing = PreviewWorld(writer=ScriptedWriter(lambda r: DependencyFailed("no credentials"))).preview(TIDES)
    assert failing.described_by == "its owner"
    assert "no credentials" in failing.without[0]


def test_hidden_capabilities_are_neither_competitors_nor_duplicates():
    secret = a_registration(**{**TIDES.item(), "namespace": "org.secret", "visible_to": ["finance"]})
    world = PreviewWorld(secret)
    mine = a_registration(**{**TIDES.item(), "visible_to": ["finance"]})
    report = world.preview(mine)
    assert report.duplicates == ()
    assert [query.place for query in report.queries] == [1]
    assert [duplicate.id for duplicate in world.preview(mine, ["finance"]).duplicates] == [secret.id]


def test_signals_of_the_candidate_are_those_of_discovery():
    world = PreviewWorld(REFUND)
    world.trust.put(TIDES.id, Assigned(trust=70))
    (query,) = world.preview(TIDES).queries
    assert query.signals[Signal.QUALITY] == 0.7 * query.signals[Signal.RETRIEVAL]
    assert query.score


def test_without_an_owners_example_fewer_examples_are_the_owners():
    enrichment = Enrichment(positive_examples=("a", "b", "c"))
    profile = a_profile(examples=["a", "b"]).model_copy(update={"enrichment": enrichment})
    for example, left, by_owner in (("a", ("b", "c"), 1), ("c", ("a", "b"), 2), ("d", ("a", "b", "c"), 2)):
        bare = without_example(profile, example)
        assert (bare.enrichment.positive_examples, bare.owner_examples) == (left, by_owner)
