"""Operations of HTTP APIs in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.profile.index_fields import embedded_text, lexical_fields
from mats.domain.profile.origin import Recipe
from mats.domain.protocols.operation_words import say
from tests.builders import a_profile, a_registration


@pytest.mark.parametrize(
    ("method", "path", "name", "said"),
    [
        ("GET", "/groups", "g", "list the groups"),
        ("GET", "/groups/{groupId}", "g", "get a group"),
        ("GET", "/groups/{groupId}/users", "g", "list the users of a group"),
        ("POST", "/groups", "g", "create a group"),
        ("PUT", "/groups/{id}", "g", "update a group"),
        ("PATCH", "/groups/{id}", "g", "update a group"),
        ("DELETE", "/groups/{id}", "g", "delete a group"),
        ("POST", "/users/{id}/lifecycle/deactivate", "deactivateUser", "deactivate a user"),
        ("POST", "/tasks/{task_gid}/setParent", "setParentForTask", "set a parent of a task"),
        ("GET", "/2010-04-01/Accounts/{Sid}/Calls.json", "ListCall", "list the calls of an account"),
        ("GET", "/conversations.list", "conversations_list", "list the conversations"),
        ("PUT", "/Invoices", "createInvoices", "create an invoice"),
        ("PUT", "/channels/{id}/pins/{message}", "create_pin", "create a pin of a channel"),
        ("GET", "/users/@me", "get_my_user", "get a user"),
        ("PUT", "/folders/{id}#remove_shared_link", "put_folders", "remove a shared link of a folder"),
        ("GET", "/Recordings/{Sid}/AddOnResults/{Id}.json", "Fetch", "fetch an add on result of a recording"),
        ("GET", "/companies/{id}/statuses", "x", "list the statuses of a company"),
        ("DELETE", "/addresses/{id}", "x", "delete an address"),
        ("GET", "/api/v1/", "x", ""),
        ("GET", "", "x", ""),
        ("", "/groups", "x", "list the groups"),
    ],
)
def test_an_operation_is_said_by_its_method_path_and_name(method, path, name, said):
    assert say(method, path, name) == said


@given(st.text(max_size=40), st.text(max_size=200), st.text(max_size=80))
def test_any_path_is_said_in_few_plain_words(method, path, name):
    said = say(method, f"/{path}", name)
    assert len(said) <= 200
    assert said.isprintable()


def operation(**more):
    about = {"format": "openapi-operation", "method": "GET", "path": "/groups/{groupId}/users"}
    return {"name": "q7", "description": "", "descriptor": {**about, **more}}


def test_what_an_operation_does_is_searched_and_encoded_first():
    profile = a_profile(**operation())
    assert "list the users of a group" in lexical_fields(profile)["title"]
    assert embedded_text(profile).startswith("list the users of a group. q7")
    assert a_profile(name="q7", descriptor={"method": "GET", "path": "/groups"}).source.spoken == ""


def test_profiles_of_operations_are_made_again_and_others_are_not():
    recipe = Recipe()
    plain = a_registration(name="q7")
    assert recipe.origin(a_registration(**operation())) != recipe.origin(a_registration(**operation(path="/users")))
    assert recipe.origin(plain) == recipe.origin(a_registration(name="q7"))
