"""Assignments of operators: keys of rows, and the row that counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Id, capability_id, parts
from mats.domain.capability.registration import Registration
from mats.domain.errors import RegistrationInvalid
from mats.domain.profile.assignment import (
    NOTHING_ASSIGNED,
    Assigned,
    is_provider,
    namespace_of_pattern,
    parse_row,
    parse_target,
    pattern_id,
    resolve,
    resolve_all,
    row_keys,
)

LABELS = st.sampled_from(["com", "a", "ab", "a-b", "stripe"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
IDS = st.builds(capability_id, NAMESPACES, st.sampled_from(["x", "*", "a/b", ".*"]))
ROWS = st.builds(Assigned, trust=st.none() | st.integers(0, 100), provider=st.sampled_from(["", "A", "B"]))
BOOKS = st.dictionaries(st.one_of(IDS, NAMESPACES.map(pattern_id)), ROWS)


@given(IDS, BOOKS)
def test_the_nearest_row_that_assigns_an_attribute_counts(id, rows):
    matching = sorted(
        (
            key
            for key in rows
            if (place := namespace_of_pattern(key)) is not None and f"{id}/".startswith((f"{place}.", f"{place}/"))
        ),
        key=lambda key: -len(key),
    )
    trusts = [rows[key].trust for key in (id, *matching) if key in rows and rows[key].trust is not None]
    providers = [rows[key].provider for key in matching if rows[key].provider]
    assert resolve(id, rows) == Assigned(trust=next(iter(trusts), None), provider=next(iter(providers), ""))


@given(st.lists(IDS), BOOKS)
def test_many_are_resolved_as_each_alone_with_one_read_without_repetition(ids, rows):
    asked = []

    def read(keys):
        asked.append(list(keys))
        return {key: rows[key] for key in keys if key in rows}

    assert resolve_all(ids, read) == {id: resolve(id, rows) for id in ids}
    assert len(asked) == 1
    assert len(asked[0]) == len(set(asked[0]))


@given(NAMESPACES)
def test_the_key_of_a_namespace_names_it_and_no_capability_can_have_it(namespace):
    key = pattern_id(namespace)
    assert namespace_of_pattern(key) == namespace
    assert parse_target(f"{namespace}.*") == key
    pattern, name = parts(key)
    with pytest.raises(RegistrationInvalid, match="namespace"):
        Registration.parse({"namespace": pattern, "name": name, "kind": "tool"})


@given(st.text(max_size=12), st.text(min_size=1, max_size=8))
def test_no_text_breaks_the_keys_of_rows(namespace, name):
    id = capability_id(namespace, name)
    assert next(iter(row_keys(id))) == id
    assert all(namespace_of_pattern(key) is not None for key in list(row_keys(id))[1:])


def test_a_namespace_that_no_registration_can_have_is_not_looked_up():
    """Its keys could be longer than a table allows, or thousands."""
    for namespace in ("a." * 1_000 + "a", "a" * 2_048, "a..b.", "A.b"):
        assert list(row_keys(capability_id(namespace, "x"))) == [capability_id(namespace, "x")]


def test_a_provider_in_the_row_of_a_capability_does_not_count():
    id = Id("com.acme/pay")
    assert resolve(id, {id: Assigned(trust=1, provider="Stripe")}) == Assigned(trust=1)


@pytest.mark.parametrize(
    "text", ["com.acme", "com.acme.", "com..*", "*", ".*", "Com.acme.*", "com.acme*", "a" * 201 + ".*"]
)
def test_what_is_neither_an_id_nor_a_namespace_is_refused(text):
    with pytest.raises(ValueError, match=r"com\.acme\.\*"):
        parse_target(text)


@pytest.mark.parametrize(
    ("row", "valid"),
    [
        ({"trust": 40, "provider": " Stripe "}, Assigned(trust=40, provider="Stripe")),
        ({"trust": 101, "provider": "Stripe"}, Assigned(provider="Stripe")),
        ({"trust": True, "provider": 7}, NOTHING_ASSIGNED),
        ({"trust": "40", "provider": " "}, NOTHING_ASSIGNED),
        ({"trust": 0.5, "provider": "a\u200bb"}, NOTHING_ASSIGNED),
        ({"trust": 0}, Assigned(trust=0)),
        ({}, NOTHING_ASSIGNED),
    ],
)
def test_the_valid_part_of_a_row_counts(row, valid):
    assert parse_row(row) == valid


@pytest.mark.parametrize("text", ["", " ", "a\nb", "a\u202eb", "a" * 201, "\u2028", "a\u3164b", "\u1160"])
def test_a_provider_is_visible_and_on_one_line(text):
    assert not is_provider(text)
