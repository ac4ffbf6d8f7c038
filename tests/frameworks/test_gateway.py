"""What mats finds is called through a gateway, FastMCP's own command, as docs/integrations/gateway.md says."""

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mats.client import Client
from tests.command import Mats, free_port, wait_until
from tests.frameworks.conftest import PYTHON, Program, commands, environment
from tests.frameworks.tool_server import ToolServer
from tests.pages import INTEGRATIONS

PAGE, GATEWAY = "gateway.md", "127.0.0.1:8090"
EVERYWHERE, WITHIN = "NAMESPACES: list[str] = []", 'NAMESPACES = ["com.example"]'
"""What the page says to change in the other page's file."""
TIME_SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("time", log_level="ERROR")
@server.tool(description="Get current time in a specific timezones")
def get_current_time(timezone: str) -> str:
    return f"noon in {timezone}"
server.run()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A search path with a `uvx` that knows one package, a stand-in."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "time_server.py").write_text(TIME_SERVER)
    uvx = folder / "uvx"
    uvx.write_text(
        f'#!/bin/sh\n[ "$*" = mcp-server-time ] && exec {shlex.quote(sys.executable)} {folder}/time_server.py\n'
    )
    uvx.chmod(0o755)
    return f"{folder}:{PYTHON.parent}:{os.environ['PATH']}"


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running(command: str, folder: Path, path: str, port: int) -> Iterator[None]:
    """The gateway, started as the page says."""
    words = shlex.split(command)
    assert (words[0], words[-2:]) == ("fastmcp", ["--port", GATEWAY.partition(":")[2]])
    settings = {**environment(), "PATH": path, "FASTMCP_CHECK_FOR_UPDATES": "off"}
    with (folder / "gateway.log").open("w") as log:
        process = subprocess.Popen(
            [str(PYTHON.parent / "fastmcp"), *words[1:-1], str(port)], cwd=folder, env=settings, stdout=log, stderr=log
        )
        try:
            wait_until(lambda: listens(port) or process.poll() is not None, seconds=60)
            assert process.poll() is None, (folder / "gateway.log").read_text()
            yield
        finally:
            process.terminate()
            process.wait(20)


def test_what_is_found_is_called_through_the_gateway(program: Program, home: Mats, tools: ToolServer, path: str):
    tools.asked.clear()
    port = free_port()
    assert f"`{WITHIN}`" in (INTEGRATIONS / PAGE).read_text("utf-8")
    program.write("find-then-call.md", "find_then_call.py", **{EVERYWHERE: WITHIN})
    program.write(PAGE, "servers.json", **{"https://mcp.deepwiki.com/mcp": tools.url})
    program.write(PAGE, "via_gateway.py", **{GATEWAY: f"127.0.0.1:{port}"})
    program.write(PAGE, "try_it.py")
    serve, load = commands(PAGE)
    with running(serve, program.folder, path, port):
        words = shlex.split(load.replace("servers.json", str(program.folder / "servers.json")))
        ran = home.process(*words[1:], PATH=path)
        assert ran.code == 0, ran.err
        with Client(program.service.url) as mats:
            wait_until(lambda: mats.discover("current time", namespaces=["com.example.time"]).results, seconds=60)
        before = program.outcomes()
        printed = program.run("try_it.py")
    first, second = printed.splitlines()
    assert first.startswith("com_example_deepwiki__ask_question The documentation of modelcontextprotocol/python-sdk")
    assert second == "com_example_time__get_current_time noon in Europe/Berlin"
    assert tools.asked == [{"repoName": "modelcontextprotocol/python-sdk", "question": "Transports?"}]
    assert [events for _, _, events in program.outcomes() - before] == ['["succeeded"]'] * 2
    assert home("remove", "--namespace", "com.example", "--yes").code == 0
