"""The official client of MCP against the real service, over HTTP and over stdio."""

import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters

from mats.edge.mcp.protocol import CURRENT, WITH_HANDSHAKE
from tests.conftest import ROOT
from tests.integration.conftest import Mats, tool

ITEMS = [
    tool("refund", description="Give money back for a card payment", input_schema={"properties": {"id": {}}}),
    tool("geocode", description="Turn an address into coordinates"),
    tool("secret", description="Payroll money", visible_to=["finance"]),
]

SPOKEN = [("auto", CURRENT), ("legacy", WITH_HANDSHAKE[0]), (CURRENT, CURRENT)]
"""How the client is told to begin, and what is spoken then."""


def stdio(stocked: Mats) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable, args=["-m", "mats.local.cli", "mcp"], env=stocked.environment, cwd=str(ROOT)
    )


@asynccontextmanager
async def connected(server: Any, mode: str) -> AsyncIterator[Client]:
    with anyio.fail_after(60):
        async with Client(server, mode=mode) as client:
            yield client


async def find_and_show(server: Any, mode: str) -> str:
    """A conversation as an agent has it; the version that was spoken."""
    async with connected(server, mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == {"search_capabilities", "get_capability", "report_outcome"}
        found = await client.call_tool(
            "search_capabilities", {"query": "money back for a payment", "limit": 1, "min_relevance": 0}
        )
        assert not found.is_error
        (first,) = found.structured_content["results"]
        assert first["id"] == "com.acme/refund"
        shown = await client.call_tool("get_capability", {"id": first["id"]})
        assert shown.structured_content["input_schema"] == {"properties": {"id": {}}}
        hidden = await client.call_tool("get_capability", {"id": "com.acme/secret"})
        assert hidden.is_error
        assert hidden.content[0].text.endswith(": search_capabilities finds ids")
        wrong = await client.call_tool("search_capabilities", {"query": ""})
        assert wrong.is_error
        with pytest.raises(MCPError):
            await client.call_tool("refund", {})
        return client.protocol_version


@pytest.mark.parametrize(("mode", "spoken"), SPOKEN)
def test_official_client_searches_over_http(service, mode, spoken):
    assert anyio.run(find_and_show, f"{service.url}/mcp", mode) == spoken


@pytest.mark.parametrize(("mode", "spoken"), SPOKEN[:2])
def test_official_client_searches_over_stdio(stocked, mode, spoken):
    assert anyio.run(find_and_show, stdio(stocked), mode) == spoken


PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'


def test_stdout_has_messages_only(stocked):
    search = {"name": "search_capabilities", "arguments": {"query": "money", "min_relevance": 0}}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": search}
    lines = [
        PING, b"", b"{", b"\xff", b"[]", b"[" * 70_000, b'"' + b"x" * 200_000 + b'"', json.dumps(call).encode(),
        b"[" + PING + b"]", b'{"jsonrpc": "2.0", "method": "notifications/cancelled"}', PING + b"\r", PING,
    ]  # fmt: skip
    ran = stocked("mcp", stdin=b"\n".join(lines)).done()
    said = [json.loads(line) for line in ran.out.splitlines()]
    codes = [-32700, -32700, -32600, -32700, -32700]
    assert [reply["error"]["code"] for reply in said[1:6]] == codes
    assert said[0] == said[8] == said[9] == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert said[6]["result"]["structuredContent"]["results"]
    assert said[7]["error"]["code"] == -32600
    assert "discovered" not in ran.err  # clients keep what a server writes


@pytest.mark.parametrize("tools", ["search", "", "search_tools,none"])
def test_unknown_tools_are_wrong_usage(stocked, tools):
    ran = stocked("mcp", "--tools", tools)
    assert (ran.code, ran.out) == (2, "")
    assert "search_capabilities, search_tools" in ran.err


def _hears_interrupts() -> None:
    """Whatever started the tests may have told its children to ignore them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_stdio_server_ends_with_its_input_and_on_signals(stocked):
    process = stocked.start("mcp", stdin=-1)
    process.stdin.write(PING + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["result"] == {}
    process.stdin.close()
    assert process.wait(10) == 0
    process.stdout.close()
    process.stderr.close()
    process = stocked.start("mcp", stdin=-1, preexec_fn=_hears_interrupts)
    with process:
        process.stdin.write(PING + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert b"Traceback" not in process.stderr.read()


def test_unusable_registry_is_reported_in_one_line(tmp_path):
    home = tmp_path / "home"
    home.write_text("a file")
    ran = Mats(home)("mcp", stdin=PING)
    assert ran.code == 3
    assert ran.out == ""
