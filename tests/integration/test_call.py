"""What is found can be called with its invocation alone: import, search, call, for each protocol."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from email import message_from_bytes
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from mats.client import Called
from mats.client import call as call_it
from mats.domain.errors import NotPossible
from tests.command import sql
from tests.conftest import ROOT
from tests.frameworks.scripted_model import Call as ScriptedCall
from tests.frameworks.scripted_model import scripted_model
from tests.frameworks.tool_server import NOWHERE, tool_server
from tests.integration.conftest import Mats, Service, serving
from tests.servers.site import Asked, site

Call = Mapping[str, Any]

TIDES = """
import os
from mcp.server.mcpserver import MCPServer
server = MCPServer("tides")
@server.tool(description="Says when the tide is high at a harbour.")
def high_tide(harbour: str) -> str:
    return harbour + " at noon, said " + os.environ["TIDE_KEY"] + str(os.environ.get("OTHER_KEY"))
server.run()
"""


def variable(name: str, base: str) -> str:
    """The variable of a secret for a server on this machine."""
    return f"{name}_127_0_0_1___{urlsplit(base).port}"


def find(service: Service, request: str) -> Call:
    """The invocation of what a search finds first, as JSON of the API."""
    status, answer = service.request("/discover", {"query": request})
    assert status == 200
    status, capability = service.request(f"/capabilities/{quote(answer['results'][0]['id'])}")
    assert status == 200
    return capability["invocation"]


def register(mats: Mats, *what: str, namespace: str = "org.example.found", **more: Any) -> None:
    mats("import", "--namespace", namespace, *what, **more).done()


def test_mcp_over_stdio(mats: Mats, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TIDE_KEY", "key-at-import")
    register(mats, "mcp", "--", "env", "TIDE_KEY=key-at-import", sys.executable, "-c", TIDES)
    with serving(mats) as service:
        call = find(service, "when is the tide high?")
    assert call["env"] == ["TIDE_KEY"]
    assert "key-at-import" not in json.dumps(call)
    mine, asked = {"TIDE_KEY": "mine", "OTHER_KEY": "not for this program"}, list[str]()
    with pytest.raises(NotPossible, match="confirm it"):
        call_it(call, {"harbour": "Cuxhaven"}, environment=mine)
    called = call_it(call, {"harbour": "Cuxhaven"}, environment=mine, may_run=lambda command: not asked.append(command))
    assert called == Called(ok=True, content={"result": "Cuxhaven at noon, said mineNone"})
    assert asked[0].startswith(f"TIDE_KEY=$TIDE_KEY {sys.executable} -c ")
    id = "org.example.found/high_tide"
    shown = mats("call", id, "--input", '{"harbour": "Emden"}', "--dry-run", TIDE_KEY="mine").out
    assert "$TIDE_KEY" in shown
    assert "mine" not in shown
    ran = mats("call", id, "--input", '{"harbour": "Emden"}', TIDE_KEY="mine").fails(1, "confirm it with --yes")
    assert "may_run" not in ran.err
    mats("call", id, "--set", "TIDE_KEY=x", "--set", "odd=y").fails(2, "set TIDE_KEY in", "odd: cannot be set")
    ran = mats("call", id, "--input", '{"harbour": "Emden"}', "--yes", "--json", TIDE_KEY="mine")
    assert ran.json["content"] == {"result": "Emden at noon, said mineNone"}


def test_mcp_over_http(mats: Mats):
    question = {"repoName": "acme/tides", "question": "Which transports?"}
    with tool_server() as tools:
        register(mats, "mcp", tools.url)
        with serving(mats) as service:
            call = find(service, "ask a question about a GitHub repository")
        assert call["transport"] == "streamable-http"
        called = call_it(call, question, private=True)
        failed = call_it(call, {"repoName": NOWHERE, "question": "Why?"}, private=True)
    assert (called.ok, "stdio and streamable HTTP" in str(called.content)) == (True, True)
    assert (failed.ok, f"{NOWHERE} is not indexed" in str(failed.content)) == (False, True)


def body(media_type: str) -> dict[str, Any]:
    return {"requestBody": {"content": {media_type: {"schema": {"type": "object"}}}}}


def form_parts(asked: Asked) -> dict[str, str]:
    head = f"Content-Type: {asked.headers['Content-Type']}\r\n\r\n".encode()
    parts = message_from_bytes(head + asked.body).get_payload()
    return {
        part.get_param("name", header="content-disposition"): part.get_payload(decode=True).decode() for part in parts
    }


LOGIN = f"Basic {base64.b64encode(b'ann:pass word').decode()}"
OPERATIONS: Mapping[str, tuple[str, dict[str, Any], dict[str, Any], Any]] = {
    # name: summary, operation, input, what the server must have received of it
    "postToll": (
        "Post a toll form", {**body("application/x-www-form-urlencoded"), "security": [{"login": []}]},
        {"body": {"ship": "Elbe & Co", "kinds": ["a", "b"]}},
        lambda asked: parse_qsl(asked.body.decode()) == [("ship", "Elbe & Co"), ("kinds", "a"), ("kinds", "b")]
        and asked.headers["Authorization"] == LOGIN,
    ),
    "createCargo": (
        "Create cargo in the manifest",
        {**body("application/json"), "parameters": [{"name": "X-Trace", "in": "header", "schema": {"type": "string"}}]},
        {"body": {"tons": 3, "of": ["ore"]}, "X-Trace": "t 1"},
        lambda asked: (json.loads(asked.body), asked.headers["X-Trace"]) == ({"tons": 3, "of": ["ore"]}, "t 1"),
    ),
    "uploadChart": (
        "Upload a nautical chart", {**body("multipart/form-data"), "security": [{"tls": []}, {"bearer": []}]},
        {"body": {"title": "Jade", "chart": {"filename": "a.png", "base64": "aGk="}}},
        lambda asked: form_parts(asked) == {"title": "Jade", "chart": "hi"}
        and asked.headers["Authorization"] == "Bearer token-1",
    ),
    "openGate": (
        "Open the lock gate", {"security": [{"header": []}]}, {}, lambda asked: asked.headers["X-Key"] == "key-1",
    ),
    "readGauge": (
        "Read the water gauge", {"security": [{"query": []}]}, {}, lambda asked: asked.query == {"key": "key-1"},
    ),
}  # fmt: skip
SCHEMES = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "bearer": {"type": "http", "scheme": "bearer"},
    "login": {"type": "http", "scheme": "basic"},
    "tls": {"type": "mutualTLS"},
}


def test_operations_with_every_body_and_credential_are_found_and_called_for_real(mats: Mats):
    received: dict[str, Asked] = {}

    def answer(asked: Asked) -> Any:
        received[asked.path.split("/")[2]] = asked
        return {"done": asked.path}

    with site(answer) as base:
        document = {
            "openapi": "3.1.0", "info": {"title": "Harbour"}, "servers": [{"url": f"{base}/v1"}],
            "components": {"securitySchemes": SCHEMES},
            "paths": {
                f"/{name}": {
                    "post" if "requestBody" in operation else "get": {
                        "operationId": name, "summary": summary, **operation,
                    }
                }
                for name, (summary, operation, *_) in OPERATIONS.items()
            },
        }  # fmt: skip
        register(mats, "-", stdin=json.dumps(document).encode())
        known = {"API_KEY": "key-1", "API_TOKEN": "token-1", "API_USER": "ann", "API_PASSWORD": "pass word"}
        secrets = {variable(name, base): value for name, value in known.items()}
        with serving(mats) as service:
            found = {name: find(service, summary) for name, (summary, *_) in OPERATIONS.items()}
        called = {
            name: call_it(found[name], arguments, environment=secrets, private=True)
            for name, (_, _, arguments, _) in OPERATIONS.items()
        }
        ran = mats("call", "org.example.found/openGate", "--private", **secrets)
        assert ran.json == called["openGate"].content
        for name in OPERATIONS.keys() - {"createCargo"}:
            shown = mats("call", f"org.example.found/{name}", "--private", "--dry-run", **secrets).out
            assert "$API_" in shown
            assert not [value for value in (*secrets.values(), LOGIN) if value in shown]
        missing = mats("call", "org.example.found/uploadChart", "--private")
        assert f"which this client does not support, or {variable('API_TOKEN', base)}: set it" in missing.err
        assert "; `--private` allows it" in mats("call", "org.example.found/createCargo", "--input", '{"body": {}}').err
    right = [name for name, (*_, is_right) in OPERATIONS.items() if called[name].ok and is_right(received[name])]
    assert right == list(OPERATIONS)


def test_agent_of_the_examples_finds_calls_and_reports(mats: Mats):
    program = [sys.executable, str(ROOT / "examples" / "agent.py")]
    assert len(Path(program[1]).read_text("utf-8").splitlines()) <= 60
    for task, code, told in (("--help", 0, "MATS_URL=http://127"), ("a task", 1, "set MATS_URL, LLM_URL, LLM_MODEL: ")):
        wrong = subprocess.run([*program, task], env={}, capture_output=True, text=True, timeout=60, check=False)
        assert (wrong.returncode, told in wrong.stdout + wrong.stderr) == (code, True)

    def script(returned: list[str]) -> ScriptedCall | str:
        if returned:
            return f"It says: {returned[-1]}"
        return ScriptedCall("com_deepwiki_mcp__ask_question", {"repoName": "acme/tides", "question": "Which?"})

    with tool_server() as tools, scripted_model(script) as model:
        register(mats, "mcp", tools.url, namespace="com.deepwiki.mcp")
        with serving(mats) as service:
            environment = {
                **os.environ, "MATS_URL": service.url, "LLM_URL": f"{model.url}/v1", "LLM_MODEL": "m",
                "AGENT_PRIVATE": "1",
            }  # fmt: skip
            ran = subprocess.run(
                [*program, "ask a question about a GitHub repository"],
                env=environment, capture_output=True, text=True, timeout=120, check=True,
            )  # fmt: skip
    assert "stdio and streamable HTTP" in ran.stdout
    assert tools.asked == [{"repoName": "acme/tides", "question": "Which?"}]
    reported = sql(mats.home / "mats.db", "SELECT id, events FROM outcomes")
    assert reported == [("com.deepwiki.mcp/ask_question", '["succeeded"]')]
