"""Two processes over one file: each sees the other's writes and purges."""

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.index import SqliteIndex
from mats.domain.search.query import Filter
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
    assert max(index.neural(ENCODER.encode_query("red"), Filter(), depth=5).values()) > 0


def test_terms_by_another_rule_are_written_again(database: Database):
    SqliteIndex(database).put([entry("a", "查询天气"), tombstone("gone", rev=1)])
    with database.writing() as connection:
        connection.execute("DELETE FROM lexical")
        connection.execute("UPDATE counter SET texts = 1")
    assert lexical(SqliteIndex(database), "天气") == ["a"]
    assert database.rows("SELECT count(*) FROM lexical") == [(1,)]
