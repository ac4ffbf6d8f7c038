"""Claimed providers against verified ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.trust.precedence import claims, provider_key
from tests.builders import a_profile


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


def test_names_in_other_scripts_differ():
    assert provider_key("支付宝") != provider_key("微信支付")
    assert provider_key("支付宝") == provider_key("支付宝 Ltd.")


@given(st.text(max_size=40))
def test_every_text_has_a_key(name):
    provider_key(name)


def a_claim(namespace: str, provider: str, *, verified: str = ""):
    return a_profile(namespace=namespace, name=f"of {namespace}", provider=provider, verified=verified)


def test_who_claims_a_verified_provider_is_found_with_those_that_have_it():
    stripe = a_claim("com.stripe", "whatever", verified="Stripe")
    more = a_claim("com.stripe.mcp", "", verified="Stripe")
    evil = a_claim("evil.example", "Stripe, Inc.")
    others = [a_claim("com.square", "Square"), a_claim("com.bare", ""), a_claim("com.acme", "Stripe", verified="Acme")]
    assert claims([evil, stripe, *others, more]) == {evil.id: (stripe, more)}


def test_without_a_verified_provider_nobody_is_accused():
    assert claims([a_claim("com.stripe", "Stripe"), a_claim("evil.example", "Stripe")]) == {}
    assert claims([a_claim("com.stripe", "", verified="Stripe"), a_claim("com.other", "")]) == {}
