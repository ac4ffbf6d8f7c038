"""The reply cache: keyed by the whole request, shared by threads and processes, durable; and calls through it."""

import threading
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mats.adapters.llm import ModelReply, ToolCall
from mats.domain.errors import DependencyFailed, StorageUnusable
from mats.domain.prompts.usage import Prices, Usage
from mats.evaluation.systems.models import Budget, CachedEncoder, Models, ReplyCache, TimedReply
from mats.settings import Settings
from tests.fakes import FakeEncoder

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
)
REPLIES = st.builds(
    ModelReply,
    stop=st.sampled_from(["", "end_turn", "tool_use", "max_tokens"]),
    calls=st.lists(st.builds(ToolCall, st.text(), st.text(), JSON), max_size=3).map(tuple),
    text=st.text(),
    usage=st.builds(Usage, input_tokens=st.integers(0, 9), output_tokens=st.integers(0, 9), usd=st.none()),
)
PRICES = Prices({})


def a_request(text="hello", model="m"):
    return {"model": model, "texts": [text]}


def a_reply(text="", took_ms=1.0):
    reply = ModelReply(stop="end_turn", calls=(), text=text, usage=PRICES.usage("m", 0, 0))
    return TimedReply(reply, took_ms, cached=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "replies.db"


def test_the_first_reply_to_a_request_stays_and_is_found_by_that_request_only(path):
    cache = ReplyCache(path)
    cache.put(a_request(), a_reply("a", 12.5))
    cache.put(a_request(), a_reply("b"))
    assert cache.get(dict(reversed(a_request().items())), PRICES) == a_reply("a", 12.5)
    assert cache.get(a_request("other"), PRICES) is None
    assert cache.get(a_request(model="n"), PRICES) is None


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> ReplyCache:
    return ReplyCache(tmp_path_factory.mktemp("cache") / "replies.db")


def test_threads_over_two_connections_lose_nothing(path):
    both = [ReplyCache(path), ReplyCache(path)]

    def store(worker: int) -> None:
        for n in range(20):
            both[worker % 2].put(a_request(f"{worker} {n}"), a_reply())

    threads = [threading.Thread(target=store, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(both[0].get(a_request(f"{worker} {n}"), PRICES) for worker in range(4) for n in range(20))


def test_a_file_that_is_no_database_says_what_to_do(path):
    path.parent.mkdir()
    path.write_bytes(b"not a database, but long enough to be taken for one" * 20)
    with pytest.raises(StorageUnusable, match=r"replies\.db.*MATS_CACHE"):
        ReplyCache(path)


def test_vectors_that_cannot_be_stored_say_what_to_do(path):
    path.parent.write_text("in the way")
    with pytest.raises(StorageUnusable, match=r"vectors-.*MATS_CACHE"):
        CachedEncoder(FakeEncoder(), path.parent).encode_documents(["a"])


def test_the_file_is_in_the_cache_folder_of_the_settings(tmp_path: Path):
    assert Models(Settings(cache=tmp_path / "mine"))._reply_to
    assert (tmp_path / "mine" / "model-replies.db").is_file()


NUMBERS = count()


@settings(max_examples=40)
@given(reply=REPLIES)
def test_a_cached_reply_equals_the_original_with_its_duration(shared, reply):
    request = a_request(f"call {next(NUMBERS)}")
    first, second = (shared.reply_to(PRICES, Budget(), request, lambda: reply) for _ in range(2))
    assert (first.reply, first.cached) == (reply, False)
    assert (second.reply, second.cached, second.took_ms) == (reply, True, first.took_ms)


def test_a_failed_call_is_not_stored(path):
    def fail() -> ModelReply:
        raise DependencyFailed("down")

    cache = ReplyCache(path)
    with pytest.raises(DependencyFailed):
        cache.reply_to(PRICES, Budget(), a_request(), fail)
    assert cache.get(a_request(), PRICES) is None
