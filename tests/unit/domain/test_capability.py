"""Ids, their parts, and principals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import capability_id, parts, principal

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


ROLE = "arn:aws:iam::123456789012:role/AWSReservedSSO_Ops_abc"


OTHERS = (
    ROLE, "arn:aws:iam::123456789012:user/team/ada", "arn:aws:iam::123456789012:root", "", "role/x",
    "arn:aws:sts::123456789012:federated-user/ada", "arn:aws:iam::123456789012:role/", f"{ROLE}/",
    "arn:aws:iam:::role/x", "arn:aws:s3:::role/x",
)  # fmt: skip


@pytest.mark.parametrize(
    ("arn", "whose"),
    [
        ("arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Ops_abc/ada@example.com", ROLE),
        ("arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Ops_abc", ROLE),
        ("arn:aws-us-gov:sts::1:assumed-role/R/s", "arn:aws-us-gov:iam::1:role/R"),
        *((other, other) for other in OTHERS),
    ],
)
def test_the_principal_of_a_session_is_its_role_and_of_anything_else_its_own(arn, whose):
    assert principal(arn) == whose


@given(st.text())
def test_a_principal_is_its_own_principal(text):
    assert principal(principal(text)) == principal(text)
