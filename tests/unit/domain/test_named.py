"""Products that a request names."""

import pytest

from mats.domain.ranking.named import NameUse, asked_names, names, nearest_spaces, products_named
from mats.domain.ranking.query import ANYWHERE
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
        ("A NEW LINEAR TICKET", RARE, 0.25),
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
