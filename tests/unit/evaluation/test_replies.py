"""Replies that are kept: found again by exactly the same request, by whoever asks, whatever happened in between."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mats.domain.errors import StorageUnusable
from mats.evaluation.systems.cached_converse import SqliteReplies, kept_by
from mats.ports import Kept
from mats.settings import Settings
from tests.conftest import ROOT

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
)


def a_request(text="hello", model="m"):
    return {"modelId": model, "messages": [{"role": "user", "content": [{"text": text}]}]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "replies.db"


def test_a_reply_is_found_again_by_its_request_and_by_no_other(path):
    replies = SqliteReplies(path)
    replies.keep(a_request(), Kept({"stopReason": "end_turn"}, 12.5))
    assert replies.get(a_request()) == Kept({"stopReason": "end_turn"}, 12.5)
    assert replies.get(a_request("other")) is None
    assert replies.get(a_request(model="n")) is None


def test_the_order_of_keys_does_not_matter(path):
    replies = SqliteReplies(path)
    replies.keep(a_request(), Kept({}, 1.0))
    assert replies.get(dict(reversed(a_request().items()))) == Kept({}, 1.0)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> SqliteReplies:
    return SqliteReplies(tmp_path_factory.mktemp("cache") / "replies.db")


@settings(max_examples=40)
@given(reply=st.dictionaries(st.text(), JSON), took_ms=st.floats(0, 1e9))
def test_any_json_comes_back_as_it_was(shared, reply, took_ms):
    request = a_request(f"{reply} {took_ms}")
    shared.keep(request, Kept(reply, took_ms))
    assert shared.get(request) == Kept(reply, took_ms)


def test_of_two_replies_to_one_request_the_first_stays(path):
    replies = SqliteReplies(path)
    replies.keep(a_request(), Kept({"n": 1}, 1.0))
    replies.keep(a_request(), Kept({"n": 2}, 2.0))
    assert replies.get(a_request()) == Kept({"n": 1}, 1.0)


def test_two_connections_see_each_others_replies_at_once(path):
    here, there = SqliteReplies(path), SqliteReplies(path)
    here.keep(a_request("a"), Kept({}, 1.0))
    assert there.get(a_request("a"))
    there.keep(a_request("b"), Kept({}, 1.0))
    assert here.get(a_request("b"))


def test_threads_over_two_connections_lose_nothing(path):
    both = [SqliteReplies(path), SqliteReplies(path)]

    def keep(worker: int) -> None:
        for n in range(20):
            both[worker % 2].keep(a_request(f"{worker} {n}"), Kept({"n": n}, 1.0))

    threads = [threading.Thread(target=keep, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(both[0].get(a_request(f"{worker} {n}")) for worker in range(4) for n in range(20))


KEEPER = """
import sys
from pathlib import Path
from mats.evaluation.systems.cached_converse import SqliteReplies
from mats.ports import Kept
replies = SqliteReplies(Path(sys.argv[1]))
for n in range(int(sys.argv[2])):
    replies.keep({"modelId": "m", "n": n}, Kept({"n": n}, 1.0))
    sys.stdout.write(f"{n}\\n")
    sys.stdout.flush()
"""


def keeping(path: Path, count: int) -> "subprocess.Popen[bytes]":
    """A process that keeps so many replies and says so of each."""
    return subprocess.Popen(
        [sys.executable, "-c", KEEPER, str(path), str(count)],
        cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/layers/core/python"},
    )  # fmt: skip


def test_two_processes_may_keep_replies_to_the_same_requests(path):
    said = [process.communicate()[0] for process in [keeping(path, 40), keeping(path, 40)]]
    assert [each.count(b"\n") for each in said] == [40, 40]
    replies = SqliteReplies(path)
    assert all(replies.get({"modelId": "m", "n": n}) == Kept({"n": n}, 1.0) for n in range(40))


def test_a_reply_that_was_acknowledged_survives_a_kill(path):
    process = keeping(path, 1_000_000)
    assert process.stdout is not None
    for _ in range(30):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    more, _ = process.communicate()
    acknowledged = 30 + more.count(b"\n")
    replies = SqliteReplies(path)
    assert all(replies.get({"modelId": "m", "n": n}) for n in range(acknowledged))


def test_a_file_that_is_something_else_says_what_to_do(path):
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to be taken for one" * 20)
    with pytest.raises(StorageUnusable, match=r"replies\.db.*MATS_CACHE"):
        SqliteReplies(path)


def test_they_are_kept_in_the_cache_folder_of_the_settings(tmp_path: Path):
    kept_by(Settings(cache=tmp_path / "mine")).keep(a_request(), Kept({}, 1.0))
    assert (tmp_path / "mine" / "replies.db").is_file()
