"""The reply cache: keyed by the whole request, shared by threads and processes, durable; and Converse through it."""

import os
import signal
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mats.adapters.llm import ModelReply, ToolCall
from mats.domain.errors import DependencyFailed, StorageUnusable
from mats.domain.prompts.usage import Prices, Usage
from mats.evaluation.systems.cached_converse import CachedConverse, CachedResponse, ReplyCache
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


def test_a_response_is_found_by_its_request_only(path):
    cache = ReplyCache(path)
    cache.put(a_request(), CachedResponse({"stopReason": "end_turn"}, 12.5))
    assert cache.get(a_request()) == CachedResponse({"stopReason": "end_turn"}, 12.5)
    assert cache.get(a_request("other")) is None
    assert cache.get(a_request(model="n")) is None


def test_the_order_of_keys_does_not_matter(path):
    cache = ReplyCache(path)
    cache.put(a_request(), CachedResponse({}, 1.0))
    assert cache.get(dict(reversed(a_request().items()))) == CachedResponse({}, 1.0)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> ReplyCache:
    return ReplyCache(tmp_path_factory.mktemp("cache") / "replies.db")


@settings(max_examples=40)
@given(reply=st.dictionaries(st.text(), JSON), took_ms=st.floats(0, 1e9))
def test_any_json_round_trips(shared, reply, took_ms):
    request = a_request(f"{reply} {took_ms}")
    shared.put(request, CachedResponse(reply, took_ms))
    assert shared.get(request) == CachedResponse(reply, took_ms)


def test_the_first_response_to_a_request_stays(path):
    cache = ReplyCache(path)
    cache.put(a_request(), CachedResponse({"n": 1}, 1.0))
    cache.put(a_request(), CachedResponse({"n": 2}, 2.0))
    assert cache.get(a_request()) == CachedResponse({"n": 1}, 1.0)


def test_two_connections_see_each_other_immediately(path):
    here, there = ReplyCache(path), ReplyCache(path)
    here.put(a_request("a"), CachedResponse({}, 1.0))
    assert there.get(a_request("a"))
    there.put(a_request("b"), CachedResponse({}, 1.0))
    assert here.get(a_request("b"))


def test_threads_over_two_connections_lose_nothing(path):
    both = [ReplyCache(path), ReplyCache(path)]

    def store(worker: int) -> None:
        for n in range(20):
            both[worker % 2].put(a_request(f"{worker} {n}"), CachedResponse({"n": n}, 1.0))

    threads = [threading.Thread(target=store, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(both[0].get(a_request(f"{worker} {n}")) for worker in range(4) for n in range(20))


WRITER = """
import sys
from pathlib import Path
from mats.evaluation.systems.cached_converse import CachedResponse, ReplyCache
cache = ReplyCache(Path(sys.argv[1]))
for n in range(int(sys.argv[2])):
    cache.put({"modelId": "m", "n": n}, CachedResponse({"n": n}, 1.0))
    sys.stdout.write(f"{n}\\n")
    sys.stdout.flush()
"""


def writer_process(path: Path, count: int) -> "subprocess.Popen[bytes]":
    """A process that stores `count` responses and prints a line for each."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(count)],
        cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/layers/core/python"},
    )  # fmt: skip


def test_two_processes_may_store_the_same_requests(path):
    said = [process.communicate()[0] for process in [writer_process(path, 40), writer_process(path, 40)]]
    assert [each.count(b"\n") for each in said] == [40, 40]
    cache = ReplyCache(path)
    assert all(cache.get({"modelId": "m", "n": n}) == CachedResponse({"n": n}, 1.0) for n in range(40))


def test_a_stored_response_survives_a_kill(path):
    process = writer_process(path, 1_000_000)
    assert process.stdout is not None
    for _ in range(30):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    more, _ = process.communicate()
    acknowledged = 30 + more.count(b"\n")
    cache = ReplyCache(path)
    assert all(cache.get({"modelId": "m", "n": n}) for n in range(acknowledged))


def test_a_file_that_is_no_database_says_what_to_do(path):
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to be taken for one" * 20)
    with pytest.raises(StorageUnusable, match=r"replies\.db.*MATS_CACHE"):
        ReplyCache(path)


def test_the_file_is_in_the_cache_folder_of_the_settings(tmp_path: Path):
    ReplyCache.open(Settings(cache=tmp_path / "mine")).put(a_request(), CachedResponse({}, 1.0))
    assert (tmp_path / "mine" / "replies.db").is_file()


NUMBERS = count()
REPLIES = st.builds(
    ModelReply,
    stop=st.sampled_from(["", "end_turn", "tool_use", "max_tokens"]),
    calls=st.lists(st.builds(ToolCall, st.text(), st.text(), JSON), max_size=3).map(tuple),
    text=st.text(),
    usage=st.builds(Usage, input_tokens=st.integers(0, 9), output_tokens=st.integers(0, 9), usd=st.none()),
)


@settings(max_examples=40)
@given(reply=REPLIES)
def test_a_cached_reply_equals_the_original_with_its_duration(shared, reply):
    converse = CachedConverse(lambda request: reply, shared, Prices({}))
    request = a_request(f"converse {next(NUMBERS)}")
    first, second = converse.send(request), converse.send(request)
    assert (first.reply, first.cached) == (reply, False)
    assert (second.reply, second.cached, second.took_ms) == (reply, True, first.took_ms)


def test_a_failed_call_is_not_stored(path):
    def fail(request: object) -> ModelReply:
        raise DependencyFailed("down")

    cache = ReplyCache(path)
    with pytest.raises(DependencyFailed):
        CachedConverse(fail, cache, Prices({}))(a_request())
    assert cache.get(a_request()) is None
