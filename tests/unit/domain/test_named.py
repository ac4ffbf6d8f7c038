"""Products and capabilities that a request names."""

import pytest

from mats.domain.capability.capability import Id
from mats.domain.learning.reliability import TrustRule
from mats.domain.profile.profile import Profile
from mats.domain.ranking.blend import PAPER_WEIGHTS, Scale
from mats.domain.ranking.named import (
    MOST_EXACT,
    Exactness,
    NameUse,
    asked_keys,
    asked_names,
    exact_first,
    exactness,
    fold,
    index_keys,
    names,
    nearest_spaces,
    products_named,
)
from mats.domain.ranking.query import ANYWHERE
from mats.domain.shortlist.rank import Candidate, Scoring, rank
from mats.domain.trust.near_duplicates import limit_near_duplicates
from tests.builders import a_profile

RARE = NameUse(owned=3, elsewhere=0, spaces={"com.linear"}, trusted=set())


@pytest.mark.parametrize(
    ("namespace", "provider", "expected"),
    [
        ("com.stripe.mcp", "Stripe, Inc.", {"stripe", "stripe inc"}),
        ("io.github.someone.google-maps-mcp-server", "", {"googl map"}),
        ("com.acme.api", "x" * 61, {"acm"}),
    ],
)
def test_names_are_the_telling_labels_of_a_namespace_and_its_provider(namespace, provider, expected):
    assert names(namespace, provider) == expected


@pytest.mark.parametrize(
    ("text", "use", "strength"),
    [
        ("make a ticket in Linear", RARE, 1),
        ("make a ticket in my linear", RARE, 1),
        ("a new Linear ticket", RARE, 1),
        ("list all tools of linear", RARE, 1),
        ("linear", RARE, 1),
        ("a new linear ticket", RARE, 0.25),
        ("Linear ticket", RARE, 0.25),
        ("a new linear ticket", RARE._replace(trusted={"com.linear"}), 0.6),
        ("a ticket in Linear Algebra", RARE, 0.25),
        ("a ticket in Linear", RARE._replace(elsewhere=12), 0),
        ("see https://linear.app/x in Safari", RARE, None),
        ("an entry in a line", RARE, None),
    ],
)
def test_a_name_is_as_strong_as_the_sentence_and_the_registry_make_it(text, use, strength):
    known = {name: use for name in asked_names(text) if name == "linear"}
    assert products_named(text, known).strengths.get("linear") == (strength or None)


def test_what_belongs_gains_and_only_what_does_not_mention_the_product_loses():
    products = products_named("a ticket in Linear", {"linear": RARE})
    owner, twin = (
        a_profile(namespace=space, name="x", provider="Linear") for space in ("com.linear", "com.linear.evil")
    )
    mention, other = (
        a_profile(namespace="com.a", name="x", description=text) for text in ("Linear tickets", "tickets")
    )
    gains = [products.shift(each) for each in (owner, twin, mention, other)]
    assert gains[0] > gains[1] == gains[2] == 0 > gains[3]
    assert products.within(ANYWHERE).exact_namespaces == {"com.linear"}


@pytest.mark.parametrize(
    ("wanted", "nearest"),
    [("com.stripe.*", ["com.stripe"]), ("com.git", ["com.github", "com.gitlab", "com.gitlab.mcp"]), ("nope.nope", [])],
)
def test_the_nearest_namespaces_share_a_spelling_or_a_word(wanted, nearest):
    known = ["com.stripe.mcp", "com.gitlab.mcp", "com.github", "org.x"]
    assert sorted(nearest_spaces(wanted, known)) == nearest


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
        ("create an issue", Exactness.SPELLED),
        ("create issues", Exactness.NAME),
        ("call com.acme/issues/create for me", Exactness.CONTAINS),
        ("how do I create an issue", None),
        ("???", None),
    ],
)
def test_a_query_is_an_id_a_name_or_a_title_however_it_is_spelled(query, exact):
    tool = a_tool()
    assert exactness(query, tool) is exact
    assert exact is None or set(asked_keys(query)) & set(index_keys(tool))


def test_a_title_of_three_words_is_found_within_a_query():
    title, query = "Delete a repository secret", "please delete the repository secrets of acme"
    assert exactness(query, a_tool(title=title)) is Exactness.CONTAINS
    assert f"={fold(title)}" in asked_keys(query)


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
