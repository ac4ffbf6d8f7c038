"""The preview of a registration; and that it changes nothing."""

import copy
import re
from dataclasses import replace
from typing import Any

import pytest

from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.profile import Enrichment
from mats.domain.search.candidate import Candidate, Exactness, Marks, Result
from mats.domain.search.signals import Signal
from mats.domain.search.verdict import Thresholds, VerdictThresholds
from mats.local.preview.report import Preview, choose_queries, reasons, without_example
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


def test_a_preview_changes_nothing_and_asks_no_reranker():
    world = PreviewWorld(TIDES, REFUND)
    before = world.state()
    world.preview(a_registration(name="new", description="high water", examples=["tides please"]))
    world.preview(TIDES)
    assert world.state() == before
    assert world.reranker.asked == 0


def test_without_examples_queries_are_derived_from_the_text():
    report = PreviewWorld(TIDES).preview(
        a_registration(name="refundCard", tags=["money"], description="Pays back. Slowly.")
    )
    assert [(one["query"], one["origin"]) for one in report["queries"]] == [
        ("Pays back.", "derived from its description"),
        ("refund Card", "derived from its name"),
        ("money", "derived from its tags"),
    ]


def test_a_registration_without_words_has_no_queries():
    assert choose_queries(a_registration(name="?", description=None), a_profile(name="?", description=None)) == []


def test_what_comes_before_is_named_with_the_signals_and_the_words():
    world = PreviewWorld(TIDES, REFUND)
    world.trust.put(TIDES.id, Assigned(trust=90))
    world.register(TIDES)
    weak = a_registration(name="clock", description="Says what time it is.", examples=["high water at the harbour"])
    (query,) = world.preview(weak)["queries"]
    assert query["place"] == 1 + len(query["before"]) == 3
    assert [(one["id"], one["place"]) for one in query["before"]] == [(TIDES.id, 1), (REFUND.id, 2)]
    score, words = query["before"][0]["why"]
    assert re.fullmatch(r"score 0\.\d\d against 0\.\d\d: retrieval \+0\.\d\d, .*quality \+0\.\d\d.*", score)
    assert "harbour" in words


def a_result(score: float, name: str = "one", *, trust: int | None = None, **more: Any) -> Result:
    suspicious, moved = more.pop("suspicious", ()), more.pop("moved", False)
    candidate = Candidate(profile=a_profile(name=name, trust=trust), bm25=1.0, cosine=0.5, marks=Marks(**more))
    return Result(
        candidate=candidate, score=score, signals={Signal.RETRIEVAL: score}, weights={Signal.RETRIEVAL: 1.0},
        relevance=score, suspicious=suspicious, moved=moved,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("result", "own", "why"),
    [
        (a_result(0.6), a_result(0.4), "score 0.60 against 0.40: retrieval +0.20"),
        (a_result(0.6, exact=Exactness.ID), a_result(0.7), "exact match: id"),
        (a_result(0.6, exact=Exactness.ID), a_result(0.4, exact=Exactness.ID), "score 0.60 against 0.40: retrieval"),
        (a_result(0.4, trust=80), a_result(0.6), "but operators rated it, and not the candidate"),
        (a_result(0.4), a_result(0.6, new=True), "but the candidate is new"),
        (a_result(0.4), a_result(0.6, suspicious=("has the text of x",)), "but the candidate has the text of x"),
        (a_result(0.4), a_result(0.6, unfit="needs bearer"), "but needs bearer"),
        (a_result(0.4, moved=True), a_result(0.6), "but callers' reports placed it higher"),
        (a_result(0.4), a_result(0.4, "two"), "score 0.40 against 0.40; of equals the lower id is first"),
        (a_result(0.4), None, "retrieval did not find the candidate"),
    ],
)
def test_the_reason_is_what_placed_one_of_the_two_or_made_the_scores(result: Result, own: Result | None, why: str):
    assert why in next(reasons(result, own))


def test_without_an_encoder_only_words_are_compared():
    assert "encoder" in PreviewWorld(TIDES, encoder=False).preview(REFUND)["without"][0]
    world = PreviewWorld(TIDES)
    world.encoder.broken = True
    assert "encoder" in world.preview(REFUND)["without"][0]


def test_a_failing_writer_leaves_the_owners_description():
    written = Enrichment(summary="Tells tides.", positive_examples=("is it low water now",))
    report = PreviewWorld(writer=ScriptedWriter(lambda r: Written(enrichment=written))).preview(
        a_registration(name="tides", description="Says when the water is high or low.")
    )
    assert report["profile"]["described_by"] == "fake-writer"
    assert report["queries"][0]["origin"] == "the writer's example, left out of its text"
    failing = PreviewWorld(writer=ScriptedWriter(lambda r: DependencyFailed("no credentials"))).preview(TIDES)
    assert failing["profile"]["described_by"] == "its owner"
    assert "no credentials" in failing["without"][0]


def test_hidden_capabilities_do_not_come_before():
    secret = a_registration(**{**TIDES.item(), "namespace": "org.secret", "visible_to": ["finance"]})
    world = PreviewWorld(secret)
    mine = a_registration(**{**TIDES.item(), "visible_to": ["finance"]})
    assert [(query["place"], query["looked_at"]) for query in world.preview(mine)["queries"]] == [(1, 1)]
    (query,) = world.preview(mine, ["finance"])["queries"]
    assert [one["id"] for one in query["before"]] == [secret.id]


def test_without_an_owners_example_fewer_examples_are_the_owners():
    enrichment = Enrichment(positive_examples=("a", "b", "c"))
    profile = a_profile(examples=["a", "b"], enrichment=enrichment)
    for example, left, by_owner in (("a", ("b", "c"), 1), ("c", ("a", "b"), 2), ("d", ("a", "b", "c"), 2)):
        bare = without_example(profile, example)
        assert (bare.enrichment.positive_examples, bare.owner_examples) == (left, by_owner)
