"""Parts of the console's registry: parameters, preconditions, rows, their filters and order."""

import pytest

from mats.domain.capability.capability import Kind, Lifecycle
from mats.domain.capability.suspicion import ORDERS
from mats.domain.errors import RequestInvalid
from mats.domain.profile.profile import Profile, Status
from mats.local.console.api import headers_of, parse_query, precondition
from mats.local.console.selection import ListQuery, ListRow, Show, list_row, sparse_reason
from tests.builders import a_profile
from tests.conftest import ROOT


@pytest.mark.parametrize(
    ("if_match", "if_none_match", "on_a", "on_nothing"),
    [
        (None, None, True, True),
        ('"a"', None, True, False),
        ('"b"', None, False, False),
        ('"b", "a"', None, True, False),
        ("*", None, True, False),
        ('W/"a"', None, False, False),
        ("", None, False, False),
        (None, "*", False, True),
        (None, '"a"', False, True),
        (None, '"b"', True, True),
        ('"a"', "*", False, False),
    ],
)
def test_preconditions_are_those_of_http(if_match, if_none_match, on_a: bool, on_nothing: bool):
    holds = precondition(if_match, if_none_match)
    assert (holds("a"), holds(None)) == (on_a, on_nothing)


@pytest.mark.parametrize(("query", "field"), [
    (b"limit=0", "limit"), (b"limit=201", "limit"), (b"limit=x", "limit"), (b"limit=", "limit"),
    (b"show=everything", "show"), (b"kind=robot", "kind.0"), (b"q=%zz", "q"), (b"q=%", "q"), (b"q=%ff", "q"),
    (b"q=\xff", "q"), (b"q=a&q=b", "q"), (b"limit=1&limit=2", "limit"), (b"colour=red", "colour"),
    (b"q=" + b"x" * 2_001, "q"),
])  # fmt: skip
def test_a_wrong_query_names_its_field(query: bytes, field: str):
    with pytest.raises(RequestInvalid) as raised:
        parse_query(query, ListQuery)
    assert [fault.attribute for fault in raised.value.faults] == [field]


def test_a_row_tells_sparse_rejected_and_not_findable_apart():
    described = "Moves money between the accounts of customers, merchants and banks, in many currencies, at once."
    good = list_row(a_profile(description=described), indexed=True)
    assert (good.sparse, good.findable, good.to_json()["status"]) == ("", True, "active")
    assert list_row(a_profile(description=""), indexed=True).sparse == "no description"
    assert sparse_reason("Money.") == "its description has 1 content word"
    assert not list_row(a_profile(description=described), indexed=False).findable
    assert not good.callable
    assert list_row(a_profile(endpoint="https://x.example/mcp"), indexed=True).callable
    never = list_row(Profile(namespace="A B", name="", status=Status.REJECTED, error="namespace: no"), indexed=True)
    assert (never.kind, never.sparse, never.findable, never.callable) == (None, "", False, True)
    assert never.to_json()["namespace"] == "A B"


@pytest.mark.parametrize(
    ("encoded_by", "encoder", "indexed", "pending"),
    [
        ("", "bge", True, True),
        ("older", "bge", True, True),
        ("bge", "bge", True, False),
        ("", "", True, False),
        ("", "bge", False, False),
    ],
)
def test_a_vector_is_pending_where_words_find_what_the_encoder_has_not_encoded(encoded_by, encoder, indexed, pending):
    row = list_row(a_profile().model_copy(update={"encoder": encoded_by}), indexed=indexed, encoder=encoder)
    assert row.vector_pending is row.to_json()["vector_pending"] is pending
    assert (Show.PENDING in row.shows) is pending


ROWS = [
    ListRow(id="a.b/one", kind=Kind.TOOL, trust=10, updated="2026-01-02", provider="Straße AG"),
    ListRow(id="a.b/two", kind=Kind.AGENT, trust=None, updated="2026-01-03", enriched=True, callable=False,
            suspicious=(ORDERS,), lifecycle=Lifecycle.DEPRECATED),
    ListRow(id="a.c/three", kind=Kind.TOOL, trust=90, error="namespace: no", sparse="no description"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "names"), [
    (b"sort=trust", "one three two"), (b"sort=-trust", "three one two"), (b"sort=-updated", "two one three"),
    (b"ns=a.b", "one two"), (b"ns=a", "one two three"), (b"ns=a.b.*&ns=a.c", "one two three"),
    (b"ns=a.", "one two three"), (b"ns=b", ""), (b"", "one two three"), (b"show=sparse", "three"),
    (b"show=rejected", "three"), (b"show=suspicious", "two"), (b"show=deprecated", "two"),
    (b"show=unenriched", "one three"), (b"show=uncallable", "two"), (b"kind=agent", "two"),
    (b"kind=tool&kind=agent", "one two three"), (b"q=STRASSE", "one"), (b"q=B/T", "two"),
    (b"q=b/&show=unenriched&kind=agent", ""),
])  # fmt: skip
def test_rows_are_ordered_and_filtered(query: bytes, names: str):
    asked = parse_query(query, ListQuery)
    assert [row.id.partition("/")[2] for row in asked.order(asked.select(ROWS))] == names.split()


def test_every_header_of_the_console_is_a_line_of_text():
    headers = headers_of(ROOT / "console")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert all(value.isascii() and value.isprintable() for value in headers.values())
