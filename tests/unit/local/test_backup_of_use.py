"""What a restored registry remembers of its use."""

from pathlib import Path

from mats.adapters.clock import Retention, SystemClock, fresh_id
from mats.adapters.sqlite.backup import back_up, open_backup, restore
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.memory import SqliteMemory
from mats.adapters.sqlite.receipts import SqliteOutcomes, SqliteReceipts
from mats.adapters.sqlite.registry import Announcer
from mats.domain.learning.outcome import Event, unpack_vector
from tests.contract.learning import PAY, SHIP, a_feedback, a_receipt


def use(database: Database) -> list[object]:
    """All that is kept of receipts, reports and what is derived from them."""
    outcomes = SqliteOutcomes(database)
    return [
        SqliteReceipts(database, Retention(30)).since("", most=9),
        [outcomes.of(query_id) for query_id in outcomes.query_ids()],
        SqliteMemory(database, encoder="fake").nearest(unpack_vector(a_receipt().vector or b""), depth=9),
    ]


def test_receipts_and_reports_are_restored_with_what_is_derived_from_them(tmp_path: Path):
    first, second = Database(tmp_path / "one/mats.db"), Database(tmp_path / "two/mats.db")
    answered = [a_receipt("q2"), a_receipt("q1")]
    SqliteReceipts(first, Retention(30)).put_all(answered)
    for receipt in answered:
        said = a_feedback(receipt, (PAY, Event.SUCCEEDED), (SHIP, Event.FAILED), missing="a stamp")
        SqliteOutcomes(first).record(receipt, said)
    back_up(first, tmp_path / "backup")
    with open_backup(tmp_path / "backup") as backup:
        contents = restore(backup, second, Announcer(SystemClock(), fresh_id))
    assert (contents.receipts, contents.reports) == (2, 2)
    assert use(second) == use(first)
    assert all(use(second))
