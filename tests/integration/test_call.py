"""What is found can be called with its invocation alone: import, search, call, for each protocol."""

import asyncio
import json
import os
import shutil
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pytest
from mcp import Client, StdioServerParameters

from tests.conftest import ROOT, skip_or_fail
from tests.integration.conftest import Mats, Service, serving
from tests.servers.site import Asked, site

Call = Mapping[str, Any]

TIDES = """
import os
from mcp.server.mcpserver import MCPServer
server = MCPServer("tides")
@server.tool(description="Says when the tide is high at a harbour.")
def high_tide(harbour: str) -> str:
    return f"{harbour} at noon, said {os.environ['TIDE_KEY']}"
server.run()
"""


# callers: each knows the protocol, and of the capability nothing but its invocation


def call_mcp(call: Call, arguments: dict[str, Any]) -> str:
    async def ask() -> str:
        server: Any = call.get("url")
        if call["transport"] == "stdio":
            known = {name: os.environ[name] for name in (*call.get("env", ()), "PATH")}
            server = StdioServerParameters(command=call["command"], args=call.get("args", []), env=known)
        async with Client(server) as client:
            answer = await client.call_tool(call["tool"], arguments)
        return answer.content[0].text

    return asyncio.run(ask())


def call_http(call: Call, values: Mapping[str, Any], secret: str = "") -> Any:
    path, query, headers = call["url"], {}, {}
    for parameter in call.get("parameters", ()):
        value = values.get(parameter.get("property", parameter["name"]))
        match parameter["in"], value:
            case _, None:
                continue
            case "path", _:
                path = path.replace(f"{{{parameter['name']}}}", quote(str(value), safe=""))
            case "query", _:
                query[parameter["name"]] = value
            case "header", _:
                headers[parameter["name"]] = str(value)
    for scheme in call.get("auth", ()):
        if (scheme["scheme"], scheme.get("in")) == ("apiKey", "header"):
            headers[scheme["name"]] = secret
    data = None
    if "body" in call:
        headers["Content-Type"] = call["body"]
        data = json.dumps(values[call.get("body_property", "body")]).encode()
    url = f"{path}?{urlencode(query, doseq=True)}" if query else path
    return _send(urllib.request.Request(url, data, headers, method=call["method"]))


def call_a2a(call: Call, text: str) -> Any:
    message = {"kind": "message", "messageId": "1", "role": "user", "parts": [{"kind": "text", "text": text}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    headers = {"Content-Type": "application/json"}
    return _send(urllib.request.Request(call["url"], json.dumps(body).encode(), headers))["result"]


def read_skill(call: Call, base: str) -> str:
    method, path = call["instructions"].split(" ")
    with urllib.request.urlopen(urllib.request.Request(f"{base}{path}", method=method)) as response:
        return response.read().decode()


def _send(request: urllib.request.Request) -> Any:
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.loads(response.read())


# what is called


@contextmanager
def echoing() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that keeps each request and answers with it; its address, and the requests."""
    seen: list[dict[str, Any]] = []

    def echo(asked: Asked) -> Any:
        request = {
            "method": asked.method, "path": asked.target, "headers": dict(asked.headers.items()),
            "body": json.loads(asked.body) if asked.body else None,
        }  # fmt: skip
        seen.append(request)
        return {"jsonrpc": "2.0", "id": 1, "result": request}

    with site(echo) as url:
        yield url, seen


def find(service: Service, request: str) -> Call:
    """The invocation of what a search finds first, as JSON of the API."""
    status, answer = service.request("/discover", {"query": request})
    assert status == 200
    status, capability = service.request(f"/capabilities/{quote(answer['results'][0]['id'])}")
    assert status == 200
    return capability["invocation"]


def register(mats: Mats, *what: str, namespace: str = "org.example.found", **more: Any) -> None:
    ran = mats("import", "--namespace", namespace, *what, **more)
    assert ran.code == 0, ran.err


def test_mcp_over_stdio(mats: Mats, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TIDE_KEY", "key-at-import")
    register(mats, "mcp", "--", "env", "TIDE_KEY=key-at-import", sys.executable, "-c", TIDES)
    with serving(mats) as service:
        call = find(service, "when is the tide high?")
    assert call["env"] == ["TIDE_KEY"]
    assert "key-at-import" not in json.dumps(call)
    monkeypatch.setenv("TIDE_KEY", "mine")
    assert call_mcp(call, {"harbour": "Cuxhaven"}) == "Cuxhaven at noon, said mine"


@pytest.mark.server
@pytest.mark.slow
def test_mcp_over_stdio_of_a_published_server(mats: Mats):
    if shutil.which("npx") is None:
        skip_or_fail("npx")
    register(mats, "mcp", "--timeout", "300", "--", "npx", "-y", "@modelcontextprotocol/server-everything")
    with serving(mats) as service:
        call = find(service, "echo back the input string")
    assert (call["command"], call["args"]) == ("npx", ["-y", "@modelcontextprotocol/server-everything"])
    assert "hello" in call_mcp(call, {"message": "hello"})


def test_mcp_over_http(mats: Mats, tmp_path: Path):
    other = Mats(tmp_path / "other")
    with serving(other, "--sample") as called:
        register(mats, "mcp", f"{called.url}/mcp")
        with serving(mats) as service:
            call = find(service, "show one capability")
        assert call["transport"] == "streamable-http"
        assert "Amazon" in call_mcp(call, {"id": "com.amazon.bedrock/amazon.nova-micro-v1:0"})


def test_operation_of_an_http_api(mats: Mats):
    schema = {"type": "object", "properties": {"reason": {"type": "string"}}}
    operation = {
        "operationId": "fileClaim",
        "summary": "File a claim for a lost parcel",
        "parameters": [
            {"name": "parcel", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "parcel", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
            {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
        ],
        "requestBody": {"content": {"application/merge-patch+json": {"schema": schema}}},
    }
    with echoing() as (base, _):
        document = {
            "openapi": "3.1.0",
            "info": {"title": "Parcels"},
            "servers": [{"url": f"{base}/v1"}],
            "security": [{"key": []}],
            "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
            "paths": {"/parcels/{parcel}/claims": {"post": operation}},
        }
        register(mats, "-", stdin=json.dumps(document).encode())
        assert mats("import", str(ROOT / "examples" / "registry.jsonl")).code == 0  # words weigh by how rare they are
        with serving(mats) as service:
            call = find(service, "file a claim for a lost parcel")
            _, made = service.request(
                "/discover", {"query": "file a claim for a lost parcel", "format": "openai_tools"}
            )
        [tool] = [tool for tool, id in made["names"].items() if id == "org.example.found/fileClaim"]
        assert made["invocations"][tool] == call
        values = {"parcel": "a/b", "parcel_query": ["1", "2"], "X-Trace": "t", "body": {"reason": "lost"}}
        assert values.keys() == _properties(made["output"], tool)
        sent = call_http(call, values, secret="mine")["result"]
    assert (sent["method"], sent["path"]) == ("POST", "/v1/parcels/a%2Fb/claims?parcel=1&parcel=2")
    assert sent["body"] == {"reason": "lost"}
    assert {"X-Trace": "t", "X-Key": "mine", "Content-Type": "application/merge-patch+json"}.items() <= (
        {name.title(): value for name, value in sent["headers"].items()}.items()
    )


def _properties(tools: list[dict[str, Any]], name: str) -> set[str]:
    [function] = [tool["function"] for tool in tools if tool["function"]["name"] == name]
    return set(function["parameters"]["properties"])


def test_agent_of_a2a(mats: Mats):
    with echoing() as (base, seen):
        card = {
            "protocolVersion": "0.3.0", "name": "Ferry desk", "description": "Books ferries to the islands.",
            "url": f"{base}/a2a", "preferredTransport": "JSONRPC", "capabilities": {}, "skills": [],
        }  # fmt: skip
        register(mats, "-", stdin=json.dumps(card).encode())
        with serving(mats) as service:
            call = find(service, "book a ferry")
        assert (call["protocol"], call["version"], call["transport"]) == ("a2a", "0.3.0", "JSONRPC")
        assert call_a2a(call, "to Juist")["body"]["params"]["message"]["parts"][0]["text"] == "to Juist"
    assert [urlsplit(request["path"]).path for request in seen] == ["/a2a"]


def test_skill_in_a_folder(mats: Mats, tmp_path: Path):
    folder = tmp_path / "folder" / "tie-knots"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: tie-knots\ndescription: Ties knots.\n---\n# Knots\n\nStart a loop.\n")
    (folder / "scripts" / "draw.py").touch()
    register(mats, str(folder.parent))
    with serving(mats) as service:
        call = find(service, "tie knots")
        assert call["files"] == ["SKILL.md", "scripts/draw.py"]
        assert read_skill(call, service.url) == "# Knots\n\nStart a loop."
