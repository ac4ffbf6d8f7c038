"""Two processes over one file: each sees the other's writes and purges."""

from mats.adapters.sqlite.database import Database
from mats.adapters.sqlite.index import SqliteIndex
from tests.contract.test_index import entry, lexical, neural, tombstone


def encoded(name: str, text: str):
    made = entry(name, text)
    return type(made)(made.profile.model_copy(update={"encoder": "ours"}), made.vector)


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


def test_terms_by_another_rule_are_written_again(database: Database):
    SqliteIndex(database).put([entry("a", "查询天气"), tombstone("gone", rev=1)])
    with database.writing() as connection:
        connection.execute("DELETE FROM lexical")
        connection.execute("UPDATE counter SET texts = 1")
    assert lexical(SqliteIndex(database), "天气") == ["a"]
    assert database.rows("SELECT count(*) FROM lexical") == [(1,)]
