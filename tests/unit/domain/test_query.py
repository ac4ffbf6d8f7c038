"""Queries and filters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Kind
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.ranking.query import Filter, Query, named_words, namespace_words


@pytest.mark.parametrize(
    ("namespace", "telling"),
    [
        ("com.stripe.mcp", {"stripe"}),
        ("io.github.someone.weather-mcp-server", {"weather"}),
        ("io.github.block", {"block"}),
        ("com.acme.pay-links", {"acme", "pay", "links"}),
        ("stripe", {"stripe"}),
        ("com", {"com"}),
    ],
)
def test_the_words_of_a_namespace_are_those_that_tell_it_from_others(namespace, telling):
    assert namespace_words(namespace) == telling


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("list all tools of stripe", {"stripe"}),
        ("what can the GitHub server do?", {"github"}),
        ("show me everything from google maps", {"google", "maps"}),
        ("filesystem", {"filesystem"}),
        ("google maps", set()),
        ("list my open issues", set()),
        ("refund a card payment", set()),
        ("list all tools", set()),
        ("", set()),
    ],
)
def test_a_request_for_what_a_namespace_has_names_it(text, asked):
    assert named_words(text) == asked


def _faults(body: object) -> dict[str, str]:
    """The faults of a body, by attribute."""
    with pytest.raises(RequestInvalid) as refused:
        Query.parse(body)
    return {fault.attribute: fault.message for fault in refused.value.faults}


def test_a_query_may_say_everything():
    asked = Query.parse(
        {"query": "q", "kinds": ["tool", "agent"], "namespaces": ["com.acme"], "tags": ["a", "b"], "limit": 25,
         "explain": True}
    )  # fmt: skip
    assert asked.kinds == (Kind.TOOL, Kind.AGENT)
    assert (asked.namespaces, asked.tags, asked.limit, asked.explain) == (("com.acme",), ("a", "b"), 25, True)


def test_a_repeated_kind_counts_once():
    assert Query.parse({"query": "q", "kinds": ["tool", "tool", "agent", "tool"]}).kinds == (Kind.TOOL, Kind.AGENT)


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000", "x" * 2_001, 3, None, ["q"], {"text": "q"}, "\ud800"])
def test_a_text_that_is_blank_too_long_or_none_is_rejected(text):
    assert _faults({"query": text}).keys() == {"query"}


@pytest.mark.parametrize("attribute", ["namespaces", "tags"])
@pytest.mark.parametrize(
    ("value", "place"),
    [([""], ".0"), (["a", "x" * 201], ".1"), ([1], ".0"), ("a", ""), ({"a": 1}, ""), (["x"] * 51, "")],
)
def test_a_list_of_labels_is_rejected_with_the_position_of_the_fault(attribute, value, place):
    assert _faults({"query": "q", attribute: value}).keys() == {attribute + place}


@pytest.mark.parametrize(
    ("attribute", "meant"),
    [("k", "limit"), ("text", "query"), ("kind", "kinds"), ("Query", "query"), ("namespace", "namespaces")],
)
def test_an_unknown_key_is_an_error_and_suggests_the_near_one(attribute, meant):
    assert f"`{meant}`" in _faults({"query": "q", attribute: "x"})[attribute]


def test_audiences_are_not_an_attribute_of_a_query():
    assert _faults({"query": "q", "audiences": ["ops"]}).keys() == {"audiences"}


@pytest.mark.parametrize("body", [None, [], "refund", 3, True, [{"query": "q"}]])
def test_a_body_that_is_no_object_is_rejected(body):
    assert "JSON object" in _faults(body)[""]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*Query.model_fields, "k", "colour"]), json_values) | json_values)
def test_any_json_is_either_a_query_or_rejected_with_its_faults(body):
    try:
        faults = [Fault("none", "at all")] if Query.parse(body) else []
    except RequestInvalid as refused:
        faults = refused.faults
    assert faults
    assert all(fault.message for fault in faults)


def test_a_filter_has_the_querys_filters_and_the_callers_audiences():
    query = Query.parse({"query": "q", "kinds": ["tool"], "namespaces": ["com.acme"], "tags": ["a"]})
    assert Filter.of(query, ["ops"]) == Filter(
        kinds=frozenset({Kind.TOOL}),
        namespaces=frozenset({"com.acme"}),
        tags=frozenset({"a"}),
        audiences=frozenset({"ops"}),
    )


@pytest.mark.parametrize(
    ("wanted", "namespace", "admitted"),
    [
        ({"com.acme"}, "com.acme", True),
        ({"com.acme"}, "com.acme.pay", True),
        ({"com.acme"}, "com.acme.pay.eu", True),
        ({"com.acme"}, "com.acmepay", False),
        ({"com.acme"}, "com.acme-pay", False),
        ({"com.acme"}, "com", False),
        ({"com.acme.pay"}, "com.acme", False),
        ({"com.acme"}, "org.com.acme", False),
        ({"com"}, "com.acme", True),
        ({"org", "com.acme"}, "com.acme.pay", True),
        ({"org", "net"}, "com.acme", False),
    ],
)
def test_a_namespace_admits_itself_and_its_children_at_a_dot(wanted, namespace, admitted):
    assert Filter(namespaces=frozenset(wanted)).admits_namespace(namespace) is admitted


@pytest.mark.parametrize(
    ("kinds", "kind", "admitted"),
    [
        ({Kind.TOOL}, Kind.TOOL, True),
        ({Kind.TOOL}, Kind.AGENT, False),
        ({Kind.TOOL, Kind.AGENT}, Kind.AGENT, True),
        ({Kind.TOOL}, None, False),
        (set(), None, True),
    ],
)
def test_any_of_the_filters_kinds_matches(kinds, kind, admitted):
    assert Filter(kinds=frozenset(kinds)).admits_kind(kind) is admitted


@pytest.mark.parametrize(
    ("asked", "carried", "admitted"),
    [
        ({"a"}, ("a", "b"), True),
        ({"a", "b"}, ("b", "a"), True),
        ({"a", "c"}, ("a", "b"), False),
        ({"a"}, ("A",), False),
        ({"a"}, (), False),
    ],
)
def test_every_tag_of_the_filter_is_required(asked, carried, admitted):
    assert Filter(tags=frozenset(asked)).admits_tags(carried) is admitted


@pytest.mark.parametrize(
    ("audiences", "visible_to", "seen"),
    [
        (set(), None, True),
        ({"ops"}, None, True),
        ({"ops"}, ("ops",), True),
        ({"ops", "dev"}, ("dev", "hr"), True),
        ({"dev"}, ("ops",), False),
        (set(), ("ops",), False),
        ({"OPS"}, ("ops",), False),
        ({"ops"}, (), False),
    ],
)
def test_a_capability_exists_for_everyone_or_for_the_audiences_it_names(audiences, visible_to, seen):
    assert Filter(audiences=frozenset(audiences)).sees(visible_to) is seen


def test_steps_are_texts_beside_the_whole_request():
    query = Query.parse({"queries": ["find a flight", "book a hotel"]})
    assert query.texts == ("find a flight\nbook a hotel", "find a flight", "book a hotel")
    assert query.asks_for_parts


def test_a_request_is_cut_only_if_asked():
    text = "find a flight to Rome and book a hotel"
    assert Query(query=text).texts == (text,)
    assert Query(query=text, parts=True).texts == (text, "find a flight to Rome", "book a hotel")
    assert Query(query="find a flight", parts=True).texts == ("find a flight",)


def test_long_steps_share_the_length_of_a_request():
    text = Query(queries=["a b " * 500] * 7).text
    assert len(text) <= 2_000
    assert text.count("\n") == 6


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({}, {"query": "is required"}),
        ({"query": None}, {"query": "is required"}),
        ({"queries": ["one"]}, {"queries": "must have at least 2 entries"}),
        ({"queries": ["one"] * 8}, {"queries": "must have at most 7 entries"}),
        ({"queries": ["one", "two", " "]}, {"queries.2": "must not be blank"}),
        ({"queries": ["one", "two"], "query": "one"}, {"query": "excludes `queries`: send one of them"}),
        ({"query": "one", "parts": 1}, {"parts": "must be true or false"}),
    ],
)
def test_faults_of_requests_for_several_things(body, faults):
    assert _faults(body) == faults
