"""Requests that are an id, a name or a title."""

import pytest

from mats.domain.capability.capability import Id
from mats.domain.policies.exact import NAMED, Exact, exactness
from mats.domain.policies.policy import Ask, Pool
from mats.domain.profile.index_keys import fold, index_keys
from mats.domain.profile.profile import Enrichment, Profile
from mats.domain.search.candidate import Candidate, Exactness, Marks
from mats.domain.search.query import Filter
from tests.builders import a_profile, rank
from tests.world import indexed

MATCH = 0.7  # The threshold of `rank`


def a_tool(name: str = "issues/create", title: str = "Create an issue", **about) -> Profile:
    return a_profile(namespace=about.pop("namespace", "com.acme"), name=name, descriptor={"summary": title}, **about)


@pytest.mark.parametrize(
    ("query", "exact"),
    [
        ("com.acme/issues/create", Exactness.ID),
        ("COM.ACME/ISSUES/CREATE", Exactness.ID),
        ("issues/create", Exactness.SPELLED),
        ("create an issue", Exactness.SPELLED),
        ("create issues", Exactness.NAME),
        ("call com.acme/issues/create for me", None),
        ("how do I create an issue", None),
        ("???", None),
    ],
)
def test_a_query_is_an_id_a_name_or_a_title_however_it_is_spelled(query, exact):
    tool = a_tool()
    assert exactness(query, tool) is exact
    assert exact is None or f"={fold(query)}" in index_keys(tool)


def test_exact_matches_are_ordered_by_trust_then_age_and_are_few():
    def since(day: int, trust: int | None = None) -> Profile:
        tool = a_tool(namespace=f"com.n{day}", trust=trust)
        return tool.model_copy(update={"first_registered": f"2026-01-{day:02}T00:00:00"})

    flood = [since(day) for day in range(28, 10, -1)]
    index = indexed(*flood, since(9), since(10, trust=90))
    found = Exact(50).look(Ask.of("create an issue", Filter()), index, None, None)
    assert list(found)[:2] == ["com.n10/issues/create", "com.n9/issues/create"]
    assert len(found) == 5


def places(*candidates: Candidate) -> list[Id]:
    scores = {candidate.id: 0.9 - place / 10 for place, candidate in enumerate(candidates)}
    return [result.id.split("/")[0] for result in rank(candidates, scores, Exact(50))]


@pytest.mark.parametrize(
    ("exact", "trust", "order"),
    [
        (Exactness.ID, None, ["com.x", "com.trusted", "com.a", "com.b"]),
        (Exactness.NAME, None, ["com.trusted", "com.x", "com.a", "com.b"]),
        (Exactness.NAME, 90, ["com.x", "com.trusted", "com.a", "com.b"]),
        (None, None, ["com.trusted", "com.a", "com.b", "com.x"]),
    ],
)
def test_an_exact_match_comes_first_but_its_name_passes_nothing_of_more_trust(exact, trust, order):
    others = [
        Candidate(profile=a_tool(f"tool-{space}", "x", namespace=f"com.{space}", trust=rated), bm25=None, cosine=None)
        for space, rated in (("trusted", 90), ("a", None), ("b", None))
    ]
    asked = Candidate(profile=a_tool(namespace="com.x", trust=trust), bm25=None, cosine=None, marks=Marks(exact=exact))
    assert places(*others, asked) == order


def test_what_was_asked_for_by_its_name_has_a_least_relevance():
    marks = (Marks(exact=Exactness.NAME), Marks())
    pair = [Candidate(profile=a_tool(), bm25=1.0, cosine=None, marks=each) for each in marks]
    found = Exact(50).shift(pair, None, Ask.of("x", Filter()), None)
    assert [each.least for each in found] == [NAMED, 0.0]


@pytest.mark.parametrize(
    ("request_", "new", "is_match"),
    [("Where is my parcel?", False, True), ("where is my parcel", True, False), ("where is a parcel", False, False)],
)
def test_an_example_of_the_owner_is_a_match_in_a_registry_of_any_size_unless_it_is_new(request_, new, is_match):
    tool = a_profile(name="track", description="Tracks.", examples=["where is my parcel"])
    ask = Ask.of(request_, Filter())
    pool = Exact(50).choose(Pool(ask=ask, k=1, profiles=[tool]), {}).mark([tool.id], new=new)
    (result,) = rank([Candidate(profile=tool, bm25=0.0, cosine=0.0, marks=pool.marks[tool.id])], {}, Exact(50))
    assert (result.relevance >= MATCH) is is_match


def test_an_example_of_a_writer_is_no_example_of_the_owner():
    written = Enrichment(positive_examples=("mine", "a writer's"))
    tool = a_profile(name="track", enrichment=written, examples=["mine"])
    marks = Exact(50).choose(Pool(ask=Ask.of("a writer's", Filter()), k=1, profiles=[tool]), {}).marks
    assert not marks
