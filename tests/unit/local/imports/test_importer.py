"""Rows of a file: what is read, what is passed over, what is named."""

import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.errors import RegistrationInvalid
from mats.domain.placement import Placed
from mats.local.imports import importer as importing
from mats.local.imports.importer import Importer, Row, parse, rows
from tests.fakes import MemoryRegistry


def lines(content: bytes) -> list[tuple[int, bytes | None]]:
    return [tuple(row) for row in rows(io.BytesIO(content))]


def test_blank_lines_are_passed_over_and_counted():
    assert lines(b"a\n\n  \nb") == [(1, b"a\n"), (4, b"b")]


def test_an_overlong_line_is_passed_over_without_keeping_it(monkeypatch):
    monkeypatch.setattr(importing, "MAX_LINE_BYTES", 10)
    assert lines(b"x" * 35 + b"\n" + b"ok\n") == [(1, None), (2, b"ok\n")]
    assert lines(b"x" * 10 + b"\nok") == [(1, None), (2, b"ok")]
    assert lines(b"x" * 9 + b"\nok") == [(1, b"x" * 9 + b"\n"), (2, b"ok")]


@given(st.binary(max_size=200))
def test_any_line_is_a_registration_or_named_as_none(line: bytes):
    with suppress(RegistrationInvalid):
        assert parse(Row(1, line)).id


@pytest.mark.parametrize("line", [b"9" * 5_000, b"[" * 100_000, b"\xff", b"{}", b"null", b'"text"', b"[1]"])
def test_what_is_no_registration_says_why(line: bytes):
    with pytest.raises(RegistrationInvalid):
        parse(Row(1, line))


def test_batches_are_acknowledged_after_they_are_written(monkeypatch):
    monkeypatch.setattr(importing, "BATCH", 2)
    registry, heard = MemoryRegistry(), []
    content = b"".join(b'{"namespace": "n", "name": "%d", "kind": "tool"}\n' % n for n in range(5))
    importer = Importer(registry)
    importer.take("f", io.BytesIO(content), lambda count: heard.append((count, len(registry.items))))
    assert heard == [(2, 2), (2, 4), (1, 5)]
    assert importer.report.placed[Placed.NEW] == 5


def test_a_kind_that_would_change_is_named_with_its_line():
    registry = MemoryRegistry()
    Importer(registry).take("a", io.BytesIO(b'{"namespace": "n", "name": "x", "kind": "tool"}'), lambda count: None)
    importer = Importer(registry)
    importer.take("b", io.BytesIO(b'{"namespace": "n", "name": "x", "kind": "agent"}'), lambda count: None)
    (rejected,) = importer.report.rejected
    assert (rejected.file, rejected.line, rejected.faults[0].attribute) == ("b", 1, "kind")
