"""Operations on the file of a registry in processes that are killed at a given point, each in a copy of a folder.

`python -m tests.killed OPERATION START RUNS COUNT SEED` copies START to RUNS/0, RUNS/1, … and runs the operation in
each, in a process of its own, which kills itself with SIGKILL at one of the calls and returns within the adapter, calls
of SQLite and the operating system included. It prints the number of such points, and those that were taken.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

from mats.adapters.clock import Retention, SystemClock, fresh_id
from mats.adapters.sqlite.backup import back_up, open_backup, restore
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.receipts import SqliteOutcomes, SqliteReceipts
from mats.adapters.sqlite.registry import Announcer, SqliteRegistry
from mats.adapters.sqlite.sources import SqliteSources
from mats.bootstrap.local import local_system
from mats.domain.learning.outcome import Event
from mats.domain.profile.sync import SourceKind, TrackedSource
from mats.local import worker
from mats.local.imports.sources import Reading, open_sources
from mats.local.imports.sync import Sync
from mats.settings import Settings
from tests.contract.learning import PAY, SHIP, a_feedback, a_receipt
from tests.fakes import FakeEncoder

ADAPTER = str(Path(sys.modules[Database.__module__].__file__ or "").parent)
HOME, FILE, SOURCE, RESTORED = "home/mats.db", "mats.backup", "items.jsonl", "restored/mats.db"
_POINTS, _SEED = 50, 17
_ROOT = Path(__file__).parents[1]


def _back_up(folder: Path) -> None:
    database = Database(folder / HOME)
    back_up(database, folder / FILE)
    database.close()


def _restore(folder: Path) -> None:
    database = Database(folder / RESTORED)
    with open_backup(folder / FILE) as backup:
        restore(backup, database, Announcer(SystemClock(), fresh_id))
    database.close()


def _create(folder: Path) -> None:
    Database(folder / HOME).close()


def _sync(folder: Path, *, prune: bool = False) -> None:
    """Sync the source `items`, the file SOURCE, into the registry."""
    database = Database(folder / HOME)
    registry = SqliteRegistry(database, Announcer(SystemClock(), fresh_id))
    book = SqliteSources(database)
    source = TrackedSource(name="items", kind=SourceKind.DOCUMENT)
    book.add(source)

    def open_source(source: TrackedSource, since: str) -> Reading:
        return Reading(open_sources(str(folder / SOURCE)))

    sync = Sync(target=registry, book=book, clock=SystemClock(), open=open_source)
    sync(book.all()[0], prune=prune, force=prune)
    database.close()


def _index(folder: Path) -> None:
    local = local_system(Settings(home=(folder / HOME).parent), encoder=FakeEncoder())
    with patch.multiple(worker, MANY=65, BATCH=64):
        worker.drain(local)
    local.close()


def _record_feedback(folder: Path) -> None:
    database, receipt = Database(folder / HOME), a_receipt("q1")
    said = a_feedback(receipt, (PAY, Event.SUCCEEDED), (SHIP, Event.FAILED), missing="a stamp")
    SqliteReceipts(database, Retention(30)).put(receipt)
    SqliteOutcomes(database).record(receipt, said)
    database.close()


OPERATIONS: dict[str, Callable[[Path], None]] = {
    "backup": _back_up,
    "restore": _restore,
    "create": _create,
    "sync": _sync,
    "prune": partial(_sync, prune=True),
    "index": _index,
    "feedback": _record_feedback,
}


def run(operation: Callable[[Path], None], folder: Path, point: int) -> int:
    """The number of points passed, up to the one at which the process was killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        passed = 0

        def count(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal passed
            if frame.f_code.co_filename.startswith(ADAPTER):
                passed += 1
                if passed == point:
                    os.kill(os.getpid(), signal.SIGKILL)

        threading.setprofile(count)  # in threads that the operation starts, too
        sys.setprofile(count)
        operation(folder)
        sys.setprofile(None)
        os.write(writer, str(passed).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        passed = int(told.read() or point)
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert killed or os.waitstatus_to_exitcode(status) == 0
    return passed


def kill(operation: str, start: Path) -> Iterator[Path]:
    """The folder of each killed run of an operation, by the command above."""
    runs = start.parent / "runs"
    arguments = [operation, str(start), str(runs), str(_POINTS), str(_SEED)]
    ran = subprocess.run(
        [sys.executable, "-m", __name__, *arguments], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    points = json.loads(ran.stdout)["points"]
    assert len(points) == _POINTS
    yield from (runs / str(number) for number in range(len(points)))


def main(name: str, start: str, runs: str, count: str, seed: str) -> None:
    operation, folder = OPERATIONS[name], Path(runs)
    total = run(operation, Path(shutil.copytree(start, folder / "whole")), 0)
    points = [*sorted(random.Random(int(seed)).sample(range(1, total), min(int(count), total) - 1)), total]
    for number, point in enumerate(points):
        run(operation, Path(shutil.copytree(start, folder / str(number))), point)
    sys.stdout.write(json.dumps({"total": total, "points": points}))


if __name__ == "__main__":
    main(*sys.argv[1:])
