"""A stand-in for the public MCP server that the pages import, with one tool."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from socket import socket

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from tests.command import wait_until

NOWHERE = "nobody/nothing"  # A repository that it does not know


@dataclass(frozen=True)
class ToolServer:
    """Where it is, and what was asked of it."""

    url: str
    asked: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def tool_server() -> Iterator[ToolServer]:
    """Serve in a thread of this process."""
    asked: list[dict[str, str]] = []
    server = MCPServer("deepwiki", log_level="ERROR")

    @server.tool(description="Answers a question on any public GitHub repository.")
    def ask_question(repoName: str, question: str) -> str:  # noqa: N803  # the real tool's names
        asked.append({"repoName": repoName, "question": question})
        if repoName == NOWHERE:
            raise ToolError(f"{repoName} is not indexed")
        return f"The documentation of {repoName} says: stdio and streamable HTTP."

    config = uvicorn.Config(server.streamable_http_app(stateless_http=True), ws="none", log_config=None)
    web = uvicorn.Server(config)
    with socket() as listening:
        listening.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=web.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        wait_until(lambda: web.started)
        yield ToolServer(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", asked)
        web.should_exit = True
        thread.join(10)
