"""The configuration of an MCP client for a server, in the form of `.mcp.json` and `claude_desktop_config.json`."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from mats.domain.capability.capability import parts
from mats.domain.protocols.authentication import AuthScheme
from mats.domain.protocols.mcp_server import McpServer, McpStdio
from mats.edge.snippets.http_request import first_option
from mats.edge.snippets.literals import json_text

_GENERAL = frozenset({"mcp", "server", "tools", "api", "www"})
"""Labels of a namespace that name no server."""
_MAX_NAME = 64


def client_configuration(server: McpServer, id: str) -> str:
    """The JSON, with an empty value for each variable and placeholders in braces for credentials."""
    return json_text({"mcpServers": {_server_name(server, id): _entry(server)}}, indent=2)


def _entry(server: McpServer) -> dict[str, Any]:
    if isinstance(server, McpStdio):
        env = {"env": dict.fromkeys(server.env, "")} if server.env else {}
        return {"command": server.command, "args": list(server.args), **env}
    headers = dict.fromkeys(server.headers, "") | dict(_credentials(first_option(server.auth)))
    type = "sse" if server.transport == "sse" else "http"
    return {"type": type, "url": server.url, **({"headers": headers} if headers else {})}


def _credentials(auth: Iterable[AuthScheme]) -> Iterator[tuple[str, str]]:
    """The headers of schemes; clients sign in by themselves where OAuth is asked for."""
    for scheme in auth:
        match scheme.scheme:
            case "apiKey" if scheme.name and scheme.in_ in ("", "header"):
                yield scheme.name, ""
            case "bearer":
                yield "Authorization", "Bearer {token}"
            case "basic":
                yield "Authorization", "Basic {credentials}"


def _server_name(server: McpServer, id: str) -> str:
    """A name for the server: the last telling label of the namespace if a tool has the id, else the capability's."""
    namespace, name = parts(id)
    labels = [label for label in reversed(namespace.split(".")) if label not in _GENERAL]
    chosen = labels[0] if server.tool and labels else name
    return re.sub(r"[^A-Za-z0-9_-]+", "-", chosen).strip("-")[:_MAX_NAME] or "server"
