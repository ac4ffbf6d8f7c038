"""Reports that meet each other in DynamoDB, and real kills: no accepted outcome is lost."""

import shutil
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from mats.adapters.dynamodb.receipts import DynamoOutcomes
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.receipts import SqliteOutcomes
from mats.domain.learning.outcome import Event, Outcome, Receipt
from tests import killed
from tests.aws.tables import an_outcomes_table, credentials
from tests.contract.learning import PAY, SHIP, a_feedback, a_receipt


class Raced(Tables):
    """Tables where `first` runs between what a report has read and its first transaction."""

    first: Callable[[], object]

    def transact(self, table, actions):
        first, self.first = self.first, lambda: None
        first()
        return super().transact(table, actions)


@pytest.mark.server
@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [
        ((), (SHIP, Event.WRONG)),
        ((SHIP, Event.WRONG), (PAY, Event.SELECTED)),
        ((PAY, Event.SELECTED), (PAY, Event.FAILED)),
    ],
    ids=["a first report", "of another result", "of the same result"],
)
def test_a_report_that_meets_another_is_recorded_with_it(dynamodb_url: str, monkeypatch, before, meanwhile):
    credentials(monkeypatch, dynamodb=dynamodb_url)
    sound, raced, receipt = Tables(), Raced(), a_receipt("q1")
    table = an_outcomes_table(sound)
    others, ours = DynamoOutcomes(sound, table), DynamoOutcomes(raced, table)
    if before:
        others.record(receipt, a_feedback(receipt, before))
    raced.first = lambda: others.record(receipt, a_feedback(receipt, meanwhile, missing="a stamp"))
    mine = (PAY, Event.SUCCEEDED)
    assert ours.record(receipt, a_feedback(receipt, mine)) == [Outcome(*mine)]
    answer = others.of("q1")
    assert answer is not None
    assert answer.missing == "a stamp"
    assert {(id, event) for id, events in answer.events.items() for event in events} == {
        *filter(None, (before, meanwhile, mine))
    }


class Interrupted(Tables):
    """Tables where `at` runs before the write of this number; a stop in it is a kill."""

    def __init__(self, number: int, at: Callable[[], object]) -> None:
        super().__init__(writers=1)
        self.left, self.at = number, at

    def ask(self, table, operation, **request):
        if operation in ("delete_item", "update_item"):
            self.left -= 1
            if not self.left:
                self.at()
        return super().ask(table, operation, **request)


def _stop() -> None:
    raise KeyboardInterrupt


@pytest.mark.server
@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("killed", [True, False])
def test_a_withdrawal_that_is_interrupted_or_meets_a_report_leaves_what_is_kept(
    dynamodb_url: str, monkeypatch, number: int, *, killed: bool
):
    credentials(monkeypatch, dynamodb=dynamodb_url)
    sound, receipts = Tables(), [a_receipt(name) for name in ("q1", "q2", "q3")]
    table = an_outcomes_table(sound)
    outcomes = DynamoOutcomes(sound, table)

    def report(receipt: Receipt) -> None:
        outcomes.record(receipt, a_feedback(receipt, (PAY, Event.SUCCEEDED), (SHIP, Event.FAILED)))

    for receipt in receipts[:2]:
        report(receipt)
    report(a_receipt("q4"))
    outcomes.confirm("q4")
    interrupted = Interrupted(number, _stop if killed else lambda: report(receipts[2]))
    with suppress(KeyboardInterrupt):
        DynamoOutcomes(interrupted, table).withdraw_of(receipts[0].caller)
    outcomes.withdraw_of(receipts[0].caller)
    assert list(outcomes.query_ids()) == ["q4"]
    rows = sound.all_rows(table, "scan", ConsistentRead=True)
    assert {row["query_id"]["S"] for row in rows} == {"q4"}


@pytest.mark.long(slice="kills")
def test_a_kill_at_any_point_of_feedback_records_all_of_it_or_nothing(tmp_path: Path):
    start = tmp_path / "start"
    start.mkdir()
    Database(start / killed.HOME).close()
    receipt = a_receipt("q1")
    with closing(Database(start / killed.HOME)) as database:
        before = a_feedback(receipt, (PAY, Event.SELECTED), (SHIP, Event.SUCCEEDED))
        SqliteOutcomes(database).record(receipt, before)
    found = set()
    for folder in killed.kill("feedback", start):
        with closing(Database(folder / killed.HOME)) as database:
            outcomes = SqliteOutcomes(database)
            answer = outcomes.of("q1")
            assert answer is not None
            done = Event.SUCCEEDED in answer.events[PAY]
            found.add(done)
            assert (Event.FAILED in answer.events[SHIP]) is done
            assert (answer.missing == "a stamp") is done
        killed.OPERATIONS["feedback"](folder)
        with closing(Database(folder / killed.HOME)) as database:
            answer = SqliteOutcomes(database).of("q1")
            assert answer is not None
            assert Event.SUCCEEDED in answer.events[PAY]
        shutil.rmtree(folder)
    assert found == {False, True}
