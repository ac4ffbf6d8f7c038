"""The importer, the lines that it reads, and sources of live servers."""

import io

import pytest

from mats.domain.profile.origin import Placed
from mats.domain.protocols.protocol import MappedValue, Source
from mats.local.imports import files as lines
from mats.local.imports import importer as importer_module
from mats.local.imports.files import read_lines
from mats.local.imports.importer import DryRunRegistry, Importer
from mats.local.imports.sources import live_source
from tests.builders import a_registration
from tests.fakes import MemoryRegistry


def import_lines(importer: Importer, name: str, content: bytes, acknowledge=lambda count: None) -> None:
    importer.import_sources([(Source(name), read_lines(name, io.BytesIO(content)))], acknowledge)


def test_batches_are_acknowledged_after_they_are_written(monkeypatch):
    monkeypatch.setattr(importer_module, "BATCH", 2)
    registry, heard = MemoryRegistry(), []
    content = b"".join(b'{"namespace": "n", "name": "%d", "kind": "tool"}\n' % n for n in range(5))
    importer = Importer(registry)
    import_lines(importer, "f", content, lambda count: heard.append((count, len(registry.items))))
    assert heard == [(2, 2), (2, 4), (1, 5)]
    assert importer.report.placed[Placed.NEW] == 5


def test_change_of_kind_is_rejected_with_its_line():
    registry = MemoryRegistry()
    import_lines(Importer(registry), "a", b'{"namespace": "n", "name": "x", "kind": "tool"}')
    importer = Importer(registry)
    import_lines(importer, "b", b'{"namespace": "n", "name": "x", "kind": "agent"}')
    (rejected,) = importer.report.rejected
    assert (rejected.place.file, rejected.place.line, rejected.faults[0].attribute) == ("b", 1, "kind")


def test_dry_run_reports_placements_and_writes_nothing():
    there = MemoryRegistry()
    there.put([a_registration(name="same"), a_registration(name="other"), a_registration(name="kind")])
    before = dict(there.items)
    placed = DryRunRegistry(there).put(
        [
            a_registration(name="same"), a_registration(name="other", version="2"),
            a_registration(name="kind", kind="agent"), a_registration(name="fresh"),
        ]
    )  # fmt: skip
    assert list(placed.values()) == [Placed.UNCHANGED, Placed.CHANGED, Placed.OTHER_KIND, Placed.NEW]
    assert there.items == before


def read(content: bytes) -> list[tuple[int, object]]:
    """The number and value of each line; None for a line that is too long."""
    return [
        (place.line, None if isinstance(value, MappedValue) and "longer than" in value.faults[0].message else value)
        for place, value in read_lines("f", io.BytesIO(content))
    ]


def test_blank_lines_between_others_do_not_outlast_the_limit(monkeypatch):
    monkeypatch.setattr(lines, "_MOST_BLANK", 10)
    assert [line for line, _ in read(b"1\n\n" * 100)] == list(range(1, 200, 2))
    *found, (line, last) = read((b"1\n" + b"\n" * 9) * 100)
    assert (len(found), line) == (2, 15)
    assert isinstance(last, MappedValue)
    assert "blank lines" in last.faults[0].message


def test_overlong_line_is_rejected_and_the_next_one_is_read(monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    assert read(b"1" * 35 + b"\n" + b"2\n") == [(1, None), (2, 2)]
    assert read(b"1" * 10 + b"\n2") == [(1, None), (2, 2)]
    assert read(b"1" * 9 + b"\n2") == [(1, 111_111_111), (2, 2)]


def test_overlong_line_is_never_read_as_a_whole(monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    sizes: list[int] = []

    class Counting(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            line = super().readline(size)
            sizes.append(len(line))
            return line

    assert [place.line for place, _ in read_lines("f", Counting(b"1" * 1_000 + b"\n2\n"))] == [1, 2]
    assert max(sizes) == 10


@pytest.mark.parametrize("line", [b"9" * 5_000, b"[" * 100_000, b"\xff", b"{}", b"null", b'"text"', b"[1]"])
def test_line_that_is_no_registration_is_rejected(line: bytes):
    importer = Importer(MemoryRegistry())
    import_lines(importer, "f", line)
    (rejected,) = importer.report.rejected
    assert rejected.place.line == 1


SECRET = "hunter2"


@pytest.mark.parametrize(
    ("how", "entry", "noted"),
    [
        ({"command": ["npx", "-y", "tides"]}, {"command": "npx", "args": ["-y", "tides"]}, []),
        (
            {"command": ["env", f"KEY={SECRET}", "tides", "--token", SECRET]},
            {"command": "tides", "args": ["--token", "{token}"], "env": ["KEY"]},
            ["server"],
        ),
        ({"command": ["tides", "a\u200b"]}, None, ["server"]),
        ({"url": "https://x.example/mcp"}, {"url": "https://x.example/mcp", "transport": "streamable-http"}, []),
        (
            {"url": f"https://x.example/mcp?key={SECRET}#a"},
            {"url": "https://x.example/mcp?key={key}", "transport": "streamable-http"},
            ["endpoint"],
        ),
        ({}, None, []),
    ],
)
def test_a_live_server_is_kept_without_secrets(how, entry, noted):
    source, stream = live_source("x", lambda: {"tools": []}, "com.acme", **how)
    assert source.server_entry == entry
    remarks = [note for _, value in stream if isinstance(value, MappedValue) for note in value.notes]
    assert [note.attribute for note in remarks] == noted
    assert SECRET not in f"{source}{remarks}"
