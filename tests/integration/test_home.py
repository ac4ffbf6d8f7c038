"""The folder of the local registry: who makes it, and who may read it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.integration.conftest import Mats, rows, serving, tool


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


QUERIES = (
    ["search", "x"], ["show", "a/b"], ["stats"], ["preview", "a/b"], ["remove", "a/b"], ["mcp"],
    ["reconcile"], ["reindex"], ["backfill"], ["erase", "a/b"],
)  # fmt: skip


@pytest.mark.parametrize("arguments", QUERIES, ids=lambda arguments: arguments[0])
def test_a_query_without_a_registry_says_so_and_creates_nothing(mats: Mats, arguments: list[str]):
    mats(*arguments).fails(1, f"no registry at {mats.home}: `mats init`, `mats import` or `mats serve --sample`")
    assert not mats.home.exists()


def test_a_folder_without_a_registry_stays_as_it_is(mats: Mats):
    mats.home.mkdir()
    assert mats("stats").code == 1
    assert list(mats.home.iterdir()) == []


@pytest.mark.parametrize("command", ["serve --port 0", "import x.json", "search x"])
def test_a_file_is_no_registry(mats: Mats, command: str):
    mats.home.write_text("")
    mats(*command.split()).fails(3, f"{mats.home} cannot be used (it is a file): choose another MATS_HOME")


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000])
def test_the_files_of_a_registry_are_private(mats: Mats, mask: int):
    with umask(mask), serving(mats) as service:
        mats("add", "-", stdin=rows(tool("refund")))
        service.request("/discover", {"query": "refund"})
        files = {path.name: mode(path) for path in mats.home.iterdir()}
    assert {"mats.db", "mats.db-wal", "mats.db-shm", "mats.log"} <= files.keys()
    assert set(files.values()) == {0o600}
    assert mode(mats.home) == 0o700


def test_looser_files_are_tightened_with_a_log_line(mats: Mats, caplog):
    mats("add", "-", stdin=rows(tool("refund")))
    mats.home.chmod(0o755)
    (mats.home / "mats.db").chmod(0o644)
    (mats.home / "mats.log").touch(0o644)
    assert mats("stats").code == 0
    assert (mode(mats.home), mode(mats.home / "mats.db"), mode(mats.home / "mats.log")) == (0o700, 0o600, 0o600)
    assert [str(mats.home / "mats.db") in line for line in caplog.messages].count(True) == 1
    caplog.clear()
    mats("stats")
    assert caplog.messages == []


def test_a_folder_with_other_files_keeps_its_mode(mats: Mats):
    mats.home.mkdir(mode=0o755)
    mats.home.chmod(0o755)
    (mats.home / "notes.txt").touch(0o644)
    mats("add", "-", stdin=rows(tool("refund")))
    assert (mode(mats.home), mode(mats.home / "notes.txt")) == (0o755, 0o644)
    assert mode(mats.home / "mats.db") == 0o600


def test_make_clean_leaves_the_registry(tmp_path: Path):
    recipe = (ROOT / "Makefile").read_text().partition("\nclean:")[2].partition("\n\n")[0]
    assert ".mats" not in recipe.partition("\n")[2]
