"""Queries and filters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Kind
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.index_keys import namespace_words
from mats.domain.search.query import Filter, Query
from tests.strategies import json_values


@pytest.mark.parametrize(
    ("namespace", "telling"),
    [
        ("com.stripe.mcp", {"stripe"}),
        ("io.github.someone.weather-mcp-server", {"weather"}),
        ("io.github.block", {"block"}),
        ("stripe", {"stripe"}),
        ("com", {"com"}),
    ],
)
def test_the_words_of_a_namespace_are_those_that_tell_it_from_others(namespace, telling):
    assert namespace_words(namespace) == telling


def _faults(body: object) -> dict[str, str]:
    """The faults of a body, by attribute."""
    with pytest.raises(RequestInvalid) as refused:
        Query.parse(body)
    return {fault.attribute: fault.message for fault in refused.value.faults}


def test_a_query_may_say_everything_and_a_repeated_kind_counts_once():
    filters = {"kinds": ["tool", "tool", "agent", "tool"], "namespaces": ["com.acme"], "tags": ["a", "b"]}
    asked = Query.parse({"query": "q", **filters, "limit": 25, "explain": True})
    assert asked.kinds == (Kind.TOOL, Kind.AGENT)
    assert (asked.namespaces, asked.tags, asked.limit, asked.explain) == (("com.acme",), ("a", "b"), 25, True)


@pytest.mark.parametrize(
    ("body", "attribute"),
    [
        *(
            ({"query": text}, "query")
            for text in ("", " ", "\n\t", "\u3000", "x" * 2_001, 3, ["q"], {"a": 1}, "\ud800")
        ),
        *(
            ({"query": "q", labels: value}, labels + place)
            for labels in ("namespaces", "tags")
            for value, place in (([""], ".0"), (["a", "x" * 201], ".1"), ([1], ".0"), ("a", ""), ({"a": 1}, ""))
        ),
        ({"query": "q", "namespaces": ["x"] * 51}, "namespaces"),
        ({"query": "q", "tags": ["x"] * 51}, "tags"),
        ([], ""),
        ("q", ""),
    ],
)
def test_a_body_is_rejected_with_the_place_of_the_fault(body, attribute):
    assert _faults(body).keys() == {attribute}


@pytest.mark.parametrize(
    ("attribute", "meant"),
    [("k", "limit"), ("text", "query"), ("kind", "kinds"), ("Query", "query"), ("namespace", "namespaces")],
)
def test_an_unknown_key_is_an_error_and_suggests_the_near_one(attribute, meant):
    faults = _faults({"query": "q", attribute: "x", "audiences": ["ops"]})
    assert f"`{meant}`" in faults[attribute]
    assert faults.keys() == {attribute, "audiences"}


@given(st.dictionaries(st.sampled_from([*Query.model_fields, "k", "colour"]), json_values()) | json_values())
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
    ("wanted", "admitted", "refused"),
    [
        ({"com.acme"}, ["com.acme", "com.acme.pay"], ["com.acmepay", "com.acme-pay", "com", "org.com.acme"]),
        ({"com.acme.pay", "org"}, ["com.acme.pay", "org.x.y"], ["com.acme", "net"]),
    ],
)
def test_a_namespace_admits_itself_and_its_children_at_a_dot(wanted, admitted, refused):
    wanted = Filter(namespaces=frozenset(wanted))
    assert [each for each in admitted + refused if wanted.admits_namespace(each)] == admitted


def test_any_of_the_filters_kinds_and_all_of_its_tags_are_required():
    either, both = Filter(kinds=frozenset({Kind.TOOL, Kind.AGENT})), Filter(tags=frozenset({"a", "b"}))
    assert [kind for kind in (*Kind, None) if either.admits_kind(kind)] == [Kind.AGENT, Kind.TOOL]
    assert [both.admits_tags(tags) for tags in (["b", "c", "a"], ["a"], ["A", "b"], [])] == [True, False, False, False]
    assert Filter().admits_kind(None)
    assert Filter().admits_tags(())


@pytest.mark.parametrize(
    ("audiences", "seen"),
    [
        (set(), [None]),
        ({"ops"}, [None, ("ops",)]),
        ({"ops", "dev"}, [None, ("ops",), ("dev", "hr")]),
        ({"OPS"}, [None]),
    ],
)
def test_a_capability_exists_for_everyone_or_for_the_audiences_it_names(audiences, seen):
    caller = Filter(audiences=frozenset(audiences))
    assert [visible_to for visible_to in (None, ("ops",), ("dev", "hr"), ()) if caller.sees(visible_to)] == seen


def test_steps_are_texts_beside_the_whole_request():
    query = Query.parse({"queries": ["find a flight", "book a hotel"]})
    assert query.texts == ("find a flight\nbook a hotel", "find a flight", "book a hotel")
    assert Query(query="find a flight").texts == ("find a flight",)


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
    ],
)
def test_faults_of_requests_for_several_things(body, faults):
    assert _faults(body) == faults
