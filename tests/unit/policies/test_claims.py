"""Who stands behind whom: copies, claimed providers, and the rule that applies it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.policies.claims import apply_precedence, claims, copies, provider_key
from mats.domain.profile.profile import Profile
from mats.domain.search.blend import PAPER_TRUST
from tests.builders import a_profile

DESCRIPTION = "Gives money back to the card it came from, within the hour, in every currency that banks know."
EARLY, SOON, LATE = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00Z", "2026-03-01T00:00:00Z"
COPIES = {
    "word for word": DESCRIPTION,
    "case and spaces": f"  {DESCRIPTION.upper()} ",
    "a word more": f"{DESCRIPTION} Fast.",
    "a word less": DESCRIPTION.replace(" every", ""),
    "another order": "Within the hour, in every currency that banks know, gives money back to the card it came from.",
    "zero-width": DESCRIPTION.replace("a", "a\u200b"),
    "a space inside a word": DESCRIPTION.replace("money", "mo ney"),
    "Cyrillic letters": DESCRIPTION.replace("e", "\u0435").replace("o", "\u043e"),
    "Greek letters": DESCRIPTION.replace("v", "\u03bd").replace("o", "\u03bf"),
    "full width": "".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in DESCRIPTION),
    "a capital I for l": DESCRIPTION.replace("l", "I"),
    "accents": DESCRIPTION.replace("e", "\u00e9"),
    "soft hyphens": DESCRIPTION.replace("urr", "ur\u00adr"),
}


def profile(namespace: str, description: str = DESCRIPTION, *, since: str = EARLY, **others) -> Profile:
    made = a_profile(**{"namespace": namespace, "description": description, **others})
    return made.model_copy(update={"first_registered": since})


def copied(*profiles: Profile, unrated: int = 50) -> set[str]:
    return {id.partition("/")[0] for id in copies(profiles, unrated=unrated)}


@pytest.mark.parametrize("description", COPIES.values(), ids=COPIES)
def test_a_later_copy_is_flagged_and_its_original_is_not(description: str):
    original, copy = profile("com.a"), profile("com.b", description, since=LATE, name="another_name")
    assert copies([copy, original], unrated=50) == {copy.id: [original.id]}


def test_trust_tells_the_original_from_the_copy_before_age_does():
    assert copied(profile("com.old"), profile("com.new", since=LATE, trust=80)) == {"com.old"}
    assert copied(profile("com.old"), profile("com.new", since=LATE, trust=40)) == {"com.new"}
    assert copied(profile("com.old", trust=20), profile("com.new", since=LATE), unrated=PAPER_TRUST.unrated_trust) == {
        "com.old"
    }


def test_within_a_day_neither_comes_before_the_other_and_what_has_no_time_is_older():
    assert copied(profile("com.a"), profile("com.b", name="Refund_Payment", since=SOON)) == set()
    assert copied(profile("com.a", since=""), profile("com.b")) == {"com.b"}


@pytest.mark.parametrize(
    "other",
    [
        profile("com.a", since=LATE, name="other"),
        profile("com.b", "Refunds.", since=LATE, name="other"),
        profile("com.b", "Takes money from an account, within the week, in any currency that it knows.", since=LATE),
    ],
    ids=["the same namespace", "a short description", "another description"],
)  # fmt: skip
def test_what_is_no_copy_is_not_flagged(other: Profile):
    assert copied(profile("com.a"), other) == set()


def test_short_descriptions_are_copies_under_the_same_name_only():
    assert copied(profile("com.a", "Refunds."), profile("com.b", "Refunds.", since=LATE, name="other")) == set()
    assert copied(profile("com.a", "Refunds."), profile("com.b", "Refunds.", since=LATE)) == {"com.b"}
    assert copied(profile("com.a", "Refunds."), profile("com.b", "Refunds.")) == set()


@given(
    st.lists(
        st.builds(
            profile,
            st.sampled_from(["com.a", "com.b", "com.c"]),
            st.sampled_from([DESCRIPTION, f"{DESCRIPTION} Fast.", DESCRIPTION[::-1], "Refunds.", ""]),
            name=st.sampled_from("xyz"),
            since=st.sampled_from(["", EARLY, LATE]),
            trust=st.sampled_from([None, 20, 80]),
        ),
        unique_by=lambda each: each.id,
        max_size=6,
    ),
    st.data(),
)
def test_originals_are_of_other_namespaces_and_as_trusted_in_any_order(profiles, data):
    found = copies(profiles, unrated=50)
    by_id = {each.id: each for each in profiles}
    for id, originals in found.items():
        assert all(by_id[each].namespace != by_id[id].namespace for each in originals)
        assert all((by_id[each].trust or 50) >= (by_id[id].trust or 50) for each in originals)
    again = copies(data.draw(st.permutations(profiles)), unrated=50)
    assert {id: set(originals) for id, originals in again.items()} == {id: set(each) for id, each in found.items()}


@pytest.mark.parametrize(
    "name",
    [
        "Stripe", "stripe", "STRIPE", "Stripe, Inc.", "Stripe Inc", "Stripe LLC", "Stripe L.L.C.", "stripe.com",
        "www.stripe.com", "Stripe (official)", "Official Stripe", "The Stripe Team", "Stripe™", "Stripe®", "Stripe ✅",
        "Ѕtripe", "Strіpe", "Ｓｔｒｉｐｅ", "S t r i p e", "S.t.r.i.p.e", "Str\u200bipe", "Strípe", "str1pe",
        "Stripe Verified", "StripeOfficial", "Stripe MCP Server", " stripe ",
        "Ⓢtripe", "🅂🅃🅁🄸🄿🄴", "🅢tripe", "ꓢtripe", "ᏚᎢᎡᏆᏢᎬ", "ՏtriРe", "șŧripe", "stɾiƥe", "Strip℮", "S\u0489tripe",
        "https://www.stripe.com", "by Stripe", "Stripe\u2800",
    ],
)  # fmt: skip
def test_spellings_of_one_name_are_one_provider(name):
    assert provider_key(name) == provider_key("Stripe")


@pytest.mark.parametrize(
    "name", ["Stripes", "Strip", "Square", "Stripe Payments", "Ripest", "", "Official", "Inc.", "tripe", "+", "™"]
)
def test_other_names_are_other_providers(name):
    assert provider_key(name) != provider_key("Stripe")
    assert provider_key("支付宝") == provider_key("支付宝 Ltd.") != provider_key("微信支付")


def a_claim(namespace: str, provider: str, *, verified: str = ""):
    return a_profile(namespace=namespace, name=f"of {namespace}", provider=provider, verified=verified)


def test_who_claims_a_verified_provider_is_found_with_those_that_have_it():
    stripe = a_claim("com.stripe", "whatever", verified="Stripe")
    more = a_claim("com.stripe.mcp", "", verified="Stripe")
    evil = a_claim("evil.example", "Stripe, Inc.")
    others = [a_claim("com.square", "Square"), a_claim("com.bare", ""), a_claim("com.acme", "Stripe", verified="Acme")]
    assert claims([evil, stripe, *others, more]) == {evil.id: (stripe, more)}


LIKE = ("Stripe Payments", "Stripee", "getstripe", "5tripe", "Stripe (official)", "Ѕtripe")


@pytest.mark.parametrize("name", [*LIKE, "Striped Socks", "Square", "", "Outdoor Pinstripe"])
def test_a_name_that_resembles_a_verified_provider_is_a_claim(name):
    stripe, other = a_claim("com.stripe", "", verified="Stripe"), a_claim("evil.example", name)
    assert claims([other, stripe]) == ({other.id: (stripe,)} if name in LIKE else {})


@pytest.mark.parametrize(
    "namespace",
    ["com.stripe-mcp", "com-stripe.mcp", "com.strlpe.mcp", "com.str1pe", "mcp.stripe.com", "io.github.stripe.mcp"],
)
def test_a_namespace_that_looks_like_a_rated_one_is_marked_and_what_is_beside_it_is_not(namespace):
    rated = a_profile(namespace="com.stripe.mcp", name="refund", trust=80)
    like, beside = (a_profile(namespace=each, name="refund") for each in (namespace, "com.stripe.beta"))
    assert claims([like, beside, rated]) == {like.id: (rated,)}
    assert claims([like, beside]) == claims([like, a_profile(namespace="com.stripe.mcp", trust=40)]) == {}


def test_without_a_verified_provider_nobody_is_accused():
    assert claims([a_claim("com.stripe", "Stripe"), a_claim("evil.example", "Stripe")]) == {}


ORDERS = st.permutations(range(8)).flatmap(lambda order: st.integers(0, 8).map(lambda count: order[:count]))
RULES = st.dictionaries(st.integers(0, 9), st.frozensets(st.integers(0, 9), max_size=4), max_size=6)
ACYCLIC = RULES.map(lambda rule: {key: {other for other in above if other < key} for key, above in rule.items()})
"""Each stands below smaller numbers only."""


@given(ORDERS, ACYCLIC)
def test_whoever_moves_stands_directly_below_the_last_of_those_named_or_with_others_that_moved(order, rule):
    placed = apply_precedence(order, rule)
    for key in placed:
        above = rule.get(key, set()).intersection(order)
        if not above or all(order.index(other) < order.index(key) for other in above):
            continue
        between = placed[max(placed.index(other) for other in above) + 1 : placed.index(key)]
        assert all(rule.get(other) for other in between)


@given(ORDERS, ACYCLIC, RULES)
def test_everyone_stands_below_those_that_the_first_rule_names(order, first, second):
    placed = apply_precedence(order, first, second)
    assert sorted(placed) == sorted(order)
    for place, key in enumerate(placed):
        assert not first.get(key, set()).intersection(placed[place + 1 :])


@given(ORDERS, RULES)
def test_an_order_that_agrees_stays_and_so_does_one_without_rules(order, rule):
    assert apply_precedence(order) == list(order)
    placed = apply_precedence(order, rule)
    assert apply_precedence(placed, {}) == placed


def test_a_circle_keeps_its_order():
    assert apply_precedence("abc", {"a": "b", "b": "a"}) == ["c", "a", "b"]
