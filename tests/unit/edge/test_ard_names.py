"""Identifiers that anybody can read and nobody can mistake."""

import re
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mats.domain.capability.capability import Kind, capability_id
from mats.domain.errors import RequestInvalid
from mats.edge.ard.identifiers import identifier, namespace_of, parse_identifier, publisher
from tests.ard_models import IDENTIFIER, PROBED

labels = st.text("abcxyz019-", min_size=1, max_size=8) | st.just("localhost")
namespaces = st.lists(labels, min_size=1, max_size=4).map(".".join)
tricky = st.text("_x0f5a:/ .-é", min_size=1, max_size=12)
anything = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=200)
names = tricky | anything


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        ("com.acme.pay", "refund_payment", "urn:air:pay.acme.com:tool:refund_payment"),
        ("com.acme", "docs/read file", "urn:air:acme.com:tool:docs:read_x20_file"),
        ("toolbench", "get-weather", "urn:air:toolbench.localhost:tool:get-weather"),
        ("com.acme", "amazon.nova-micro-v1:0", "urn:air:acme.com:tool:amazon.nova-micro-v1_x3a_0"),
        ("com.acme", "返金", "urn:air:acme.com:tool:_x8fd4__x91d1_"),
        ("com.acme", "parse_xml", "urn:air:acme.com:tool:parse_xml"),
        ("com.acme", "/a//b/", "urn:air:acme.com:tool:_x2f_a_x2f__x2f_b_x2f_"),
        ("com.acme", "_x20_", "urn:air:acme.com:tool:_x5f_x20_"),
    ],
)
def test_names_stay_readable(namespace, name, expected):
    assert identifier(Kind.TOOL, namespace, name) == expected


@given(st.sampled_from(Kind), namespaces, names)
@example(Kind.TOOL, "localhost", "_x5 ")
@example(Kind.TOOL, "localhost.a", "_x5_x20_")
@example(Kind.SKILL, "a", "__x20__")
@example(Kind.AGENT, "a", "\U0010ffff")
def test_identifier_round_trips(kind, namespace, name):
    urn = identifier(kind, namespace, name)
    assert re.fullmatch(IDENTIFIER, urn)
    assert re.fullmatch(PROBED, urn)
    assert parse_identifier(urn) == (kind, capability_id(namespace, name))


@given(st.sampled_from(Kind), namespaces, names, st.sampled_from(Kind), namespaces, names)
def test_different_capabilities_have_different_identifiers(kind, namespace, name, kind2, namespace2, name2):
    same = (kind, namespace, name) == (kind2, namespace2, name2)
    assert (identifier(kind, namespace, name) == identifier(kind2, namespace2, name2)) is same


@given(namespaces)
def test_publisher_is_qualified_and_round_trips(namespace):
    assert "." in publisher(namespace)
    assert namespace_of(publisher(namespace)) == namespace


@pytest.mark.parametrize(
    "text",
    [
        "", "nope", "not-a-valid-ard-urn", "urn:air:", "urn:air:acme.com", "urn:air:acme.com:", "urn:air::tool:x",
        "urn:air:acme.com:tool:", "urn:air:acme.com::x", "URN:AIR:acme.com:tool:x", "urn:ai:acme.com:tool:x",
        "urn:air:acme.com:tool:a b", "urn:air:acme.com:tool:a%20b", "urn:air:acme_corp:tool:x",
        "urn:air:acme.com:tool:x\n", "urn:air:acme.com:tool:é", "urn:air:acme.com:tool:../x",
        f"urn:air:acme.com:tool:{'x' * 9_000}",
    ],
)  # fmt: skip
def test_identifier_that_breaks_the_specification_is_rejected(text):
    with pytest.raises(RequestInvalid, match="identifier"):
        parse_identifier(text)


@pytest.mark.parametrize(
    "text",
    [
        "urn:air:ard-conformance.invalid:probe:not-found",
        "urn:air:acme.com:x",
        "urn:air:acme.com:tool",
        "urn:air:acme.com:Tool:x",
        "urn:air:acme.com:server:x",
        "urn:air:acme:tool:x",  # no fully qualified name: ours has .localhost behind it
        "urn:air:acme.com.localhost:tool:x",  # and only where it is needed
        "urn:air:acme.com:tool:a_x62_c",  # an escape of what needs none
        "urn:air:acme.com:tool:a_x020_c",
        "urn:air:acme.com:tool:a_x2f_c",
        "urn:air:acme.com:tool:a_xd800_",
        "urn:air:acme.com:tool:a_x110000_",
        "urn:air:acme.com:tool:a_xffffff_",
    ],
)
def test_identifier_that_we_never_issue_names_nothing(text):
    assert parse_identifier(text) is None


@given(st.from_regex(IDENTIFIER, fullmatch=True))
def test_any_valid_identifier_has_one_spelling(text):
    found = parse_identifier(text)
    if found is not None:
        namespace, _, name = found.id.partition("/")
        assert identifier(found.kind, namespace, name) == text


@given(st.text())
def test_any_text_is_parsed_or_rejected(text):
    with suppress(RequestInvalid):
        parse_identifier(text)
