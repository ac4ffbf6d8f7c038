"""Export, backup and restore."""

import json
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mats.adapters.sqlite.database import SCHEMA_VERSION
from mats.domain.capability.registration import Registration
from mats.domain.profile.origin import fingerprint
from tests.command import sql
from tests.integration.conftest import Mats, rows, serving, tool

REFUND, PAYROLL = "com.acme/refund", "com.acme/payroll"


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mats = Mats(tmp_path_factory.mktemp("filled") / "home")
    items = [
        tool("refund", description="Give money back", provider="Acme"),
        tool("payroll", description="Answers questions about salaries", visible_to=["finance"]),
        tool("wörter", description="Zeilen\u2028und \u202e \x1b[31m Zeichen", tags=["a"]),
        {**tool("geocode", description="Turn an address into coordinates"), "namespace": "org.maps", "kind": "skill"},
    ]
    mats("import", "-", stdin=rows(*items))
    mats("trust", REFUND, "80")
    mats("trust", "com.acme.*", "30", "--provider", "Acme")
    return mats.home


@pytest.fixture
def filled(filled_home: Path, tmp_path: Path) -> Mats:
    """A registry with rows of all kinds, a copy for each test."""
    return Mats(Path(shutil.copytree(filled_home, tmp_path / "home")))


@pytest.fixture
def other(tmp_path: Path) -> Mats:
    return Mats(tmp_path / "other")


def answers(mats: Mats) -> list[Any]:
    """The answers to several requests, without times and query ids."""
    queries = ("money back", "salaries", "address", "Zeilen")
    found = [mats("search", query, "--json", MATS_AUDIENCES="finance").json for query in queries]
    return [(one["verdict"], one["results"]) for one in found]


def dump(mats: Mats, table: str) -> list[tuple[Any, ...]]:
    return sql(mats.home / "mats.db", f"SELECT * FROM {table} ORDER BY 1, 2")


def test_an_export_imported_elsewhere_gives_the_same_registry_trust_and_answers(filled: Mats, other: Mats, tmp_path):
    file = tmp_path / "export.jsonl"
    ran = filled("export", str(file))
    assert (ran.code, ran.out) == (0, "")
    assert f"{len(dump(filled, 'registry'))} capabilities and 2 rows of trust exported" in ran.err
    imported = other("import", "--with-trust", str(file), "--json")
    assert imported.json["trust"] == {"assigned": 2}
    assert (imported.code, imported.json["rejected"]) == (0, [])
    assert dump(other, "registry") == dump(filled, "registry") != []
    assert [row[0] for row in dump(other, "trust")] == [row[0] for row in dump(filled, "trust")]
    for one, two in zip(answers(filled), answers(other), strict=True):
        assert one == two
    assert other("export").out == file.read_text()  # in a stable order
    again = other("import", "--with-trust", str(file), "--json").json
    assert (again["unchanged"], again["trust"], again["indexed"]) == (again["rows"], {"unchanged": 2}, 0)


def test_an_export_is_ordered_private_and_printable(filled: Mats, tmp_path):
    file = tmp_path / "export.jsonl"
    filled("export", str(file))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    ids = [f"{line['namespace']}/{line['name']}" for line in lines if "name" in line]
    assert ids == sorted(ids)
    assert [line["trust"] for line in lines[: -len(ids)]] == [
        {"id": "com.acme.*", "trust": 30, "provider": "Acme"},
        {"id": REFUND, "trust": 80, "approved": digest_of(lines[ids.index(REFUND) - len(ids)])},
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not {"\u202e", "\u2028", "\x1b"} & set(file.read_text())
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


def test_an_export_that_cannot_be_written_leaves_the_file_there_as_it_was(filled: Mats, tmp_path, monkeypatch):
    file = tmp_path / "export.jsonl"
    file.write_text("before")
    monkeypatch.setattr("mats.local.cli.move.trust_line", lambda *_: 1 / 0)
    filled("export", str(file)).fails(1, "export.jsonl exists", "--force")
    with pytest.raises(ZeroDivisionError):
        filled("export", str(file), "--force")
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    assert filled("export", str(tmp_path / "no" / "export.jsonl")).code == 3


def test_without_the_option_trust_is_passed_over_and_said_so(filled: Mats, other: Mats):
    ran = other("import", "-", stdin=filled("export").out.encode()).done()
    assert "--with-trust" in ran.err
    assert dump(other, "trust") == []
    assert other("import", "-", "--with-trust", "--namespace", "org.x", stdin=b"").code == 2


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({"id": "com.acme/a", "trust": 101}, "trust.trust"),
        ({"id": "com.acme/a", "trust": True}, "trust.trust"),
        ({"id": "com.acme", "trust": 5}, "trust.id"),
        ({"trust": 5}, "trust.id"),
        ({"id": "com.acme/a", "provider": "Acme"}, "trust.provider"),
        ({"id": "com.acme.*", "provider": "a\u200bb"}, "trust.provider"),
        ({"id": "com.acme.*"}, "trust"),
        ({"id": "com.acme.*", "trust": 5, "by": "me"}, "trust.by"),
    ],
)
def test_an_invalid_row_of_trust_is_rejected(mats: Mats, row: dict[str, Any], fault: str):
    lines = rows(tool("a"), {"trust": row}, {"trust": {"id": "com.acme/a", "trust": 7}})
    report = mats("import", "-", "--with-trust", "--json", stdin=lines).json
    assert [[f["attribute"] for f in one["faults"]] for one in report["rejected"]] == [[fault]]
    assert report["trust"] == {"assigned": 1}


def test_a_backup_made_while_serving_can_be_restored_into_an_empty_folder_only(filled: Mats, other: Mats, tmp_path):
    file = tmp_path / "mats.backup"
    with serving(filled):
        filled("add", "-", stdin=rows(tool("late", description="Came late, still in the WAL")))
        made = filled("backup", str(file), "--json").done()
    assert (made.json["capabilities"], made.json["trust"]) == (5, 2)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    other("init")
    restored = other("restore", str(file), "--json")
    assert (restored.code, restored.json["capabilities"], restored.json["indexed"]) == (0, 5, 5)
    for table in ("registry", "trust"):
        assert dump(other, table) == dump(filled, table) != [], table
    assert answers(other) == answers(filled)
    assert {stat.S_IMODE(path.stat().st_mode) for path in other.home.iterdir()} == {0o600}
    before = dump(other, "registry")
    other("restore", str(file)).fails(1, "is not empty: choose another --home")
    assert dump(other, "registry") == before


APPROVED = {**tool("refund", description="Give money back", provider="Acme"), "endpoint": "https://a.example"}


CHANGED = {**APPROVED, "endpoint": "https://evil.example"}


def digest_of(item: dict[str, Any]) -> str:
    return fingerprint(Registration.parse(item).item())


def hold_a_change(mats: Mats) -> None:
    """Make a change of a rated entry that waits for an operator."""
    mats("add", "-", stdin=rows(APPROVED))
    mats("review", REFUND, "--approve")
    mats("add", "-", stdin=rows(CHANGED))


def carry_by_backup(source: Mats, target: Mats, file: Path) -> None:
    source("backup", str(file)).done()
    target("restore", str(file)).done()


def carry_by_export(source: Mats, target: Mats, file: Path) -> None:
    source("export", str(file)).done()
    target("import", "--with-trust", str(file)).done()


@pytest.mark.parametrize("rejected", [False, True])
@pytest.mark.parametrize("carry", [carry_by_backup, carry_by_export])
def test_a_held_change_is_held_elsewhere_and_the_approved_version_is_found(
    filled: Mats, other: Mats, tmp_path, carry: Callable[[Mats, Mats, Path], None], rejected: bool
):
    hold_a_change(filled)
    if rejected:
        filled("review", REFUND, "--reject").done()
    held = filled("review", REFUND, "--json").json
    carry(filled, other, tmp_path / "file")
    assert other("review", REFUND, "--json").json == held
    [first, *_] = other("search", "money back", "--json").json["results"]
    assert (first["id"], first["endpoint"]) == (REFUND, "https://a.example")
    assert answers(other) == answers(filled)
    assert other("export").out == filled("export").out
    other("review", REFUND, "--approve").done()
    assert other("search", "money back", "--json").json["results"][0]["endpoint"] == "https://evil.example"


@pytest.mark.parametrize("carry", [carry_by_backup, carry_by_export])
def test_of_a_namespace_under_review_what_is_shown_is_shown_elsewhere_and_what_waits_waits(
    filled: Mats, other: Mats, tmp_path, carry: Callable[[Mats, Mats, Path], None]
):
    filled("review", "com.acme.*", "--policy", "review").done()
    filled("add", "-", stdin=rows(tool("fresh", description="Bakes bread")))
    carry(filled, other, tmp_path / "file")
    assert [one["id"] for one in other("review", "--json").json["waiting"]] == ["com.acme/fresh"]
    assert "com.acme/fresh" not in other("search", "bake bread", "--json").out
    assert answers(other) == answers(filled)


@pytest.mark.parametrize("rejected", [False, True])
def test_without_trust_what_is_held_is_not_registered_and_a_repetition_mends_it(
    filled: Mats, other: Mats, tmp_path, rejected: bool
):
    hold_a_change(filled)
    if rejected:
        filled("review", REFUND, "--reject").done()
    lines = filled("export").out.encode()
    first = other("import", "-", "--json", stdin=lines)
    message = WAS_REJECTED if rejected else WAITS
    assert (first.code, [one["faults"][0]["message"] for one in first.json["rejected"]]) == (1, [message])
    assert REFUND not in other("search", "money back", "--json").out
    again = other("import", "-", "--json", "--with-trust", stdin=lines).done().json
    assert (again["new"], again.get("held", 0)) == (1, int(not rejected))
    assert other("search", "money back", "--json").json["results"][0]["endpoint"] == "https://a.example"
    filled("add", "-", stdin=rows(APPROVED)).done()
    third = Mats(tmp_path / "third")
    third("import", "-", stdin=filled("export").out.encode()).done()


WAITS = (
    f"{REFUND} waits for an operator in the registry of the export: import it by `--with-trust` into a registry "
    "without it, or decide there and export again"
)
WAS_REJECTED = WAITS.replace("waits for an operator", "has a rejected change").replace(
    "decide there", "register the text that is shown there"
)


@pytest.mark.parametrize("here", ["entry", "tombstone"])
def test_what_is_held_elsewhere_is_not_shown_where_it_was_registered_before(filled: Mats, other: Mats, here: str):
    hold_a_change(filled)
    other("add", "-", stdin=rows({**APPROVED, "endpoint": "https://older.example"}))
    if here == "tombstone":
        other("remove", REFUND)
    ran = other("import", "-", "--json", "--with-trust", stdin=filled("export").out.encode())
    assert ran.code == (here == "entry")
    shown = other("search", "money back", "--json").json["results"][0]["endpoint"]
    assert shown == ("https://older.example" if here == "entry" else "https://a.example")


@pytest.mark.parametrize("table", ["registry", "profiles"])
def test_of_a_damaged_registry_the_rest_is_exported(filled: Mats, other: Mats, tmp_path, table: str):
    many = [tool(f"t{number:03}", description=f"Tool {number} {'does much ' * 30}") for number in range(200)]
    filled("import", "-", stdin=rows(*many)).done()
    hold_a_change(filled)
    file, export = filled.home / "mats.db", tmp_path / "export.jsonl"
    [(size,)] = sql(file, "PRAGMA page_size")
    leaves = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
    sql(file, "PRAGMA wal_checkpoint(TRUNCATE)")
    with closing(sqlite3.connect(file)) as connection:
        pages = [page for (page,) in connection.execute(leaves, (table,))]
    with file.open("r+b") as raw:
        raw.seek((pages[len(pages) // 2] - 1) * size)
        raw.write(b"\xff" * size)
    ran = filled("export", str(export))
    lines = [json.loads(line) for line in export.read_text().splitlines()]
    assert (ran.code, "could not be read" in ran.err) == (
        (1, True) if table == "registry" else (ran.code, ran.code == 1)
    )
    assert 150 < sum("name" in line for line in lines) <= 204
    assert other("import", "--with-trust", str(export)).code in (0, 1)
    assert "https://evil.example" not in other("search", "money back", "--json").out


def test_a_registry_that_was_emptied_takes_a_backup(filled: Mats, other: Mats, tmp_path):
    filled("backup", str(tmp_path / "file"))
    other("add", "-", stdin=rows(tool("refund")))
    other("remove", REFUND)
    other("restore", str(tmp_path / "file")).done()
    assert answers(other) == answers(filled)


def test_an_export_approves_nothing_that_waits_in_the_queue(filled: Mats):
    filled("review", "com.acme.*", "--policy", "review").done()
    event = f"VALUES ('e', 'Registry', 'MODIFY', '{REFUND}', '2026-01-01T00:00:00+00:00')"
    sql(filled.home / "mats.db", f"INSERT INTO events (event_id, source, change, id, time) {event}")
    rows_of_trust = [json.loads(line)["trust"] for line in filled("export").out.splitlines() if '{"trust"' in line]
    approved = {row["id"]: row["approved"] for row in rows_of_trust if "approved" in row}
    assert list(approved) == [PAYROLL, REFUND, "com.acme/wörter"]
    assert approved[REFUND] != digest_of(tool("refund", description="Give money back", provider="Acme"))


@pytest.mark.parametrize(
    ("state", "trusted"),
    [("removed", "id"), ("invalid", "id"), ("not processed", "id"), ("invalid", "space"), ("not processed", "space")],
)
def test_what_is_not_what_operators_trusted_is_not_shown_where_an_export_is_imported(
    filled: Mats, other: Mats, state: str, trusted: str
):
    if trusted == "space":
        filled("trust", REFUND, "none").done()
    if state == "removed":
        filled("remove", REFUND).done()
    else:
        item = json.dumps(CHANGED if state == "not processed" else {**CHANGED, "tags": 5})
        sql(filled.home / "mats.db", f"UPDATE registry SET digest = 'x', item = '{item}' WHERE id = '{REFUND}'")
        event = f"VALUES ('e', 'Registry', 'MODIFY', '{REFUND}', '2026-01-01T00:00:00+00:00')"
        sql(filled.home / "mats.db", f"INSERT INTO events (event_id, source, change, id, time) {event}")
    if state == "invalid":
        filled("reconcile").done()
    other("import", "-", "--with-trust", stdin=filled("export").out.encode())
    other("add", "-", stdin=rows(CHANGED))
    assert "https://evil.example" not in other("search", "money back", "--json").out
    assert [one["id"] for one in other("review", "--json").json["waiting"]] == [REFUND]


@pytest.mark.parametrize("row", [REFUND, "com.acme.*"])
def test_the_trust_of_an_export_is_for_its_texts_and_for_nobody_who_is_here_in_their_place(
    filled: Mats, other: Mats, row: str
):
    filled("trust", REFUND, "none").done()
    filled("trust", row, "80").done()
    other("import", "-", stdin=rows(CHANGED)).done()
    other("import", "-", "--with-trust", stdin=filled("export").out.encode()).done()
    assert "https://evil.example" not in other("search", "money back", "--json").out
    shown = other("show", REFUND, "--json").json
    assert (shown["profile"]["trust"], shown["profile"]["status"]) == (80, "active")


def test_what_waits_is_not_let_through_under_another_namespace(filled: Mats, other: Mats):
    hold_a_change(filled)
    ran = other("import", "-", "--namespace", "org.x", "--json", stdin=filled("export").out.encode())
    assert [one["faults"][0]["message"].split()[0] for one in ran.json["rejected"]] == [REFUND]
    assert "https://evil.example" not in other("search", "money back", "--json").out


def test_an_import_that_was_killed_after_it_saved_what_is_shown_can_be_repeated(filled: Mats, other: Mats):
    hold_a_change(filled)
    lines = filled("export").out.encode()
    other("import", "-", "--with-trust", stdin=lines).done()
    sql(other.home / "mats.db", f"DELETE FROM registry WHERE id = '{REFUND}'")
    report = other("import", "-", "--with-trust", "--json", stdin=lines).done().json
    assert (report["rejected"], report["new"]) == ([], 1)
    assert [one["id"] for one in other("review", "--json").json["waiting"]] == [REFUND]


def test_an_older_export_takes_back_no_decision(filled: Mats):
    older = filled("export").out.encode()
    hold_a_change(filled)
    filled("review", REFUND, "--reject").done()
    filled("review", "com.acme.*", "--policy", "review").done()
    filled("import", "-", "--with-trust", stdin=older)
    assert "com.acme.*: policy review" in filled("review").out
    filled("review", "com.acme.*", "--policy", "open").done()
    filled("add", "-", stdin=rows(CHANGED))
    assert "https://evil.example" not in filled("search", "money back", "--json").out


def test_a_line_that_holds_nothing_back_is_rejected(filled: Mats, other: Mats):
    hold_a_change(filled)
    [line] = [line for line in filled("export").out.splitlines() if line.startswith('{"held"')]
    active = json.loads(line)
    active["held"].pop("held")
    odd = [{"held": {"name": 5}}, {"held": {**json.loads(line)["held"], "input_schema": "?"}}]
    report = other("import", "-", "--with-trust", "--json", stdin=rows(active, *odd, APPROVED)).json
    assert [one["faults"][0]["attribute"] for one in report["rejected"]] == ["held", "held.namespace", "held", ""]
    assert dump(other, "registry") == []


def test_a_restore_keeps_histories_and_forgets_what_was_removed_meanwhile(filled: Mats, other: Mats, tmp_path):
    filled("edit", REFUND, "--tag", "money").done()
    filled("backup", str(tmp_path / "file"))
    sql(tmp_path / "file", f"DELETE FROM registry WHERE id = '{PAYROLL}'")  # as if its event waited
    other("restore", str(tmp_path / "file")).done()
    histories = [home("show", REFUND, "--json").json["profile"]["first_registered"] for home in (filled, other)]
    assert histories[0] == histories[1]
    assert len(dump(other, "profile_versions")) >= len(dump(filled, "profile_versions")) > 0
    assert [row[3] for row in dump(other, "profiles") if row[0] == PAYROLL] == ["deleted"]


def test_a_backup_replaces_a_file_only_by_force(filled: Mats, tmp_path):
    file = tmp_path / "mats.backup"
    file.write_text("precious")
    refused = filled("backup", str(file))
    assert (refused.code, file.read_text()) == (1, "precious")
    assert "--force" in refused.err
    assert filled("backup", str(file), "--force").code == 0
    assert file.read_bytes().startswith(b"SQLite format 3")
    assert filled("backup", str(tmp_path / "no" / "mats.backup")).code == 1
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []


@pytest.mark.parametrize("content", [b"", b"not a database", b"\0" * 8_192, None])
def test_what_is_no_backup_is_refused_and_changes_nothing(mats: Mats, tmp_path, content: bytes | None):
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)
    mats("restore", str(file)).fails(1, f"error: {file} cannot be restored")
    assert not (mats.home / "mats.db").exists()


EVIL = """'{"trust": 100, "provider": "Stripe"}'"""
CRAFTED = {
    "trigger": f"CREATE TRIGGER t AFTER INSERT ON registry BEGIN INSERT INTO trust VALUES ('evil.*/*', {EVIL}); END",
    "trigger on events": f"CREATE TRIGGER t AFTER DELETE ON events BEGIN INSERT INTO trust VALUES ('x/y', {EVIL}); END",
    "further table": "CREATE TABLE more AS SELECT 1",
    "view": "CREATE VIEW more AS SELECT * FROM trust",
}
"""What a restore leaves out."""
ODD = {
    "view as a table": "DROP TABLE registry; CREATE VIEW registry AS WITH RECURSIVE r(n) AS "
    "(SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS id, n AS kind, n AS digest, n AS item FROM r",
    "dropped table": "DROP TABLE receipts",
    "virtual table": "DROP TABLE receipts; CREATE VIRTUAL TABLE receipts USING fts5(query_id)",
    "registration": "UPDATE registry SET item = '{}'",
    "assignment": "UPDATE trust SET assigned = '7'",
    "number as text": "INSERT INTO receipts VALUES ('q', '', '', '[]', '', '[]', '', '', 'many', '[]', 'mini', x'', 1)",
    "outcome": "INSERT INTO outcomes VALUES ('q', 'a/b', '[\"odd\"]')",
    "receipt": "INSERT INTO receipts VALUES ('q', '', '', '[]', '', '7', '', '', 0, '[]', 'mini', x'0102', 1)",
    "profile": "UPDATE profiles SET body = '{}'",
    "no JSON": """UPDATE profiles SET body = json_set(body, '$.input_schema', 'garbage')""",
    "no kind": "UPDATE profiles SET body = json_set(body, '$.kind', NULL)",
    "another vector": "UPDATE profiles SET vector = x'00000000' WHERE id = 'com.acme/refund'; "
    "UPDATE profiles SET vector = x'0000000000000000' WHERE id = 'com.acme/payroll'",
    "later version": "INSERT INTO profile_versions SELECT id, rev, body, NULL FROM profiles",
    "profile of another": "UPDATE profiles SET id = 'com.acme/other' WHERE id = 'com.acme/refund'",
    "vector": "INSERT INTO receipts VALUES ('q', '', '', '[]', '', '[]', '', '', 0, '[]', 'mini', x'01', 1)",
}
"""What a restore refuses."""


def craft(filled: Mats, file: Path, script: str) -> None:
    assert filled("backup", str(file)).code == 0
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(script)


@pytest.mark.parametrize("script", CRAFTED.values(), ids=CRAFTED)
def test_a_restore_takes_rows_and_nothing_else(filled: Mats, other: Mats, tmp_path, script):
    craft(filled, tmp_path / "crafted", script)
    assert other("restore", str(tmp_path / "crafted")).code == 0
    other("add", "-", stdin=rows(tool("later")))
    assert dump(other, "trust") == dump(filled, "trust")
    schemas = [dump(home, "sqlite_master") for home in (other, filled)]
    assert sorted(row[1] for row in schemas[0]) == sorted(row[1] for row in schemas[1])
    assert other("search", "later", "--json").code == 0


@pytest.mark.parametrize("script", ODD.values(), ids=ODD)
def test_odd_rows_and_tables_are_refused_readably(filled: Mats, other: Mats, tmp_path, script):
    craft(filled, tmp_path / "odd", script)
    other("restore", str(tmp_path / "odd")).fails(1, "cannot be restored")
    assert not (other.home / "mats.db").exists() or dump(other, "registry") == dump(other, "trust") == []


def test_a_newer_or_foreign_file_is_refused(filled: Mats, other: Mats, tmp_path):
    for name, change in {
        "newer": f"PRAGMA user_version = {SCHEMA_VERSION + 1}",
        "foreign": "PRAGMA user_version = 0",
    }.items():
        file = tmp_path / name
        filled("backup", str(file))
        sql(file, change)
        assert other("restore", str(file)).code == 1
