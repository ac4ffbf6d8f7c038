"""Sources that attack who reads them, each over a real server or real files: one line, and nothing else is fetched."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mats.domain.errors import DependencyFailed
from mats.domain.profile.sync import SourceKind, TrackedSource
from mats.local.imports import files
from mats.local.imports.importer import Importer, Report
from mats.local.imports.sources import open_reading, open_sources
from mats.settings import Settings
from tests.builders import a_registration
from tests.fakes import MemoryRegistry
from tests.servers.raw_http import answering, response

TIMEOUT_S, SILENT_S = 2.0, 0.3  # The second one where nothing will come
Play = Callable[[socket.socket], None]


def read_source(kind: SourceKind, *location: str) -> Report:
    """What an import of one source reports."""
    importer = Importer(MemoryRegistry())
    source = TrackedSource(name="x", kind=kind, location=location, namespace="com.acme", timeout_s=TIMEOUT_S)
    reading = open_reading(source, Settings())
    importer.import_sources(reading.sources)
    return importer.report


def only_line(report: Report) -> str:
    """The one fault of a source from which nothing was registered, as it is shown."""
    assert not report.placed
    (rejected,) = report.rejected
    line = "; ".join(map(str, rejected.faults))
    assert line.isprintable()
    assert len(line) < 500
    return line


@contextmanager
def bystander() -> Iterator[tuple[str, list[bytes]]]:
    """Another service of this machine that nobody gave, and the requests it got."""
    asked: list[bytes] = []

    def listen(connection: socket.socket) -> None:
        asked.append(b"a request")
        response("200 OK\r\nContent-Length: 2", b"[]")(connection)

    with answering(listen) as url:
        yield url, asked


def redirect(there: str) -> Play:
    return response(f"302 Found\r\nLocation: {there}\r\nContent-Length: 0")


REDIRECTS = {
    "another port of this machine": ("{bystander}/", "another service of this machine"),
    "this machine, spelled as a number": ("http://2130706433:{port}/", "this machine"),
    "this machine, mapped to IPv6": ("http://[::ffff:127.0.0.1]:{port}/", "this machine"),
    "a private network": ("http://10.1.2.3/", "private network"),
    "the metadata of a cloud": ("http://169.254.169.254/latest/meta-data/", "is blocked"),
    "a file": ("file:///etc/passwd", "is not a valid address"),
    "an address with a password": ("http://me:secret@127.0.0.1:{port}/", "holds a user name or password"),
    "itself": ("/", "redirects more than 5 times"),
    "an address of several lines": ("/a\x0bb", "cannot be read"),
}
OTHER_KINDS = [SourceKind.MCP_REGISTRY, SourceKind.ARD, SourceKind.A2A]


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        *((where, SourceKind.DOCUMENT) for where in REDIRECTS),
        *(("the metadata of a cloud", kind) for kind in OTHER_KINDS),
    ],
)
def test_a_redirect_is_followed_to_nothing_that_was_not_given(where: str, kind: SourceKind):
    there, said = REDIRECTS[where]
    with bystander() as (other, asked):
        there = there.format(bystander=other, port=other.rpartition(":")[2])
        with answering(redirect(there)) as url:
            line = only_line(read_source(kind, url))
    assert said in line
    assert "secret" not in line
    assert asked == []


def test_a_live_server_that_redirects_is_not_followed():
    refused = pytest.raises(DependencyFailed, match="not followed")
    with bystander() as (other, asked), answering(redirect(f"{other}/mcp")) as url, refused:
        read_source(SourceKind.MCP, f"{url}/mcp")
    assert asked == []


ROW = json.dumps(a_registration(name="row").item())
SECRET = json.dumps(a_registration(name="secret").item())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder to import, and a file beside it that is none of its business."""
    (tmp_path / "secret.jsonl").write_text(SECRET)
    (tmp_path / "listed").mkdir()
    return tmp_path / "listed"


def a_link(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.parents[2] / "secret.jsonl")


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def another_folder(file: Path) -> None:
    """The folder becomes a link to one that holds a file of this name."""
    outside = file.parents[2] / "outside"
    outside.mkdir()
    (outside / file.name).write_text(SECRET)
    file.unlink()
    file.parent.rmdir()
    file.parent.symlink_to(outside)


def nothing(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("put", [a_link, a_pipe, another_folder, nothing])
def test_what_takes_the_place_of_a_listed_file_is_not_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, put: Callable[[Path], None]
):
    file = folder / "below" / "rows.jsonl"
    file.parent.mkdir()
    file.write_text(ROW)
    opened = files.open_file

    def swap_and_open(name: str, *more: str) -> Any:
        put(file)
        return opened(name, *more)

    monkeypatch.setattr("mats.local.imports.files.open_file", swap_and_open)
    line = only_line(read_source(SourceKind.DOCUMENT, str(folder)))
    assert "cannot be read" in line
    if put is not nothing:
        assert "something else has taken its place" in line


def lines(count: int) -> str:
    return "".join(f"{json.dumps(a_registration(name=f't{n}').item())}\n" for n in range(count))


def truncate(file: Path) -> None:
    os.truncate(file, 100)


def replace_by_another(file: Path) -> None:
    other = file.with_name("other")
    other.write_text("{" * 1_000)
    other.replace(file)


@pytest.mark.parametrize(("change", "faults"), [(truncate, 1), (replace_by_another, 0), (nothing, 0)])
def test_a_file_that_changes_under_our_hands_is_read_to_an_end(
    folder: Path, change: Callable[[Path], None], faults: int
):
    """One that is replaced is read as it was; one that is cut keeps what was read of it."""
    file = folder / "rows.jsonl"
    file.write_text(lines(2_000))
    importer, acknowledged = Importer(MemoryRegistry()), 0

    def interfere(count: int) -> None:
        nonlocal acknowledged
        if not acknowledged:
            change(file)
        acknowledged += count

    importer.import_sources(open_sources(str(file)), interfere)
    assert len(importer.report.rejected) == faults
    assert 256 <= sum(importer.report.placed.values()) <= 2_000
    assert (sum(importer.report.placed.values()) == 2_000) == (not faults)
