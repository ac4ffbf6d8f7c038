"""The file of arrays beside the database: an index that starts with it answers as one that reads every entry."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mats.adapters.sqlite.backup import back_up, restore
from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.index import SqliteIndex
from mats.adapters.sqlite.saved import SAVED, SavedArrays
from mats.domain.capability.capability import Kind
from mats.domain.ranking.query import Filter
from mats.domain.text.words import query_terms
from tests.contract.test_index import ENCODER, entry, lexical, tombstone

WORDS = ("red", "green", "blue", "boats", "planes", "trains", "music", "maps")
FILTERS = (
    Filter(),
    Filter(kinds=frozenset({Kind.AGENT})),
    Filter(namespaces=frozenset({"org.other"})),
    Filter(tags=frozenset({"new"})),
    Filter(audiences=frozenset({"ops"})),
)
ENTRIES = [
    made
    for one, other in zip(WORDS, WORDS[1:] + WORDS[:1], strict=True)
    for made in (
        entry(f"{one}-tool", f"{one} {other}"),
        entry(f"{one}-agent", other, kind="agent", namespace="org.other", tags=["new"], visible_to=["ops"]),
        entry(f"{one}-skill", f"{other} {one}", kind="skill", namespace="org.other.deep", encoded=False),
    )
]


def opened(database: Database, *, encoder: str = ENCODER.name) -> SqliteIndex:
    """An index that saves its arrays, however few they are."""
    return SqliteIndex(database, encoder=encoder, saved_from=1)


def file_of(database: Database) -> Path:
    return database.path.with_name(SAVED)


def answers(index: SqliteIndex) -> list:
    """Every read of discovery."""
    ids = [each.profile.id for each in ENTRIES]
    found: list = [index.bm25_of(WORDS, ids), index.cosine_of(ENCODER.encode_query("red planes"), ids)]
    for admitted in FILTERS:
        found += [index.page(admitted, after=None, limit=100), sorted(index.namespaces(admitted))]
        for word in WORDS:
            terms, vector = query_terms(word), ENCODER.encode_query(f"{word} things")
            found += [index.lexical(terms, admitted, depth=7), index.neural(vector, admitted, depth=7)]
    return found


def is_used(database: Database, *, encoder: str = ENCODER.name) -> bool:
    """Whether a start takes words from the file: those in the database are lost, which no start can notice."""
    with database.writing() as connection:
        connection.execute("UPDATE lexical SET terms = x''")
    return bool(lexical(opened(database, encoder=encoder), "red"))


@pytest.fixture
def saved(database: Database) -> Database:
    """A database with its arrays beside it."""
    SqliteIndex(database).put(ENTRIES)
    opened(database)
    return database


def test_a_start_with_the_file_answers_as_one_that_reads_every_entry(saved: Database):
    expected = answers(SqliteIndex(saved, encoder=ENCODER.name, saved_from=10**6))
    file_of(saved).rename(saved.path.with_suffix(".kept"))
    assert answers(SqliteIndex(saved, encoder=ENCODER.name)) == expected
    saved.path.with_suffix(".kept").rename(file_of(saved))
    assert answers(opened(saved)) == expected
    assert is_used(saved)


def test_few_entries_are_not_saved(database: Database):
    SqliteIndex(database).put(ENTRIES)
    SqliteIndex(database, encoder=ENCODER.name)
    assert not file_of(database).exists()


def test_the_file_is_private(saved: Database):
    assert file_of(saved).stat().st_mode & 0o777 == 0o600


def change_some(index: SqliteIndex) -> None:
    index.put([entry("red-tool", "violet", rev=2), tombstone("blue-tool", rev=2), entry("new-tool", "red violet")])


def test_changes_since_are_read_from_the_database(saved: Database):
    change_some(SqliteIndex(saved, encoder=ENCODER.name))
    found = opened(saved)
    assert lexical(found, "violet") == ["red-tool", "new-tool"]
    expected = answers(found)
    file_of(saved).unlink()
    assert answers(SqliteIndex(saved, encoder=ENCODER.name)) == expected


def test_a_file_is_used_after_some_changes_and_replaced_after_many(saved: Database):
    index = SqliteIndex(saved, encoder=ENCODER.name)
    change_some(index)
    before = file_of(saved).read_bytes()
    opened(saved)
    assert file_of(saved).read_bytes() == before
    index.put([entry("more-tool", "violet")])
    opened(saved)
    assert file_of(saved).read_bytes() != before
    assert is_used(saved)


def purge(database: Database) -> None:
    index = SqliteIndex(database, encoder=ENCODER.name)
    index.put([tombstone("red-tool", rev=2)])
    index.purge([ENTRIES[0].profile.id])


def write_terms_again(database: Database) -> None:
    with database.writing() as connection:
        connection.execute("UPDATE counter SET texts = 1")
    SqliteIndex(database, encoder=ENCODER.name)


def erase(database: Database) -> None:
    kept = file_of(database).read_bytes()
    SavedArrays(database, ENCODER.name).delete()
    assert not file_of(database).exists()
    file_of(database).write_bytes(kept)


@pytest.mark.parametrize("invalidate", [purge, write_terms_again, erase])
def test_a_file_is_not_used_after(saved: Database, invalidate: Callable[[Database], None]):
    invalidate(saved)
    assert not is_used(saved)


def test_a_purge_of_what_the_file_has_as_removed_leaves_it_in_use(saved: Database):
    index = opened(saved)
    index.put([tombstone("red-tool", rev=2), *(entry(f"{word}-tool", word, rev=2) for word in WORDS[1:])])
    opened(saved)
    index.purge([ENTRIES[0].profile.id])
    assert is_used(saved)


def test_a_file_with_vectors_of_another_encoder_is_not_used(saved: Database):
    assert not is_used(saved, encoder="another")


def test_a_backup_from_before_the_file_does_not_use_it(saved: Database, tmp_path: Path):
    back_up(saved, tmp_path / "copy")
    change_some(SqliteIndex(saved, encoder=ENCODER.name))
    SqliteIndex(saved).put([entry(f"{word}-more", word) for word in WORDS])
    opened(saved)  # replaces the file
    saved.close()
    restore(tmp_path / "copy", saved.path, stamp="now", force=True)
    with closing(Database(saved.path)) as restored:
        assert "violet" not in str(answers(opened(restored)))
        assert lexical(opened(restored), "violet") == []


def test_a_backup_from_after_the_file_uses_it(saved: Database, tmp_path: Path):
    change_some(SqliteIndex(saved, encoder=ENCODER.name))
    back_up(saved, tmp_path / "copy")
    expected = answers(opened(saved))
    SqliteIndex(saved).put([entry("later-tool", "violet")])
    saved.close()
    restore(tmp_path / "copy", saved.path, stamp="now", force=True)
    with closing(Database(saved.path)) as restored:
        assert answers(opened(restored)) == expected
        assert is_used(restored)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[: len(content) // 2],
    "another format": lambda content: b"\x93NUMPY" + content,
    "text": lambda content: b"not arrays",
    "a flipped bit": lambda content: (
        content[: len(content) // 3] + bytes([content[len(content) // 3] ^ 1]) + content[len(content) // 3 + 1 :]
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_reported_and_replaced(saved: Database, caplog: pytest.LogCaptureFixture, damage: str):
    expected = answers(opened(saved))
    file_of(saved).write_bytes(DAMAGE[damage](file_of(saved).read_bytes()))
    assert answers(opened(saved)) == expected
    assert "so every entry is read instead" in caplog.text
    caplog.clear()
    assert answers(opened(saved)) == expected
    assert caplog.text == ""


def test_a_file_that_cannot_be_written_is_reported(database: Database, caplog, monkeypatch: pytest.MonkeyPatch):
    def fail(*arrays: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    SqliteIndex(database).put(ENTRIES)
    monkeypatch.setattr(np, "savez", fail)
    assert lexical(opened(database), "red")
    assert "No space left on device" in caplog.text
    assert [each.name for each in database.path.parent.glob("*arrays*")] == []


def test_what_a_killed_process_left_is_taken_over(saved: Database):
    file_of(saved).rename(partial := file_of(saved).with_name(f".{SAVED}.partial"))
    opened(saved)
    assert not partial.exists()
    assert is_used(saved)


def test_what_changes_while_the_file_is_written_makes_it_unfit(saved: Database):
    [(key,)] = saved.rows("SELECT arrays FROM counter")
    arrays, before = SavedArrays(saved, ENCODER.name), file_of(saved).read_bytes()
    arrays.save(99, {}, key="as it was before an erasure")
    assert file_of(saved).read_bytes() == before
    assert saved.rows("SELECT arrays FROM counter") == [(key,)]
    assert is_used(saved)


def test_of_two_processes_that_save_at_once_one_does(saved: Database):
    file_of(saved).unlink()
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: answers(opened(saved)), range(8)))
    assert all(each == found[0] for each in found)
    assert is_used(saved)


def test_a_preview_beside_saved_arrays_sees_its_candidate(saved: Database):
    index = opened(saved)
    with index.with_candidate(entry("candidate", "violet")) as preview:
        assert lexical(preview, "violet") == ["candidate"]
    assert lexical(index, "violet") == []
