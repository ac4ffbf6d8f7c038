"""The change of a namespace's row reaches every registered capability there, also over several runs."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, OutOfTime
from mats.domain.profile.profile import Cause
from mats.edge.changes import ChangeProcessor, process_batch
from mats.ports import NamespaceChange
from mats.usecases.deadline import Deadline
from mats.usecases.resend import SpreadChange
from tests.builders import a_registration
from tests.fakes import MemoryRegistry
from tests.unit.edge.test_changes import EVENT, ROW, _message

CAUSE = Cause(event_id="e-1", time="2026-01-01T00:00:00+00:00")
ACME = NamespaceChange("com.acme", CAUSE)
LATE = Deadline(lambda: 0.0)


@dataclass
class Path:
    """The changes sent into the event path."""

    ids: list[Id] = field(default_factory=list)
    rest: list[NamespaceChange] = field(default_factory=list)
    fails_after: int = 1_000

    def send(self, ids: list[Id]) -> None:
        if len(self.ids) >= self.fails_after:
            raise DependencyFailed("the bus is down")
        self.ids.extend(ids)

    def spread(self, count: int, page: int = 100) -> SpreadChange:
        registry = MemoryRegistry()
        registry.put([a_registration(namespace="com.acme", name=f"tool-{n:03}") for n in range(count)])
        registry.put([a_registration(namespace="com.other", name="tool")])
        return SpreadChange(registry=registry, send=self.send, send_rest=self.rest.append, page=page)


@given(st.integers(0, 9), st.integers(1, 4), st.integers(1, 5))
def test_each_capability_is_sent_once_in_as_many_runs_as_it_takes(count: int, page: int, pages_in_a_run: int):
    path = Path()
    spread, change, run = path.spread(count, page), ACME, 0
    while True:
        left = iter([1e9] * pages_in_a_run)
        spread(change, Deadline(lambda left=left: next(left, 0.0)))
        run += 1
        if not path.rest:
            break
        change = path.rest.pop()
    assert path.ids == sorted(spread.registry.ids(namespace="com.acme"))
    assert run <= 1 + count // (page * pages_in_a_run)


def test_without_time_nothing_is_begun():
    path = Path()
    with pytest.raises(OutOfTime):
        path.spread(3)(ACME, LATE)
    assert path == Path()


def processor(spread: SpreadChange | None) -> ChangeProcessor:
    return ChangeProcessor(lambda changes, deadline: {}, dict, spread=spread)  # type: ignore[arg-type]


def namespace_message(number: int = 1) -> dict[str, str]:
    event = {**EVENT, "detail": {"table": "Trust", "change": "REMOVE", "keys": ROW}}
    return {**_message(event), "messageId": f"row-{number}"}


def test_a_message_succeeds_only_after_all_were_sent():
    path = Path(fails_after=200)
    batch = {"Records": [namespace_message(), {"messageId": "bad", "body": ""}]}
    answer = process_batch(batch, processor(path.spread(250)))
    assert {failure["itemIdentifier"] for failure in answer["batchItemFailures"]} == {"row-1", "bad"}
    path.fails_after = 10_000
    assert process_batch({"Records": [namespace_message()]}, processor(path.spread(250)))["batchItemFailures"] == []
    assert len(set(path.ids)) == 250


def test_a_message_for_which_there_is_no_time_comes_again():
    answer = process_batch({"Records": [namespace_message()]}, processor(Path().spread(3)), LATE)
    assert answer["batchItemFailures"] == [{"itemIdentifier": "row-1"}]


def test_a_bug_fails_visibly_and_never_loses_a_message():
    with pytest.raises(ValueError, match=r"com\.acme"):
        process_batch({"Records": [namespace_message()]}, processor(None))
    answer = process_batch({"Records": [namespace_message(1), namespace_message(2)]}, processor(None))
    assert [failure["itemIdentifier"] for failure in answer["batchItemFailures"]] == ["row-1", "row-2"]
