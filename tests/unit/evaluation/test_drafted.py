"""A first judged set of a registry: where each query comes from."""

import pytest

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, ReplyUnusable
from mats.domain.profile.profile import Enrichment
from mats.evaluation.data.drafted import draft_set
from mats.ports import Written
from tests.fakes import ScriptedWriter

ITEMS = {
    Id("com.acme/refund"): {"namespace": "com.acme", "name": "refund", "kind": "tool", "examples": ["undo a charge"]},
    Id("com.acme/getUser"): {"namespace": "com.acme", "name": "getUser", "kind": "tool", "description": "Find a user"},
    Id("com.acme/payroll"): {"namespace": "com.acme", "name": "payroll", "kind": "tool", "visible_to": ["finance"]},
    Id("com.acme/odd"): {"namespace": "com.acme", "name": "odd", "kind": "robot"},
}


def writing(*examples: str) -> ScriptedWriter:
    return ScriptedWriter(lambda registration: Written(enrichment=Enrichment(positive_examples=examples)))


def sources(count: int = 20, writer: ScriptedWriter | None = None) -> dict[str, tuple[str, str]]:
    drafted = draft_set(ITEMS, list(ITEMS), count, writer)
    assert drafted.qrels == {(id, id.removeprefix("q-")): 1 for id in drafted.queries}
    return {id: (str(query["source"]), str(query["text"])) for id, query in drafted.queries.items()}


def test_without_a_writer_examples_come_before_names():
    assert sources(1) == {"q-com.acme/refund": ("example", "undo a charge")}
    assert sources()["q-com.acme/getUser"] == ("title", "get User")


def test_the_example_that_is_a_query_leaves_the_registration_of_the_set_alone():
    drafted = draft_set(ITEMS, list(ITEMS), 20, None)
    assert drafted.corpus["com.acme/refund"]["examples"] == []
    assert ITEMS[Id("com.acme/refund")]["examples"] == ["undo a charge"]
    assert set(drafted.corpus) == set(ITEMS)


def test_what_not_everyone_sees_or_is_invalid_gets_no_query():
    assert sources().keys() == {"q-com.acme/refund", "q-com.acme/getUser"}
    assert sum(draft_set(ITEMS, list(ITEMS), 20, None).left_out.values()) == 2


def test_a_writer_invents_queries_that_the_owner_did_not_write():
    found = sources(writer=writing("undo a charge", "give me my money back\u202e"))
    assert found["q-com.acme/refund"] == ("llm", "give me my money back")
    assert sources(writer=writing("undo a charge"))["q-com.acme/refund"] == ("example", "undo a charge")


def test_an_unusable_reply_falls_back_and_a_writer_that_does_not_answer_ends_the_draft():
    unusable = ScriptedWriter(lambda registration: ReplyUnusable("no JSON"))
    assert {source for source, _ in sources(writer=unusable).values()} == {"example", "title"}
    with pytest.raises(DependencyFailed):
        sources(writer=ScriptedWriter(lambda registration: DependencyFailed("connection refused")))
