"""Files, folders and archives: what is read as lines or documents, and what is skipped."""

import gzip
import io
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.profile.origin import Placed
from mats.local.imports import files
from mats.local.imports.files import FileUnreadable, find_files, open_file, read_content
from mats.local.imports.importer import Importer
from mats.local.imports.sources import open_sources
from tests.fakes import MemoryRegistry
from tests.unit.local.imports.formats import documents as d


def row(name: str, **about) -> bytes:
    return json.dumps({"namespace": "n", "name": name, "kind": "tool", **about}).encode() + b"\n"


def imported(name: str, namespace: str = "") -> Importer:
    importer = Importer(MemoryRegistry())
    importer.import_sources(open_sources(str(name), namespace))
    return importer


def held(name: str, content: bytes) -> str:
    return "document" if read_content(name, io.BytesIO(content))[0] else "lines"


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("x.jsonl", b"[1,\n2]", "lines"),
        ("x.ndjson.gz", b"{}", "lines"),
        ("-", row("a") + row("b"), "lines"),
        ("-", b"\n\n{bad}\n" + row("b"), "lines"),
        ("-", b"", "lines"),
        ("-", b" \n", "lines"),
        ("x.json", json.dumps(d.SERVER).encode(), "document"),
        ("x.json", json.dumps(d.SERVER, indent=1).encode(), "document"),
        ("-", b'[\n{"name": "a", "inputSchema": {}},\n{"name": "b", "inputSchema": {}}\n]', "document"),
        ("-", d.SKILL.encode(), "document"),
        ("x.yaml", b"openapi: 3.1.0\npaths: {}\n", "document"),
        ("x.yaml", b"a:\n" + row("b"), "document"),
        ("x.json", b'{"tools": [\n' + row("a") + b"]}", "document"),
        ("-", b"\xef\xbb\xbf[\n" + row("a") + b"]", "document"),
        ("x.toml.gz", b"a = 1\n" + row("b"), "document"),
        ("SKILL.md", b"---\n---\n" + row("b"), "document"),
    ],
)
def test_lines_and_documents_are_distinguished(name, text, what):
    assert held(name, text) == what


def test_lines_of_a_pipe_are_read_as_they_arrive():
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as file, os.fdopen(write_end, "wb", buffering=0) as pipe:
        pipe.write(row("a") * 2)
        _, lines = read_content("-", file)
        assert lines
        assert lines.readline() == row("a")


def test_blank_lines_before_the_first_are_not_held_beyond_the_limit(monkeypatch):
    monkeypatch.setattr(files, "_MOST_BLANK", 10)
    content = io.BytesIO(b"\n" * 50)
    assert read_content("-", content)[0] == b""
    assert content.tell() == 11


SEVERAL = b"\n".join(json.dumps(v).encode() for v in (d.SERVER, d.OLD_SERVER, d.CARD)) + b"\n" + row("a")
LIST = json.dumps([json.loads(row("a")), {"kind": "robot"}, 5], indent=1).encode()


@pytest.mark.parametrize(
    ("name", "content", "new", "rejected"),
    [
        ("servers.jsonl", SEVERAL, 4, []),
        ("list.json", LIST, 1, [("[1]", 0, 3), ("[2]", 0, 1)]),
        ("rows.json", row("a") + row("b", kind="robot"), 1, [("", 2, 1)]),
        ("odd.json", b'{"tools": [\n' + row("a") + row("b") + b"]}", 0, [("", 0, 1)]),
        ("broken.json", b'{"a" 1}\n', 0, [("", 0, 1)]),
        ("rows.txt", b"{not json}\n" + row("a"), 1, [("", 1, 1)]),
    ],
)
def test_what_is_rejected_is_reported_by_its_place_and_the_rest_is_imported(tmp_path, name, content, new, rejected):
    (tmp_path / name).write_bytes(content)
    report = imported(tmp_path / name).report
    assert report.placed[Placed.NEW] == new
    assert report.rows == new + len(rejected) - report.unread
    assert report.unread == (name in ("odd.json", "broken.json"))
    assert [(bad.place.where, bad.place.line, len(bad.faults)) for bad in report.rejected] == rejected


@pytest.mark.parametrize("value", [{"a": 1}, {"kind": "robot", "namespace": "n"}, {"tools": 5}, [1]])
def test_a_json_document_has_the_same_faults_on_one_line(tmp_path, value):
    faults = []
    for indent in (None, 1):
        (tmp_path / "x.json").write_text(json.dumps(value, indent=indent))
        (rejected,) = imported(tmp_path / "x.json").report.rejected
        faults.append((rejected.place, rejected.faults))
    assert faults[0] == faults[1]


def test_too_large_document_is_rejected_early(tmp_path, monkeypatch):
    monkeypatch.setattr("mats.local.imports.files.MAX_BYTES", 100_000)
    monkeypatch.setattr("mats.local.imports.decoding.MAX_BYTES", 100_000)
    file = tmp_path / "big.json"
    with file.open("wb") as sparse:
        sparse.write(b'{\n "a": 1,')
        sparse.truncate(100_000_000)
    (rejected,) = imported(file).report.rejected
    assert "larger than" in rejected.faults[0].message


def test_decompression_bomb_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MIN_UNPACKED", 1_000_000)
    file = tmp_path / "bomb.jsonl.gz"
    file.write_bytes(gzip.compress(b"\0" * 10_000_000))
    with open_file(str(file)) as archive, pytest.raises(FileUnreadable, match="300 times"):
        archive.read()
    assert "300 times" in imported(file).report.rejected[-1].faults[0].message


@pytest.mark.parametrize("name", ["", "no\0name", "x" * 5_000, "/dev/null/x"])
def test_impossible_file_name_is_one_fault(name):
    (rejected,) = imported(name).report.rejected
    assert "cannot be read" in rejected.faults[0].message


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "owner"
    skill = root / "skills" / "tidy-minutes"
    (skill / "references").mkdir(parents=True)
    (skill / "SKILL.md").write_text(d.SKILL)
    (skill / "references" / "server.json").write_text(json.dumps(d.SERVER))
    (root / "a").mkdir()
    (root / "a" / "server.json").write_text(json.dumps(d.SERVER))
    (root / "a" / "package.json").write_text('{"name": "left", "version": "1.0.0"}')
    (root / "a" / "tsconfig.json").write_text("{ // a comment\n}")
    (root / "a" / "README.md").write_text("# Read me")
    (root / "rows.jsonl").write_bytes(row("a"))
    (root / "node_modules").mkdir()
    (root / "node_modules" / "server.json").write_text(json.dumps(d.OLD_SERVER))
    return root


def test_files_of_unknown_format_in_a_folder_are_skipped(folder):
    importer = imported(folder)
    assert sorted(importer.registry.items) == [
        "io.github.example-org/tide-tables", "n/a", "org.example.office/tidy-minutes",
    ]  # fmt: skip
    assert not importer.report.rejected
    assert {file.rpartition("/")[2] for file, _ in importer.report.passed_over} == {"package.json", "tsconfig.json"}


def test_broken_file_with_a_known_name_is_rejected(folder):
    (folder / "a" / "agent-card.json").write_text("{")
    (rejected,) = imported(folder).report.rejected
    assert rejected.place.file.endswith("agent-card.json")


def test_links_out_of_a_folder_are_not_followed(folder, tmp_path):
    (tmp_path / "secret.json").write_text(json.dumps(d.CARD))
    (folder / "out.json").symlink_to(tmp_path / "secret.json")
    (folder / "loop").symlink_to(folder)
    (folder / "elsewhere").symlink_to(tmp_path)
    (folder / "gone.json").symlink_to(tmp_path / "nothing.json")
    (folder / "circle.json").symlink_to(folder / "circle.json")
    (folder / "inside.json").symlink_to(folder / "a" / "server.json")
    importer = imported(folder)
    assert {bad.place.file.rpartition("/")[2] for bad in importer.report.rejected} == {
        "out.json",
        "gone.json",
        "circle.json",
    }
    assert all("is a link out of the folder" in bad.faults[0].message for bad in importer.report.rejected)
    assert len(importer.registry.items) == 3


def test_pipe_in_a_folder_is_ignored(folder):
    os.mkfifo(folder / "pipe.json")
    assert len(imported(folder).registry.items) == 3


def test_unreadable_folder_is_reported(folder, monkeypatch):
    def walk(root, onerror, followlinks):
        onerror(PermissionError(13, "Permission denied", str(folder / "a")))
        return iter(())

    monkeypatch.setattr(os, "walk", walk)
    (rejected,) = imported(folder).report.rejected
    told = "cannot be read: Permission denied; check its path and rights"
    assert (rejected.place.file, rejected.faults[0].message) == (str(folder / "a"), told)


def test_folder_with_too_many_files_is_reported(folder, monkeypatch):
    monkeypatch.setattr(files, "MAX_FILES", 2)
    *_, last = find_files(str(folder))
    assert "more than 2 files" in last.problem


DOCUMENTS = [
    json.dumps(v, indent=indent).encode() for v in (d.SERVER, d.TOOLS, d.CARD, d.OPENAPI) for indent in (None, 1)
]
DOCUMENTS += [d.SKILL.encode(), row("a") * 3, gzip.compress(row("a")), b"openapi: 3.1.0\ninfo: {title: t}\npaths: {}\n"]


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A document with some bytes cut out, put in or doubled."""
    content = draw(st.sampled_from(DOCUMENTS))
    for _ in range(draw(st.integers(0, 3))):
        start, size = draw(st.integers(0, len(content))), draw(st.integers(0, 8))
        content = (
            content[:start] + draw(st.binary(max_size=4) | st.just(content[start:][:40])) + content[start + size :]
        )
    return content


@given(damaged(), st.sampled_from(["x", "x.json", "x.yaml", "x.jsonl", "SKILL.md", "x.json.gz", "x.jsonl.gz"]))
def test_any_file_by_any_name_ends_in_a_report(tmp_path_factory, content, name):
    file = tmp_path_factory.mktemp("any") / name
    file.write_bytes(content)
    report = imported(str(file), "org.mine").report
    assert report.placed or report.rejected or report.rows == 0


def test_a_skill_lists_the_files_of_its_folder(tmp_path):
    folder = tmp_path / "tidy-minutes"
    (folder / "scripts").mkdir(parents=True)
    (folder / "node_modules").mkdir()
    for name in ("SKILL.md", "scripts/fill.py", ".env", "node_modules/x.js"):
        (folder / name).write_text(d.SKILL)
    (folder / "link.py").symlink_to(folder / "scripts" / "fill.py")
    (file,) = find_files(str(tmp_path))
    assert file.files == ("SKILL.md", "scripts/fill.py")
    registry = imported(str(tmp_path), "com.acme").registry
    (item,) = registry.get(list(registry.ids())).values()
    assert item["descriptor"]["files"] == ["SKILL.md", "scripts/fill.py"]


def test_a_skill_below_a_skill_is_one_of_its_own(tmp_path):
    for folder in ("pay", "pay/refund", "pay/docs/deep/check"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "SKILL.md").write_text("---\ndescription: Pays.\n---\n")
    (tmp_path / "pay" / "docs" / "server.json").write_text(json.dumps(d.SERVER))
    assert sorted(imported(tmp_path, "n").registry.items) == ["n/check", "n/pay", "n/refund"]


def test_a_skill_lists_a_limited_number_of_files(tmp_path):
    (tmp_path / "SKILL.md").write_text(d.SKILL)
    for number in range(250):
        (tmp_path / f"{number}.txt").touch()
    (file,) = find_files(str(tmp_path))
    assert len(file.files) == 200
