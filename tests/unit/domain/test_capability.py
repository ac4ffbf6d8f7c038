"""Ids and their parts."""

from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import capability_id, parts

anything = st.text(st.sampled_from("%/~#257EFef.a-é") | st.characters(), max_size=12)


@given(anything, anything)
def test_parts_restores_namespace_and_name_of_an_id(namespace, name):
    assert parts(capability_id(namespace, name)) == (namespace, name)


@given(anything)
def test_no_namespace_collides_with_an_internal_row(namespace):
    written = capability_id(namespace, "name").partition("/")[0]
    assert not set(written) & {"~", "#"}


@given(st.lists(st.text("abz019-", min_size=1), min_size=1).map(".".join), st.text())
def test_a_valid_namespace_and_any_name_are_unescaped_in_an_id(namespace, name):
    assert capability_id(namespace, name) == f"{namespace}/{name}"


def test_a_text_without_a_slash_is_a_namespace():
    assert parts("com.acme") == ("com.acme", "")
