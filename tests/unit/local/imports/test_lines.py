"""Lines of a file: numbers, limits and faults."""

import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.errors import RegistrationInvalid
from mats.domain.protocols.protocol import MappedValue
from mats.local.imports import files as lines
from mats.local.imports.files import parse_line, read_lines
from mats.local.imports.formats.registrations import parse_row


def read(content: bytes) -> list[tuple[int, object]]:
    """The number and value of each line; None for a line that is too long."""
    return [
        (place.line, None if is_overlong(value) else value) for place, value in read_lines("f", io.BytesIO(content))
    ]


def is_overlong(value: object) -> bool:
    return isinstance(value, MappedValue) and "longer than" in value.faults[0].message


def test_blank_lines_are_skipped_and_counted():
    assert read(b"1\n\n  \n2") == [(1, 1), (4, 2)]


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


@given(st.binary(max_size=200))
def test_any_line_is_a_registration_or_is_rejected(line: bytes):
    with suppress(RegistrationInvalid):
        assert parse_row(parse_line(line)).id


@pytest.mark.parametrize("line", [b"9" * 5_000, b"[" * 100_000, b"\xff", b"{}", b"null", b'"text"', b"[1]"])
def test_line_that_is_no_registration_is_rejected(line: bytes):
    with pytest.raises(RegistrationInvalid):
        parse_row(parse_line(line))
