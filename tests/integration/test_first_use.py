"""What a newcomer meets in the first hour: the doctor, own queries, and messages that say what to do."""

import json
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from mats.domain.protocols.mcp import servers_of
from mats.local.cli import output
from mats.local.imports.decoding import decode
from mats.local.imports.mcp_servers import is_mats
from tests.aws.bedrock import tool_reply
from tests.aws.model_server import Answer, Raw, Refuse
from tests.integration.conftest import Mats, Ran, rows, tool
from tests.servers.chat_completions import ChatServer, chat_reply
from tests.servers.stdio import STDIO

ITEMS = [
    tool("refund", description="Give money back for a card payment", examples=["undo a charge", "money back please"]),
    tool("invoice", description="Write a bill for a payment"),
    tool("payroll", description="Pay the staff", visible_to=["finance"]),
]


@pytest.fixture
def model() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def faults(mats: Mats, *arguments: str, **settings: str) -> list[tuple[str, str]]:
    """The faults that the doctor finds; its exit code agrees with them."""
    ran = mats("doctor", "--json", *arguments, **settings)
    found = [(row["check"], row["text"]) for row in ran.json["checks"] if row["state"] == "fault"]
    assert (ran.code, ran.json["faults"]) == (int(bool(found)), len(found)), ran.err
    return found


def a_note(mats: Mats, check: str, **settings: str) -> str:
    checks = mats("doctor", "--json", **settings).json["checks"]
    return " ".join(row["text"] for row in checks if (row["check"], row["state"]) == (check, "note"))


def test_doctor_finds_nothing_wrong_with_a_sound_installation(mats):
    assert faults(mats) == []
    assert "1 of them are hidden from you" in a_note(mats, "registry")
    assert a_note(mats, "registry", MATS_AUDIENCES="finance") == ""
    assert "none at" in a_note(Mats(mats.home / "elsewhere"), "registry")
    ran = mats("doctor")
    assert (ran.code, "No fault." in ran.out, ran.err) == (0, True, "")


@pytest.mark.parametrize(
    ("settings", "check", "named"),
    [
        ({"MATS_LLM_URI": "http://127.0.0.1:1/v1"}, "settings", "set MATS_LLM_URL instead"),
        ({"MATS_FOO": "1"}, "settings", "MATS_FOO is not a setting and has no effect: unset it"),
        ({"MATS_K": "99"}, "settings", "MATS_K must be from 1 to 25, not 99"),
        ({"MATS_ENCODER": "/no/such/folder"}, "encoder", "there is no folder /no/such/folder: name one that has"),
        ({"MATS_LLM_URL": "http://127.0.0.1:9/v1", "MATS_LLM_MODEL": "m"}, "models", "start the model server"),
    ],
)
def test_doctor_names_what_is_set_wrong_and_what_to_do(mats, settings, check, named):
    [(place, text)] = faults(mats, **settings)
    assert (place, named in text) == (check, True), text


def test_doctor_names_an_unknown_setting_beside_an_invalid_one_and_each_command_warns_of_it(mats):
    texts = " ".join(text for _, text in faults(mats, MATS_LLM_URI="http://127.0.0.1:1/v1", MATS_K="99"))
    assert "set MATS_LLM_URL instead" in texts
    assert "MATS_K must be" in texts
    assert "MATS_LIMIT is not a setting and has no effect: unset it" in mats("stats", MATS_LIMIT="3").err


SCORED = chat_reply(tool_reply("judge", {"s": [0, 90, 5, 0, 10]}))
REPLIES: dict[str, tuple[Any, str]] = {
    "refused key": (Refuse("invalid_api_key", "no", 401), "set MATS_LLM_KEY to a valid one"),
    "page of a proxy": (Raw(b"<html>Welcome</html>"), "not one of chat completions"),
    "broken server": (Refuse("internal_error", "out of memory", 500), "500: out of memory"),
    "equal scores": (Answer(chat_reply(tool_reply("judge", {"s": [90] * 5}))), "all equal"),
    "scores beyond the scale": (
        Answer(chat_reply(tool_reply("judge", {"s": [300, 900, 800, 700, 600]}))),
        "all out of",
    ),
    "scores by chance": (Answer(chat_reply(tool_reply("judge", {"s": [90, 5, 0, 0, 0]}))), "no higher than what"),
}


@pytest.mark.parametrize(("reply", "named"), REPLIES.values(), ids=REPLIES)
def test_doctor_calls_the_model_and_says_why_it_cannot_be_used(mats, model, reply, named):
    model.play = lambda exchange: reply
    [(check, text)] = faults(mats, **model.client_environment())
    assert (check, named in text) == ("models", True), text


def test_doctor_accepts_a_model_that_tells_candidates_apart(mats, model):
    model.play = lambda exchange: Answer(SCORED)
    assert faults(mats, **model.client_environment()) == []
    assert faults(mats, **{**model.client_environment(), "MATS_RERANK_MODEL": "none"}) == []


def test_doctor_names_files_that_others_can_read(mats):
    (mats.home / "mats.db").chmod(0o644)
    (mats.home / "mats.tokens").write_text("no list")
    (mats.home / "mats.tokens").chmod(0o600)
    found = dict(faults(mats))
    assert "is damaged" in found["tokens"]
    assert "mats.db (mode 644)" in found["registry"]


def test_doctor_names_a_locked_or_damaged_registry(mats, monkeypatch):
    monkeypatch.setattr("mats.adapters.sqlite.database._BUSY_MS", 10)
    from mats.adapters.sqlite.database import Database

    other = Database(mats.home / "mats.db")
    with other.rolled_back():
        [(check, text)] = faults(mats)
        assert (check, "another process" in text) == ("registry", True), text
    other.close()
    (mats.home / "mats.db").write_bytes(b"no database" * 100)
    for name in ("mats.db-wal", "mats.db-shm"):
        (mats.home / name).unlink(missing_ok=True)
    assert [check for check, _ in faults(mats)] == ["registry"]


def test_doctor_names_an_empty_registry(mats):
    for name in ("mats.db-wal", "mats.db-shm"):
        (mats.home / name).unlink(missing_ok=True)
    (mats.home / "mats.db").write_bytes(b"")
    [(check, text)] = faults(mats)
    assert (check, "mats.db is empty: restore a backup" in text) == ("registry", True)
    assert (mats.home / "mats.db").stat().st_size == 0


def test_doctor_says_once_what_every_role_lacks(mats):
    none = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"), "")
    nowhere = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), "/none")
    models = {"MATS_BEDROCK": "1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "eu-central-1"}
    found = [text for check, text in faults(mats, **models, **none, **nowhere) if check == "models"]
    assert (len(found), "No AWS credentials" in found[0]) == (1, True)


def test_doctor_names_a_source_that_fails_and_a_missing_package(mats, tmp_path, monkeypatch):
    (tmp_path / "a.jsonl").write_bytes(rows(tool("a")))
    assert mats("source", "add", str(tmp_path / "a.jsonl")).code == 0
    (tmp_path / "a.jsonl").unlink()
    mats("sync")
    monkeypatch.setattr("mats.local.cli.doctor._is_installed", lambda name: name not in ("onnxruntime", "scipy"))
    found = dict(faults(mats))
    assert "; correct this, then run `mats sync a`" in found["sources"]
    assert found["packages"] == "missing onnxruntime: pip install '.[local]' in a clone of mats"


SECRET = "s3cret-value"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose clients have servers, in a folder beside an empty home."""
    folder = tmp_path / "garden"
    (tmp_path / "server.py").write_text(STDIO)
    server = {"command": sys.executable, "args": [str(tmp_path / "server.py"), "--token", SECRET]}
    ourselves = {"command": "/opt/bin/mats", "args": ["--home", "/srv/other", "mcp"]}
    for file, servers in {
        ".mcp.json": {"mcpServers": {"tap": server | {"env": {"TOOL": "water", "KEY": SECRET}}}},
        ".vscode/mcp.json": {"servers": {"tap": server | {"env": {"TOOL": "spray"}}, "mats": ourselves}},
        ".cursor/mcp.json": {"mcpServers": {"off": {"command": "touch", "args": ["x"], "disabled": True}}},
    }.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(json.dumps(servers))
    return folder


def started(mats: Mats, project: Path, *arguments: str, **more: Any) -> Ran:
    return mats("init", str(project), *arguments, HOME=str(project.parent), COLUMNS="400", **more)


def test_init_starts_nothing_before_it_is_told_to(project, tmp_path):
    mats = Mats(tmp_path / "home")
    (project / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"x": {"command": "touch", "args": [str(tmp_path / "x")]}}})
    )
    for arguments, stdin, code in ((["--dry-run"], b"", 0), ([], b"n\n", 1), ([], b"", 1)):
        ran = started(mats, project, *arguments, stdin=stdin)
        assert (ran.code, f"touch {tmp_path / 'x'}" in ran.out) == (code, True)
    assert "repeat the command with --yes" in ran.err
    assert not (tmp_path / "x").exists()
    assert not mats.home.exists()


def test_init_registers_servers_for_sync_and_prints_what_to_paste(project, tmp_path):
    mats = Mats(tmp_path / "home")
    first = started(mats, project, stdin=b"y\n").done()
    sources = {one["name"]: one for one in mats("source", "list", "--json").json}
    assert sources.keys() == {"claude-code.garden", "vscode.garden"}
    assert all(one["live"] and one["succeeded"] for one in sources.values())
    listed = mats("list", "--json").json["capabilities"]
    assert [one["id"] for one in listed] == ["local.tap/spray", "local.tap/water"]
    config = json.loads(first.out[first.out.index("{\n") : first.out.index("}\n}", first.out.index("{\n")) + 3].strip())
    assert config["mcpServers"]["mats"]["env"] == {"MATS_HOME": str(mats.home)}
    assert config["mcpServers"]["mats"]["args"][-1] == "mcp"
    assert f"{project / '.vscode/mcp.json'} names mats already, with the registry /srv/other: to search" in first.out
    again = started(mats, project, "--yes")
    assert (again.code, again.out.count("0 new, 0 changed, 1 unchanged")) == (0, 2)
    assert mats("sync").code == 0
    stored = b"".join(file.read_bytes() for file in mats.home.iterdir())
    assert SECRET not in first.out + first.err + again.out
    assert SECRET.encode() not in stored


def test_init_goes_on_after_a_file_or_a_server_that_fails(project, tmp_path):
    mats = Mats(tmp_path / "home")
    (project / ".cursor" / "mcp.json").write_text("{ // a comment")
    dead = {"dead": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": SECRET}}, "odd": "text"}
    dead |= {"gone": {"command": "no-such-program"}}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": dead}))
    ran = started(mats, project, "--yes", "--namespace", "com.acme")
    assert (ran.code, "is passed over: is not JSON" in ran.err, "Connection refused" in ran.out) == (1, True, True)
    assert re.search(r"also unread: .*gone", ran.out)
    assert "com.acme.tap/spray" in mats("list").out
    assert "To search from claude-code" in ran.out
    assert SECRET not in ran.out + ran.err


OFF = {"command": "touch", "args": ["x"], "disabled": True}
OF_CLIENTS = {
    ".mcp.json": {"mcpServers": {"off": OFF}},
    ".claude.json": {"projects": {"/srv": {"mcpServers": {"off": OFF}}}},
    ".vscode/settings.json": {"mcp": {"servers": {"off": OFF}}},
    ".gemini/settings.json": {"mcpServers": {}},
    ".codex/config.toml": '[mcp_servers.off]\ncommand = "touch"\nenabled = false\n',
    "opencode.jsonc": '{"mcp": {"off": {"command": ["touch", "x"], "enabled": false}}, /* ours */}',
    ".config/zed/settings.json": {"context_servers": {"off": OFF}},
    ".config/goose/config.yaml": "extensions: {off: {cmd: touch, enabled: false}}\n",
    ".codeium/windsurf/mcp_config.json": {"mcpServers": {"off": OFF}},
    ".config/Code/User/settings.json": {"editor.tabSize": 2},
}


def test_init_knows_the_files_of_clients_and_what_to_paste_into_each(mats, tmp_path):
    for file, content in OF_CLIENTS.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(content if isinstance(content, str) else json.dumps(content))
    out = mats("init", str(tmp_path), HOME=str(tmp_path), COLUMNS="400").done().out
    blocks = re.findall(
        r"((?:^To search from \S+, add this to \S+:\n)+)(.*?)(?=^To search|\Z)", out, re.DOTALL | re.MULTILINE
    )
    files = [re.findall(r"add this to (\S+):\n", headings) for headings, _ in blocks]
    assert {*chain(*files)} == {str(tmp_path / file) for file in [*OF_CLIENTS][:-1]}
    assert len({text for _, text in blocks}) == len(blocks)  # what several clients take is printed once
    assert not re.search(r" $", out, re.MULTILINE)
    for named, (_, text) in zip(files, blocks, strict=True):
        (mine,) = servers_of(decode(text.encode(), name=named[0])) or ()
        assert (mine.name, is_mats(mine)) == ("mats", True)


def test_init_without_a_configuration_says_where_it_looked(mats, tmp_path):
    mats("init", str(tmp_path), HOME=str(tmp_path)).fails(1, ".vscode/mcp.json")
    assert mats("init", "/no/such/folder").code == 2


def test_a_search_says_why_it_is_degraded_and_logs_nothing_else(mats):
    wrong = {"MATS_LLM_URL": "http://127.0.0.1:9/v1", "MATS_LLM_MODEL": "m"}
    shown, told = mats("search", "refund", **wrong), mats("search", "refund", "--json", **wrong)
    assert "start the model server" in shown.out
    assert "start the model server" in told.json["faults"][0]
    assert (shown.err, told.err) == ("", "")


def a_set(mats, folder):
    """The registry with two requests, of which one is for a capability that is not there."""
    folder.mkdir()
    rows = mats("export").out.splitlines()
    (folder / "corpus.jsonl").write_text("\n".join(row for row in rows if '"trust"' not in row))
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "write a bill"}\n{"_id": "q2", "text": "zzz"}\n')
    (folder / "qrels.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\tcom.acme/refund\t1\nq1\tcom.acme/gone\t1\nq2\tcom.acme/gone\t1\n"
    )
    return folder


def test_a_set_of_ones_own_is_measured_and_names_its_misses(mats, tmp_path):
    folder = a_set(mats, tmp_path / "own")
    measured = mats("evaluate", str(folder), "--variant", "lexical", "--misses", "--json")
    first, second = measured.json["misses"]
    assert (first["query"], first["expected"], first["got"]) == ("write a bill", "com.acme/refund", "com.acme/invoice")
    assert (first["rank"] is None, "retrieval did not find" in first["decided"]) == (True, True)
    assert (second["got"], second["decided"]) == (None, "com.acme/gone is not registered")
    assert json.loads((folder / "results" / "evaluate-lexical.json").read_text())["misses"] == [first, second]
    shown = mats("evaluate", str(folder), "--variant", "bm25", "--misses")
    assert "miss q1: write a bill" in shown.out
    assert "plain BM25" in shown.out
    assert "not registered: com.acme/gone\n" in shown.out


def test_a_set_that_nothing_serves_has_verdicts_alone_and_one_without_judged_queries_is_refused(mats, tmp_path):
    folder = a_set(mats, tmp_path / "own")
    (folder / "qrels.tsv").write_text("q1\tcom.acme/refund\t0\n")
    measured = mats("evaluate", str(folder), "--variant", "lexical", "--json").json
    assert (measured["metrics"]["match@1"], measured["verdicts"]["absent"]) == (None, 1)
    (folder / "qrels.tsv").write_text("")
    mats("evaluate", str(folder), "--variant", "lexical").fails(1, "own has no judged query")


def test_a_folder_that_cannot_be_written_still_shows_the_measures(mats, tmp_path):
    folder = a_set(mats, tmp_path / "own")
    (folder / "results").write_text("in the way")
    ran = mats("evaluate", str(folder), "--variant", "bm25")
    assert (ran.code, "match@1" in ran.out, "results not written" in ran.err) == (0, True, True)


class Homeless(Mats):
    """The command without a variable that names a registry."""

    @property
    def environment(self) -> dict[str, str]:
        return {name: value for name, value in super().environment.items() if name != "MATS_HOME"}


def test_a_registry_that_nobody_named_is_named_when_it_is_made(tmp_path):
    mats = Homeless(tmp_path, folder=tmp_path)
    for is_new in (True, False):
        ran = mats("import", "-", stdin=rows(tool("x"))).done()
        assert (f"Made a registry in {tmp_path / '.mats'}" in ran.err) == is_new
    assert "Made" not in mats("--home", str(tmp_path / "other"), "import", "-", stdin=rows(tool("x"))).done().err


def test_what_an_import_replaces_is_named(mats):
    mats("edit", "com.acme/refund", "--description", "Pay back").done()
    ran = mats("import", "-", stdin=rows(*ITEMS)).done()
    assert "changed -:1: com.acme/refund" in ran.err
    assert "edits made here go" in ran.err


def test_home_may_stand_after_the_command(mats, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(rows(tool("a")))
    assert mats("import", str(tmp_path / "a.jsonl"), "--home", str(tmp_path / "h")).code == 0
    assert "com.acme/a" in mats("list", f"--home={tmp_path / 'h'}").out
    assert mats("search", "--", "--home").code == 0


def test_a_wholly_rejected_import_makes_no_registry(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"name": "a"}\n')
    elsewhere = Mats(tmp_path / "none")
    assert elsewhere("import", str(tmp_path / "a.jsonl")).code == 1
    assert not elsewhere.home.exists()


def test_an_api_of_webhooks_alone_is_told_from_an_unknown_file(mats, tmp_path):
    hooks = {"openapi": "3.1.0", "info": {"title": "W", "version": "1"}, "webhooks": {"new": {"post": {}}}}
    (tmp_path / "hooks.json").write_text(json.dumps(hooks))
    ran = mats("import", str(tmp_path / "hooks.json"), "--namespace", "com.acme", "--dry-run")
    assert (ran.code, "webhooks are calls that the API makes" in ran.err, "known format" in ran.err) == (1, True, False)


@pytest.mark.parametrize(
    ("days", "rating", "told"),
    [(3, (), True), (3, ("trust", "com.example.shop.*", "60"), False), (0, (), False)],
    ids=["beside older ones", "rated", "of the same day"],
)
def test_an_import_says_that_older_entries_come_first(mats, tmp_path, monkeypatch, days, rating, told):
    document = tmp_path / "api.json"
    operation = {"get": {"operationId": "listOrders", "summary": "List orders", "responses": {}}}
    servers = [{"url": "https://shop.example.com"}]
    about = {"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "servers": servers}
    document.write_text(json.dumps({**about, "paths": {"/orders": operation}}))
    if rating:
        assert mats(*rating).code == 0
    later = (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="milliseconds")
    monkeypatch.setattr("mats.adapters.clock.SystemClock.now", lambda clock: later)
    ran = mats("import", str(document), "--namespace", "com.example.shop")
    assert ran.code == 0
    assert ("`mats trust 'com.example.shop.*' 80`" in ran.err) == told


def test_a_relative_command_is_stored_as_an_absolute_path(mats, tmp_path):
    (tmp_path / "server").write_text("#!/bin/sh\n")
    (tmp_path / "server").chmod(stat.S_IRWXU)
    here = replace(mats, folder=tmp_path)
    added = here("source", "add", "mcp", "--name", "s", "--json", "--", "./server", "../x", "--flag").json
    assert added["from"] == f"mcp {tmp_path / 'server'} ../x --flag"


@pytest.mark.parametrize(
    ("called", "on_path", "named"),
    [
        (".venv/bin/mats", None, ".venv/bin/mats"),
        ("/opt/bin/mats", "/opt/bin/mats", "mats"),
        ("/opt/bin/mats", "/usr/bin/mats", "/opt/bin/mats"),
        ("/x/mats/local/cli/__main__.py", None, f"{sys.executable} -m mats.local.cli"),
    ],
)
def test_commands_to_copy_are_written_as_this_one_was_called(monkeypatch, called, on_path, named):
    monkeypatch.setattr(sys, "argv", [called, "serve"])
    monkeypatch.setattr(output, "which", lambda name: on_path)
    assert " ".join(output.program()) == named


def test_ids_stay_whole_in_a_pipe(mats, tmp_path):
    long = tool("a" * 150, namespace="com." + "b" * 60)
    (tmp_path / "a.jsonl").write_bytes(rows(long))
    id = f"{long['namespace']}/{long['name']}"
    assert id in mats("import", str(tmp_path / "a.jsonl"), "--dry-run", COLUMNS="80").out
    assert mats("import", str(tmp_path / "a.jsonl")).code == 0
    assert id in mats.process("list", COLUMNS="").out
