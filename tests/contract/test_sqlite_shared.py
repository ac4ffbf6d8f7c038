"""Two processes over one file: each sees the other's writes and purges. A file of an earlier release."""

import gzip
import sqlite3
from pathlib import Path

import pytest

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.index import SqliteIndex
from mats.domain.profile.index_fields import FIELD_WEIGHTS
from mats.domain.ranking.query import Filter
from mats.domain.text.words import query_terms
from tests.conftest import ROOT
from tests.contract.test_index import ENCODER, entry, lexical, neural, tombstone


def encoded(name: str, text: str, *, rev: int = 1, encoder: str = "ours"):
    made = entry(name, text, rev=rev)
    return type(made)(made.profile.model_copy(update={"encoder": encoder}), made.vector)


def test_writes_of_one_process_are_found_by_the_other(database: Database):
    one, other = SqliteIndex(database, encoder="ours"), SqliteIndex(database, encoder="ours")
    one.put([encoded("a", "red words")])
    assert lexical(other, "red") == neural(other, "red words") == ["a"]
    one.put([tombstone("a", rev=2)])
    assert lexical(other, "red") == neural(other, "red words") == []


def test_purges_of_one_process_are_seen_by_the_other(database: Database):
    one, other = SqliteIndex(database, encoder="ours"), SqliteIndex(database, encoder="ours")
    one.put([encoded("a", "red words"), encoded("b", "blue words")])
    assert lexical(other, "words") == ["a", "b"]
    one.put([tombstone("a", rev=2)])
    one.purge([entry("a").profile.id])
    one.put([encoded("c", "red words")])
    assert lexical(other, "words") == ["b", "c"]
    assert set(neural(other, "words")) == {"b", "c"}
    assert other.bm25_of(["red"], [entry("a").profile.id]) == {}


def test_whoever_has_seen_a_removal_does_not_read_everything_after_its_purge(database: Database):
    one, other = SqliteIndex(database, encoder="ours"), SqliteIndex(database, encoder="ours")
    one.put([encoded("a", "red words"), encoded("b", "blue words")])
    one.put([tombstone("a", rev=2)])
    assert lexical(other, "words") == ["b"]
    one.purge([entry("a").profile.id])
    with database.writing() as connection:
        connection.execute("UPDATE lexical SET terms = x''")
    assert lexical(other, "words") == ["b"]


def test_a_purge_of_the_latest_change_is_read_once(database: Database):
    one = SqliteIndex(database, encoder="ours")
    one.put([encoded("a", "red words"), encoded("b", "blue words"), tombstone("c", rev=1)])
    one.purge([entry("c").profile.id])
    other = SqliteIndex(database, encoder="ours")
    with database.writing() as connection:
        connection.execute("UPDATE lexical SET terms = x''")
    assert lexical(other, "words") == ["a", "b"]


def test_vectors_of_another_encoder_are_left_out_and_their_words_are_not(database: Database):
    index = SqliteIndex(database, encoder="ours")
    index.put([encoded("a", "red words"), encoded("b", "red words", encoder="theirs")])
    assert neural(index, "red words") == ["a"]
    assert lexical(index, "red") == ["a", "b"]
    assert index.neural(ENCODER.encode_query("red"), Filter(), depth=5)[0].score > 0


def test_fields_that_an_older_release_wrote_are_written_again(database: Database):
    SqliteIndex(database).put([entry("a", "查询天气"), tombstone("gone", rev=1)])
    with database.writing() as connection:
        connection.execute("DELETE FROM lexical")
        connection.execute("UPDATE counter SET texts = 1")
    assert lexical(SqliteIndex(database), "天气") == ["a"]
    assert database.rows("SELECT count(*) FROM lexical") == [(1,)]


SCHEMA_8 = ROOT / "tests" / "contract" / "schema_8.db.gz"
"""An index by commit dc2f53b, with a table of FTS5: 40 entries of the sample, one of them replaced, and four others."""


@pytest.fixture
def schema_8(tmp_path: Path) -> Path:
    file = tmp_path / "mats.db"
    file.write_bytes(gzip.decompress(SCHEMA_8.read_bytes()))
    return file


@pytest.mark.parametrize("query", ["customer payment card refund", "déjà cafés", "明天的天气", "a model for text"])
def test_a_file_with_a_table_of_fts5_is_migrated_and_scores_stay(schema_8: Path, query: str):
    terms = query_terms(query)
    weights = ", ".join(map(str, FIELD_WEIGHTS.values()))
    old = sqlite3.connect(schema_8)
    score = f"SELECT id, -bm25(lexical, {weights}) FROM lexical JOIN entries ON row = lexical.rowid"
    expected = dict(old.execute(f"{score} WHERE lexical MATCH ?", (" OR ".join(terms),)).fetchall())
    old.close()
    database = Database(schema_8)
    index = SqliteIndex(database)
    admitted = Filter(audiences=frozenset({"finance", "sre"}))
    found = {hit.id: hit.score for hit in index.lexical(terms, admitted, depth=100)}
    assert found == pytest.approx(expected, rel=1e-6)
    assert found
    assert len(index.page(admitted, after=None, limit=100)) == 42
    index.put([entry("new", "déjà", encoded=False), tombstone("weather", rev=2)])
    again = Database(schema_8)
    assert set(lexical(SqliteIndex(again), "deja")) == {"café", "new"}
    assert "weather" not in lexical(SqliteIndex(again), *query_terms("天气"))
    again.close()
    database.close()
