"""An index in files of a bucket: every kill, race and loss ends as it was written."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from mats.adapters.files import store as stores
from mats.adapters.files.bucket import Bucket
from mats.adapters.files.memory import FilesMemory
from mats.adapters.files.store import Store
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, StorageUnusable
from mats.domain.learning.outcome import pack_vector
from mats.domain.learning.remembered import Remembered
from mats.domain.search.query import Filter
from mats.usecases.look_up import LookUp
from mats.usecases.reindex import Reindex
from tests.aws.s3 import S3
from tests.aws.tables import credentials
from tests.builders import a_registration
from tests.fakes import FakeEncoder
from tests.files import FilesWorld, Killed, Mortal, a_bucket

RIGHT = {"lost": 0, "ghosts": 0, "older": 0}
PAY, SHIP = Id("com.acme/pay"), Id("com.acme/ship")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    with (bucket := S3()).serving() as url:
        credentials(monkeypatch, s3=url)
        yield bucket


@pytest.fixture
def world(s3: S3) -> Iterator[FilesWorld]:
    made = FilesWorld()
    yield made
    made.close()


def register(world: FilesWorld, *names: str, text: str = "moves money") -> list[Id]:
    made = [a_registration(name=name, namespace="com.acme", description=f"{text} {name}") for name in names]
    world.registry.put(made)
    return [each.id for each in made]


def faults(world: FilesWorld) -> dict[str, int]:
    """Of a reader that opens now."""
    return world.faults(world.open()[0])


def killed_runs(work: Callable[[Bucket], object], *, step: int = 1) -> Iterator[int]:
    """Run it until no write is left to die at: killed before each write, and after it."""
    for after in (False, True):
        for point in range(1, 100, step):
            try:
                work(Mortal(point, after=after))
            except Killed:
                yield point
            else:
                break
        assert point > 1


def test_a_writer_that_dies_at_any_write_has_lost_nothing_when_its_event_comes_again(world: FilesWorld):
    def work(bucket: Bucket) -> None:
        ids = register(world, "pay", "ship", text=f"moves money {bucket.left} {bucket.after}")
        world.handle(*ids, bucket=bucket)

    for _ in killed_runs(work):
        world.handle(PAY, SHIP)
        assert faults(world) == world.faults(world.files) == RIGHT


def test_a_compaction_that_dies_at_any_write_leaves_all_that_is_needed_and_the_next_one_tidies(
    world: FilesWorld, s3: S3, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stores, "KEPT", 1)

    def work(bucket: Bucket) -> None:
        for name in ("pay", "ship", "pay"):
            world.handle(*register(world, name, text=f"{bucket.left} {bucket.after} {name}"))
        world.open(bucket)[1].compact(least=1)

    for _ in killed_runs(work):
        assert faults(world) == world.faults(world.files) == RIGHT
    world.handle(*register(world, "pay", text="at last"))
    world.open()[1].compact(least=1)
    kinds = [key.split("/")[-2] for key in s3.current]
    assert (kinds.count("files"), kinds.count("log")) == (1, 1)
    assert faults(world) == RIGHT


def test_a_reindex_that_dies_at_any_write_is_resumed(world: FilesWorld):
    world.handle(*register(world, *(f"item-{n}" for n in range(3))))

    def work(bucket: Bucket) -> None:
        _, generations = world.open(bucket)
        list(Reindex(profiles=world.profiles, generations=generations, page=4)())
        generations.retire()

    for point in killed_runs(work, step=4):
        assert faults(world) == RIGHT
        world.handle(*register(world, "item-1", text=f"at {point}"))
        assert faults(world) == RIGHT


def test_an_older_file_never_takes_the_place_of_a_newer_one(world: FilesWorld, tmp_path: Path):
    world.handle(*register(world, "pay"))
    world.handle(*register(world, "ship"))
    store, old = Store(a_bucket(), "index"), tmp_path / "old"
    old.write_bytes(b"of an hour ago")
    name = store.head().current
    world.generations.compact(least=1)
    newer = store.head()
    assert not store.publish(name, 1, old)
    assert not store.publish(name, 2, old)
    assert store.head() == newer
    assert len(list(store.bucket.keys(f"index/{name}/files/"))) == 1


def test_of_many_writers_none_takes_the_number_of_another(s3: S3, world: FilesWorld):
    world.generations.writable()
    stores_ = [Store(a_bucket(), "index") for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda n: stores_[n % 4].append("capabilities-1", {"n": n}), range(24)))
    assert sorted(numbers) == list(range(1, 25))
    read = [each["n"] for part in stores_[0].after("capabilities-1", 0) for each in part]
    assert sorted(read) == list(range(24))


def test_a_writer_that_slept_through_a_compaction_writes_behind_it(world: FilesWorld, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stores, "KEPT", 0)
    world.generations.writable()
    sleeper = Store(a_bucket(), "index")
    assert sleeper.append("capabilities-1", {}) == 1
    for name in ("pay", "ship"):
        world.handle(*register(world, name))
    world.generations.compact(least=1)
    register(world, "late")
    assert sleeper.append("capabilities-1", {"purge": []}) == 4
    assert faults(world) == {**RIGHT, "lost": 0}


def test_a_reader_that_slept_reads_the_file_again(world: FilesWorld, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stores, "KEPT", 0)
    world.handle(*register(world, "pay"))
    assert world.faults(world.files) == RIGHT
    for name in ("ship", "pay"):
        world.handle(*register(world, name, text="anew"))
    world.generations.compact(least=1)
    assert world.faults(world.files) == RIGHT
    assert list(world.files.lexical(["anew"], Filter(), depth=5)) == [PAY, SHIP]


def test_a_head_that_was_deleted_is_found_among_its_versions(world: FilesWorld, s3: S3):
    world.handle(*register(world, "pay"))
    world.generations.compact(least=1)
    s3.delete("index/HEAD")
    assert faults(world) == RIGHT
    world.handle(*register(world, "ship"))
    assert faults(world) == world.faults(world.files) == RIGHT
    assert "index/HEAD" not in s3.current
    world.handle(*register(world, "pay", text="again"))
    world.generations.compact(least=1)
    assert "index/HEAD" in s3.current


def test_a_head_that_is_lost_with_every_version_is_made_again_from_the_profiles(world: FilesWorld, s3: S3):
    world.handle(*register(world, "pay", "ship"))
    world.generations.compact(least=1)
    s3.destroy("index/HEAD")
    assert faults(world)["lost"] == 2
    world.handle(*register(world, "late"))
    assert world.reconcile() == 2
    assert faults(world) == world.faults(world.files) == RIGHT
    assert world.generations.current() == "capabilities-2"


def test_without_its_bucket_a_reader_answers_as_it_was_and_a_new_one_fails(world: FilesWorld, s3: S3):
    world.handle(*register(world, "pay"))
    assert world.faults(world.files) == RIGHT
    s3.fault = lambda method, key, done: "drop"
    assert LookUp(world.files)(PAY, frozenset()).id == PAY
    with pytest.raises(DependencyFailed):
        faults(world)


def test_a_reply_that_is_lost_writes_once_more_and_changes_nothing(world: FilesWorld, s3: S3):
    lost = iter([True])
    s3.fault = lambda method, key, done: "drop" if method == "PUT" and "/log/" in key and done and next(lost, 0) else ""
    world.handle(*register(world, "pay"))
    assert len([key for key in s3.current if "/log/" in key]) == 2
    assert faults(world) == RIGHT


def put_behind(s3: S3, *bodies: bytes) -> None:
    """Records that nobody of us wrote, behind the last one."""
    last = max(key for key in s3.current if "/log/" in key)
    for number, body in enumerate(bodies, start=int(last[-12:]) + 1):
        s3.put(f"{last[:-12]}{number:012}", body, None, None)


def test_records_that_nobody_can_read_are_left_out_and_what_they_held_is_mended(world: FilesWorld, s3: S3):
    world.handle(*register(world, "pay"))
    put_behind(s3, b"no json", b"[]", b'{"put": 5}', b'{"put": [["{}", null]]}', b'{"put": [["{}"]]}', b'{"purge": 3}')
    world.handle(*register(world, "ship"))
    assert faults(world) == world.faults(world.files) == RIGHT
    last = max(key for key in s3.current if "/log/" in key)
    s3.put(last, b"overwritten", None, None)
    assert faults(world)["lost"] == 1
    assert world.reconcile() == 1
    assert faults(world) == RIGHT


@pytest.mark.parametrize("body", [b"", b"no database", b"SQLite format 3\0" + b"\1" * 5_000, None])
def test_a_file_that_nobody_can_read_is_named_with_its_remedy_which_works(
    world: FilesWorld, s3: S3, body: bytes | None
):
    world.handle(*register(world, "pay"))
    assert world.faults(world.files) == RIGHT
    world.generations.compact(least=1)
    (key,) = (each for each in s3.current if "/files/" in each)
    if body is None:
        s3.destroy(key)
    else:
        s3.put(key, body, None, None)
    with pytest.raises(DependencyFailed, match="delete every version of HEAD"):
        faults(world)
    assert world.faults(world.files) == RIGHT  # as it was
    s3.destroy("index/HEAD")
    world.reconcile()
    world.handle(*register(world, "ship"))
    world.reconcile()
    assert faults(world) == RIGHT


def test_many_compactions_and_a_writer_at_a_time_lose_nothing(
    world: FilesWorld, s3: S3, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(stores, "KEPT", 1)
    for turn in range(6):
        for name in ("pay", "ship"):
            world.handle(*register(world, name, text=f"{turn} {name}"))
        others = [world.open()[1] for _ in range(4)]
        ids = register(world, "late", text=f"late {turn}")
        with ThreadPoolExecutor(5) as pool:
            pending = [pool.submit(each.compact, least=1) for each in others]
            pool.submit(world.handle, *ids).result()
            assert sum(each.result() for each in pending) >= 1
        assert faults(world) == RIGHT
    assert len([key for key in s3.current if "/files/" in key]) == 1


def test_a_file_of_another_release_is_read(world: FilesWorld, s3: S3, tmp_path: Path):
    world.handle(*register(world, "pay", "ship"))
    world.registry.remove(PAY)
    world.handle(PAY)
    world.generations.compact(least=1)
    store, path = Store(a_bucket(), "index"), tmp_path / "mats.db"
    head = store.head()
    store.bucket.download(head.generations[0].file, path)
    with sqlite3.connect(path) as there:
        there.execute("PRAGMA user_version = 1")
    there.close()
    store.bucket.write("index/other", path.read_bytes())
    store.change(lambda head: head.having(replace(head.generations[0], file="index/other")))
    assert faults(world) == RIGHT


def test_a_head_that_nobody_can_read_says_what_to_do(world: FilesWorld, s3: S3):
    s3.put("index/HEAD", b"{}", None, None)
    with pytest.raises(StorageUnusable, match="delete its newest version"):
        world.generations.current()


def test_a_memory_is_the_same_from_its_file_and_from_its_records(s3: S3):
    def a_memory() -> FilesMemory:
        return FilesMemory(Store(a_bucket(), "memory"), encoder="fake", fresh_s=0)

    def remembered(text: str) -> Remembered:
        vector = pack_vector([1.0, 0.0])
        return Remembered(
            query_id=text, text=text, caller="ann", audiences=frozenset(), at="", used=frozenset([PAY]),
            encoder="fake", vector=vector,
        )  # fmt: skip

    first, early = a_memory(), a_memory().version()
    late = a_memory().version()
    first.remember([remembered("q1"), remembered("q2")], version=late)
    first.forget(["q2"], version=first.version())
    first.compact(least=1)
    first.remember([remembered("q3")], version=first.version())
    first.forget(["q1"], version=early)
    first.remember([remembered("q2")], version=late)
    vector = FakeEncoder().encode_query("x")[:2]
    for memory in (first, a_memory()):
        assert {near.memory.query_id for near in memory.nearest(vector, depth=9)} == {"q1", "q3"}
        memory.close()
