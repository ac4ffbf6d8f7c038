import pytest

from mats.domain.capability.capability import Id
from mats.domain.learning.reliability import TrustRule
from mats.domain.profile.profile import Profile
from mats.domain.ranking.blend import PAPER_WEIGHTS, Scale
from mats.domain.ranking.named import MOST_EXACT, Exactness, asked_keys, exact_first, exact_keys, exactness, fold
from mats.domain.shortlist.rank import Candidate, Scoring, rank
from mats.domain.trust.near_duplicates import limit_near_duplicates
from tests.builders import a_profile

SCORING = Scoring(
    scale=Scale(c=0.5, lo=0.0, hi=1.0), weights=PAPER_WEIGHTS, trust=TrustRule(prior=50, proportional=True)
)


def a_tool(name: str = "issues/create", title: str = "Create an issue", **about) -> Profile:
    return a_profile(namespace=about.pop("namespace", "com.acme"), name=name, descriptor={"summary": title}, **about)


@pytest.mark.parametrize(
    ("query", "exact"),
    [
        ("com.acme/issues/create", Exactness.ID),
        ("COM.ACME/ISSUES/CREATE", Exactness.ID),
        ("issues/create", Exactness.SPELLED),
        ("Issues, create!", Exactness.SPELLED),
        ("create an issue", Exactness.SPELLED),
        ("create issues", Exactness.NAME),
        ("call com.acme/issues/create for me", Exactness.CONTAINS),
        ("how do I create an issue", None),
        ("issues", None),
        ("???", None),
    ],
)
def test_a_query_is_an_id_a_name_or_a_title_however_it_is_spelled(query, exact):
    tool = a_tool()
    assert exactness(query, tool) is exact
    assert exact is None or set(asked_keys(query)) & set(exact_keys(tool))


def test_a_title_of_three_words_is_found_within_a_query():
    tool = a_tool(title="Delete a repository secret")
    assert exactness("please delete the repository secrets of acme", tool) is Exactness.CONTAINS
    assert f"={fold('Delete a repository secret')}" in asked_keys("please delete the repository secrets of acme")


def test_exact_matches_are_ordered_by_trust_then_age_and_are_few():
    def since(day: int, trust: int | None = None) -> Profile:
        tool = a_tool(namespace=f"com.n{day}", trust=trust)
        return tool.model_copy(update={"first_registered": f"2026-01-{day:02}T00:00:00"})

    flood = [since(day) for day in range(28, 10, -1)]
    found = exact_first("create an issue", [*flood, since(9), since(10, trust=90)], unrated=50)
    assert list(found)[:2] == ["com.n10/issues/create", "com.n9/issues/create"]
    assert len(found) == MOST_EXACT


def places(*candidates: Candidate) -> list[Id]:
    scores = {candidate.id: 0.9 - place / 10 for place, candidate in enumerate(candidates)}
    return [result.id.split("/")[0] for result in rank(candidates, scores, None, SCORING)]


@pytest.mark.parametrize(
    ("exact", "trust", "order"),
    [
        (Exactness.ID, None, ["com.x", "com.trusted", "com.a", "com.b"]),
        (Exactness.NAME, None, ["com.trusted", "com.x", "com.a", "com.b"]),
        (Exactness.NAME, 90, ["com.x", "com.trusted", "com.a", "com.b"]),
        (Exactness.CONTAINS, None, ["com.trusted", "com.a", "com.x", "com.b"]),
        (None, None, ["com.trusted", "com.a", "com.b", "com.x"]),
    ],
)
def test_an_exact_match_comes_first_but_its_name_passes_nothing_of_more_trust(exact, trust, order):
    others = [
        Candidate(profile=a_tool(f"tool-{space}", "x", namespace=f"com.{space}", trust=rated), bm25=None, cosine=None)
        for space, rated in (("trusted", 90), ("a", None), ("b", None))
    ]
    asked = Candidate(profile=a_tool(namespace="com.x", trust=trust), bm25=None, cosine=None, exact=exact)
    assert places(*others, asked) == order


TEXT = "Adds what is asked for to the settings, for everyone who may see it, within the hour."


@pytest.mark.parametrize(
    ("one", "other", "namespace", "near"),
    [
        ("get_org_secret", "get_org_secrets", "com.acme", True),
        ("get_org_secret", "delete_org_secret", "com.acme", False),
        ("get_org_secret", "get_repo_secret", "com.acme", False),
        ("get_org_secret", "delete_org_secret", "com.copy", True),
    ],
)
def test_another_verb_or_scope_is_no_near_duplicate_unless_somebody_else_has_it(one, other, namespace, near):
    both = [a_profile(name=one, description=TEXT, namespace="com.acme")]
    both.append(a_profile(name=other, description=TEXT, namespace=namespace))
    assert bool(limit_near_duplicates(both, unrated=50).near) is near


def test_an_exact_match_stays_among_near_duplicates_but_takes_no_place_of_an_older_one():
    def twin(number: int, day: str) -> Profile:
        made = a_profile(namespace=f"com.n{number}", name=f"tool_{number}", description=TEXT)
        return made.model_copy(update={"first_registered": f"2026-01-{day}T00:00:00"})

    old = [twin(number, "01") for number in range(3)]
    assert 3 in limit_near_duplicates([*old, twin(3, "01")], unrated=50, exact=[3]).kept
    copies = [twin(number, "02") for number in range(1, 4)]
    assert 0 in limit_near_duplicates([twin(0, "01"), *copies], unrated=50, exact=[1, 2, 3]).kept
