"""The configurations of docs/integrations/coding-agents.md, opened with the official client as the editors do."""

import json
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from httpx2 import AsyncClient
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.command import make_tokens
from tests.integration.conftest import Mats, Service, serving
from tests.pages import INTEGRATIONS, blocks, files

PAGE = INTEGRATIONS / "coding-agents.md"
FILES = {"mcpServers": (".mcp.json", ".cursor/mcp.json"), "servers": (".vscode/mcp.json",)}
CLONE, SERVICE, LOCAL = "/path/to/mats", "https://mats.example.com", "http://127.0.0.1:8080"
TOKEN = "read-token-of-this-test-0123456789ab"
_VARIABLE = {
    ".mcp.json": r"\$\{(\w+)\}",
    ".cursor/mcp.json": r"\$\{env:(\w+)\}",
    ".vscode/mcp.json": r"\$\{input:([\w-]+)\}",
}
"""How each editor writes a value that it fills in."""


@dataclass(frozen=True)
class Configuration:
    """A configuration as the page prints it."""

    file: str
    document: dict[str, Any]

    @property
    def entry(self) -> dict[str, Any]:
        """The one server, with what is filled in by the editor filled in."""
        (name,) = [key for key, allowed in FILES.items() if self.file in allowed]
        assert self.document.keys() <= {name, "inputs"}
        assert self.document[name].keys() == {"mats"}
        values = {each["id"]: TOKEN for each in self.document.get("inputs", [])} or {"MATS_TOKEN": TOKEN}
        text = re.sub(_VARIABLE[self.file], lambda found: values[found[1]], json.dumps(self.document[name]["mats"]))
        assert "$" not in text, f"{self.file} leaves {text} open"
        return json.loads(text)


CONFIGURATIONS = [Configuration(file, json.loads(text)) for file, texts in files(PAGE).items() for text in texts]
OVER_STDIO = [each for each in CONFIGURATIONS if "command" in each.entry]
OVER_HTTP = [each for each in CONFIGURATIONS if "url" in each.entry]
COMMANDS = [
    line.removeprefix("$ ") for block in blocks(PAGE) for line in block.text.splitlines() if "claude mcp add" in line
]


@pytest.fixture(scope="module")
def clone(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of mats after `make run`."""
    folder = tmp_path_factory.mktemp("clone")
    (folder / ".venv").symlink_to(sys.prefix)
    shutil.copytree(sample_home, folder / ".mats")
    return folder


@pytest.fixture(scope="module")
def shared(clone: Path) -> Iterator[Service]:
    """A service that wants a token."""
    make_tokens(clone / ".mats", report=TOKEN)
    with serving(Mats(clone / ".mats", encoder="all-MiniLM-L6-v2")) as service:
        yield service


async def use(server: AbstractAsyncContextManager[Client]) -> None:
    """List the tools, find, get, report: what the page promises."""
    with anyio.fail_after(60):
        async with server as mats:
            tools = {tool.name for tool in (await mats.list_tools()).tools}
            assert tools == {"search_capabilities", "get_capability", "report_outcome"}
            found = await mats.call_tool("search_capabilities", {"query": "turn a street address into coordinates"})
            first = found.structured_content["results"][0]["id"]
            assert first == "io.github.modelcontextprotocol.google-maps/maps_geocode"
            assert (await mats.call_tool("get_capability", {"id": first})).structured_content["id"] == first
            outcome = {"query_id": found.structured_content["query_id"], "id": first, "event": "succeeded"}
            assert not (await mats.call_tool("report_outcome", outcome)).is_error


def started(entry: dict[str, Any], folder: Path) -> Client:
    """The server of a command, started in another folder than the clone's."""
    return Client(StdioServerParameters(command=entry["command"], args=entry["args"], env=entry["env"], cwd=folder))


@asynccontextmanager
async def opened(entry: dict[str, Any]):
    """The server at an address, asked with the headers of its entry."""
    async with (
        AsyncClient(headers=entry.get("headers", {})) as http,
        Client(streamable_http_client(entry["url"], http_client=http)) as client,
    ):
        yield client


def test_the_page_has_the_same_entry_in_each_file_for_each_way():
    expected = sorted(name for names in FILES.values() for name in names)
    for ways in (OVER_STDIO, OVER_HTTP):
        assert sorted(each.file for each in ways) == expected
        entries = [{key: value for key, value in each.entry.items() if key != "type"} for each in ways]
        assert entries == entries[:1] * len(expected)


def test_the_command_starts_a_server_that_finds(clone: Path, tmp_path: Path):
    entry = json.loads(json.dumps(OVER_STDIO[0].entry).replace(CLONE, str(clone)))
    anyio.run(use, started(entry, tmp_path))


def test_the_address_with_a_token_finds(shared: Service):
    entry = json.loads(json.dumps(OVER_HTTP[0].entry).replace(SERVICE, shared.url))
    assert entry["headers"] == {"Authorization": f"Bearer {TOKEN}"}
    anyio.run(use, opened(entry))
    with pytest.raises(BaseExceptionGroup):
        anyio.run(use, opened({"url": entry["url"]}))


def test_commands_say_what_the_files_say():
    """An option of `claude mcp add` that takes several values comes after the name."""
    said = [shlex.split(command.replace("$MATS_TOKEN", TOKEN)) for command in COMMANDS]
    by_stdio, by_http = [each.entry for each in CONFIGURATIONS if each.file == ".mcp.json"]
    token = [word for name, value in by_http["headers"].items() for word in ("--header", f"{name}: {value}")]
    variables = [word for name, value in by_stdio["env"].items() for word in ("--env", f"{name}={value}")]
    assert [words[:3] for words in said] == [["claude", "mcp", "add"]] * 3
    assert [words[3:] for words in said] == [
        ["--transport", "stdio", "mats", *variables, "--", by_stdio["command"], *by_stdio["args"]],
        ["--transport", "http", "mats", f"{LOCAL}/mcp"],
        ["--transport", "http", "mats", by_http["url"], *token],
    ]
