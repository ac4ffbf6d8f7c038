"""Which capability a message tells of."""

import json

import pytest

from mats.domain.profile.profile import Cause
from mats.edge.changes import MessageUnreadable, parse_change
from mats.ports import Change, NamespaceChange

EVENT = {
    "version": "0",
    "id": "e-1",
    "detail-type": "CapabilityChanged",
    "source": "mats.registry",
    "time": "2026-01-01T00:00:00+00:00",
    "detail": {
        "table": "Registry",
        "change": "INSERT",
        "keys": {"namespace": {"S": "com.acme"}, "name": {"S": "docs/read"}},
    },
}


def _keys(**typed: object) -> dict[str, object]:
    return {**EVENT, "detail": {"keys": typed}}


def _message(event: object) -> dict[str, str]:
    return {"messageId": "m-1", "body": json.dumps(event)}


def test_message_has_the_capability_and_the_cause():
    assert parse_change(_message(EVENT)) == Change(
        id="com.acme/docs/read", cause=Cause(event_id="e-1", time="2026-01-01T00:00:00+00:00")
    )


def test_change_carries_the_key_only():
    event = {**EVENT, "detail": {**EVENT["detail"], "item": {"description": "stale"}, "trust": 100}}
    assert parse_change(_message(event)) == parse_change(_message(EVENT))


ROW = {"namespace": {"S": "com.acme.*"}, "name": {"S": "*"}}


def test_the_row_of_a_namespace_is_a_change_of_all_of_it():
    event = {**EVENT, "detail": {"table": "Trust", "change": "MODIFY", "keys": ROW}}
    cause = Cause(event_id="e-1", time="2026-01-01T00:00:00+00:00")
    assert parse_change(_message(event)) == NamespaceChange("com.acme", cause)
    event["detail"]["after"] = "com.acme/docs"
    assert parse_change(_message(event)) == NamespaceChange("com.acme", cause, after="com.acme/docs")


def test_an_item_with_the_key_of_a_namespace_is_a_bad_item():
    event = {**EVENT, "detail": {**EVENT["detail"], "keys": ROW}}
    assert parse_change(_message(event)) == Change(
        id="com.acme.*/*", cause=Cause(event_id="e-1", time="2026-01-01T00:00:00+00:00")
    )


@pytest.mark.parametrize("message", [
    {}, {"body": None}, {"body": ""}, {"body": "no JSON"}, {"body": '{"detail":'}, {"body": "9" * 5_000},
    _message(None), _message([]), _message("text"), _message({}), _message({**EVENT, "detail": None}),
    _message({**EVENT, "detail": "com.acme/x"}), _message({**EVENT, "detail": []}), _message(_keys(name={"S": "x"})),
    _message(_keys(namespace={"S": "com.acme"})), _message({**EVENT, "id": None}), _message({**EVENT, "time": 3}),
    _message({key: value for key, value in EVENT.items() if key != "id"}),
    _message({key: value for key, value in EVENT.items() if key != "time"}),
])  # fmt: skip
def test_message_without_a_change_is_unreadable(message):
    with pytest.raises(MessageUnreadable):
        parse_change(message)


@pytest.mark.parametrize("key", [None, 3, True, [], {}, "", "\ud800"], ids=repr)
@pytest.mark.parametrize("part", ["namespace", "name"])
def test_key_must_be_text(part, key):
    with pytest.raises(MessageUnreadable):
        parse_change(_message(_keys(**{"namespace": {"S": "com.acme"}, "name": {"S": "x"}, part: {"S": key}})))


def test_deeply_nested_message_is_unreadable():
    with pytest.raises(MessageUnreadable):
        parse_change({"body": "[" * 100_000 + "]" * 100_000})


def test_unreadable_message_is_quoted_in_part():
    with pytest.raises(MessageUnreadable) as refused:
        parse_change({"body": "x" * 100_000})
    assert len(str(refused.value)) < 300
