"""The Python client against the real service."""

from collections.abc import Iterator

import pytest

from mats.client import Client, Kind, NotFound, WrongRequest
from mats.domain.protocols.mcp_server import McpRemote
from tests.conftest import ROOT
from tests.integration.conftest import Mats, Service, serving

ITEMS = ROOT / "examples" / "registry.jsonl"
QUERY = "refund a customer's card payment"


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[Client]:
    with Client(service.url) as connected:
        yield connected


def test_it_discovers(client):
    answer = client.discover(QUERY, kinds=[Kind.TOOL], limit=2, explain=True)
    assert answer.results[0].id == "com.stripe.mcp/create_refund"
    assert len(answer.results) == 2
    assert answer.results[0].why


def test_it_shows_a_capability(client):
    shown = client.capability("com.stripe.mcp/create_refund")
    assert shown.kind is Kind.TOOL
    assert shown.input_schema


def test_it_shows_how_to_call(client):
    call = client.capability("com.deepwiki.mcp/ask_question").invocation
    assert isinstance(call, McpRemote)
    assert (call.url, call.tool) == ("https://mcp.deepwiki.com/mcp", "ask_question")
    with pytest.raises(NotFound) as caught:
        client.instructions("com.deepwiki.mcp/ask_question")
    assert "has no instructions" in caught.value.problem.detail


def test_it_reads_the_instructions_of_a_skill(tmp_path):
    mats = Mats(tmp_path / "home")
    assert mats("import", str(ROOT / "examples" / "formats" / "skills")).code == 0
    with serving(mats) as service, Client(service.url) as connected:
        read = connected.instructions("org.example.office/tidy-minutes")
    assert read.instructions
    assert "SKILL.md" in read.files


def test_what_is_wrong_is_named(client):
    with pytest.raises(WrongRequest) as caught:
        client.discover("", limit=99)
    assert {fault.field for fault in caught.value.problem.errors} == {"query"}
    with pytest.raises(WrongRequest):
        client.discover("x", kinds=["robot"])
