"""Requests that ask, order or remove, and what does another thing."""

from dataclasses import replace

import pytest

from mats.domain.policies.acts import Acts, act_of
from mats.domain.policies.policy import Ask, Pool
from mats.domain.search.candidate import Candidate, Marks
from mats.domain.search.query import Filter
from mats.domain.text.acts import Act, act_asked
from tests.builders import a_profile


@pytest.mark.parametrize(
    ("request_", "act"),
    [
        ("who is a member of this group?", Act.READ),
        ("how many users are there", Act.READ),
        ("please list my files", Act.SEVERAL),
        ("who are the members?", Act.SEVERAL),
        ("which regions are there?", Act.SEVERAL),
        ("which feature flags do we have?", Act.SEVERAL),
        ("what does this cost?", Act.READ),
        ("which user owns it?", Act.READ),
        ("which key is set?", Act.READ),
        ("show me all the comments on a card", Act.SEVERAL),
        ("get a card's comments", Act.SEVERAL),
        ("show this card", Act.ONE),
        ("could you get a user by email", Act.ONE),
        ("get a user's address", Act.ONE),
        ("get a list of users", Act.READ),
        ("show account details", Act.READ),
        ("see this", Act.READ),
        ("find a restaurant", Act.READ),
        ("get the weather", Act.READ),
        ("export all contacts", Act.READ),
        ("is my website up?", Act.READ),
        ("create a user", Act.MAKE),
        ("could you change my address", Act.EDIT),
        ("add a user", Act.WRITE),
        ("how do I delete a user", Act.REMOVE),
        ("get rid of a machine", Act.CHANGE),
        ("switch my account off", Act.CHANGE),
        ("get a deleted document back", Act.NONE),
        ("tell me when it breaks", Act.NONE),
        ("do not post it", Act.NONE),
        ("open port 443", Act.NONE),
        ("list " + "very " * 30 + "old files", Act.NONE),
        ("", Act.NONE),
    ],
)
def test_a_request_asks_or_orders_or_nothing_is_known(request_, act):
    assert act_asked(request_) is act


def test_a_product_before_the_verb_hides_nothing():
    ask = Ask.of("In Asana, who is a member?", Filter())
    assert Acts().look(replace(ask, plain="who is a member?"), None, None, None) is Act.READ


def tool(name, title="", **more):
    return a_profile(name=name, descriptor={"summary": title, **more} if title or more else None)


@pytest.mark.parametrize(
    ("profile", "act"),
    [
        (tool("getUsers"), Act.READ),
        (tool("users_list"), Act.READ),
        (tool("post_files_id", "Restores a file"), Act.WRITE),
        (tool("users-delete"), Act.REMOVE),
        (tool("editJiraIssue"), Act.EDIT),
        (tool("x", "Creates a ticket"), Act.MAKE),
        (tool("frobnicate"), Act.NONE),
        (tool("create_view", annotations={"readOnlyHint": True}), Act.READ),
        (tool("execute_query"), Act.NONE),
        (a_profile(name="delete_user", kind="agent"), Act.NONE),
    ],
)
def test_a_tool_does_what_its_owner_says_or_its_title_or_its_name(profile, act):
    assert act_of(profile) is act


def operation(name, path):
    return tool(name, format="openapi-operation", method="GET", path=path)


@pytest.mark.parametrize(
    ("name", "path", "act"),
    [
        ("getUser", "/users/{id}", Act.ONE),
        ("getUsers", "/users", Act.SEVERAL),
        ("getFlags", "/flags/{project}", Act.READ),  # Its path gives one, its name several
        ("search", "/search", Act.READ),
    ],
)
def test_an_operation_that_reads_gives_one_or_several_by_its_path_and_name(name, path, act):
    assert act_of(operation(name, path)) is act


def test_what_gives_one_is_behind_what_gives_several_and_the_other_way_round():
    one, several = operation("getUser", "/users/{id}"), operation("getUsers", "/users")
    both = [Candidate(profile=each, bm25=1.0, cosine=None) for each in (one, several)]
    for text, shifts in (("which users are there?", [-0.1, 0]), ("show this user", [0, -0.1]), ("who is it", [0, 0])):
        act = Acts().look(ask := Ask.of(text, Filter()), None, None, None)
        assert [each.shift for each in Acts().shift(both, act, ask, None)] == shifts


def test_what_does_another_thing_takes_only_places_that_are_left_and_is_lowered():
    profiles = [tool(name) for name in ("createMember", "frobnicate", "listMembers")]
    ask = Ask.of("who is a member?", Filter())
    act = Acts().look(ask, None, None, None)
    pool = Acts().choose(Pool(ask=ask, k=2, profiles=profiles, seen=3, kept=range(3)), act)
    assert [each.name for each in pool.candidates()] == ["frobnicate", "listMembers"]
    shifted = Acts().shift([Candidate(profile=each, bm25=1.0, cosine=None) for each in profiles], act, ask, None)
    assert [(each.shift, each.alone) for each in shifted] == [(-0.1, -0.1), (0, 0), (0, 0)]


def test_an_exact_match_keeps_its_place_whatever_it_does():
    profiles = [tool("createMember")]
    ask = Ask.of("list members", Filter())
    pool = Pool(ask=ask, k=1, profiles=profiles, kept=range(1), marks={profiles[0].id: Marks(exact=1)})
    assert Acts().choose(pool, Act.READ).kept == [0]
