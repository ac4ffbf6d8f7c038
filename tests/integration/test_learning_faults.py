"""Random faults on receipts and feedback, and real kills: no accepted outcome is lost, none counts twice."""

import random
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from mats.adapters.clock import Retention
from mats.adapters.dynamodb.receipts import DynamoOutcomes, DynamoReceipts
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.receipts import SqliteOutcomes
from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import Event
from mats.domain.learning.reliability import weight_at
from tests import killed
from tests.aws.tables import a_table, an_outcomes_table, credentials
from tests.contract.learning import AT, PAY, SHIP, a_feedback, a_receipt
from tests.fakes import FakeClock
from tests.learning_faults import Callers, Faults, Killed

FAULTS_IN_AWS = 400
KEPT = Retention(30, FakeClock())


class FaultyTables(Tables):
    """Tables whose calls fail before or after they are done, or meet another writer."""

    faults: Faults

    def _strike(self, call: Callable[[], object], *, conflict: bool) -> object:
        kind = self.faults.choose("unsent", "unanswered", "killed", *["conflict"] * conflict)
        if kind:
            self.faults.strike()
        if kind == "unsent":
            raise DependencyFailed("no connection")
        if kind == "conflict":
            return False
        answer = call()
        if kind == "unanswered":
            raise DependencyFailed("no answer")
        if kind == "killed":
            raise Killed
        return answer

    def transact(self, table, actions):
        return self._strike(lambda: super(FaultyTables, self).transact(table, actions), conflict=True)

    def ask(self, table, operation, **request):
        def call():
            return super(FaultyTables, self).ask(table, operation, **request)

        return self._strike(call, conflict=False) if operation == "put_item" else call()


@pytest.mark.server
@pytest.mark.long(slice="chaos")
def test_random_faults_over_dynamodb_lose_and_double_nothing(dynamodb_url: str, monkeypatch: pytest.MonkeyPatch):
    credentials(monkeypatch, dynamodb=dynamodb_url)
    monkeypatch.setattr("mats.adapters.dynamodb.receipts._FIRST_WAIT_S", 0.0)
    sound, faulty = Tables(), FaultyTables()
    faulty.faults = Faults(random.Random(5))
    kept = a_table(sound, keys=("query_id",))
    learned = an_outcomes_table(sound), a_table(sound, keys=("id", "caller"))

    def start() -> tuple[DynamoReceipts, DynamoOutcomes]:
        return DynamoReceipts(faulty, kept, KEPT), DynamoOutcomes(faulty, *learned)

    callers = Callers(*start(), faulty.faults, start)
    callers.run(FAULTS_IN_AWS)
    callers.check(DynamoOutcomes(sound, *learned))


@pytest.mark.long(slice="kills")
def test_a_kill_at_any_point_of_feedback_records_all_of_it_or_nothing(tmp_path: Path):
    start = tmp_path / "start"
    start.mkdir()
    Database(start / killed.HOME).close()
    receipt = a_receipt("q1")
    with closing(Database(start / killed.HOME)) as database:
        before = a_feedback(receipt, (PAY, Event.SELECTED), (SHIP, Event.SUCCEEDED))
        SqliteOutcomes(database).record(receipt, before, AT)
    found = set()
    for folder in killed.kill("feedback", start):
        with closing(Database(folder / killed.HOME)) as database:
            outcomes = SqliteOutcomes(database)
            answer = outcomes.of("q1")
            assert answer is not None
            done = Event.SUCCEEDED in answer.events[PAY]
            found.add(done)
            tallies = {id: (t.successes, t.failures) for id, [t] in outcomes.tallies([PAY, SHIP]).items()}
            one = weight_at(AT)
            assert tallies == ({PAY: (one, 0.0), SHIP: (0.0, one)} if done else {SHIP: (one, 0.0)})
            assert (answer.missing == "a stamp") is done
        killed.OPERATIONS["feedback"](folder)
        with closing(Database(folder / killed.HOME)) as database:
            [tally] = SqliteOutcomes(database).tallies([PAY])[PAY]
            assert tally.successes == weight_at(AT)
        shutil.rmtree(folder)
    assert found == {False, True}
