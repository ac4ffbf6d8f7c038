"""Live MCP servers: every protocol version is listed, and failing servers end soon."""

import json
import os
import subprocess
import sys
import textwrap

import anyio
import pytest
from anyio.abc import Process

from mats.client.mcp_session import ServerFailed
from mats.local.imports.mcp_servers import list_by_address, list_by_command
from tests.command import wait_until
from tests.unit.local.imports.test_http import answering, response

SERVER = """
import json, os, sys, time
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def tool(name): return {"name": name, "inputSchema": {"type": "object"}}
PAGES = {None: ([tool("a")], "2"), "2": ([tool("b")], "3"), "3": ([tool("c")], None)}
def page(request):
    tools, following = PAGES[request.get("params", {}).get("cursor")]
    say(id=request["id"], result={"tools": tools, **({"nextCursor": following} if following else {})})
requests = (json.loads(line) for line in sys.stdin)
def answer(make):
    shake()
    for request in requests: say(id=request["id"], **make(request))
def shake():
    request = next(requests)
    assert request["method"] == "initialize"
    say(id=request["id"], result={"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x"}})
    assert next(requests)["method"] == "notifications/initialized"
"""


def listed(script: str, timeout_s: float = 10) -> list[str]:
    command = [sys.executable, "-c", SERVER + textwrap.dedent(script)]
    return [tool["name"] for tool in list_by_command(command, timeout_s=timeout_s, grace_s=0.1)["tools"]]


def test_all_pages_are_listed_and_no_tool_is_called():
    assert listed("""
        shake()
        for request in requests:
            assert request["method"] == "tools/list"
            page(request)
    """) == ["a", "b", "c"]


def test_server_without_handshake_gets_the_version_with_each_request():
    assert listed("""
        for request in requests:
            if request["method"] == "tools/list":
                assert request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
                page(request)
            else:
                say(id=request["id"], error={"code": -32601, "message": "Method not found"})
    """) == ["a", "b", "c"]


def test_server_may_log_notify_and_ask_between_its_answers():
    assert listed("""
        print("Starting up ...", flush=True)
        shake()
        say(method="notifications/message", params={})
        say(id="q1", method="sampling/createMessage", params={})
        say(id="q2", method="ping")
        answers = {}
        for request in requests:
            if "method" in request:
                say(id=999, result={})
                page(request)
            else:
                answers[request["id"]] = request
        assert answers["q1"]["error"]["code"] == -32601 and answers["q2"]["result"] == {}
    """) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("sys.exit('no key given')", "exited before it answered; standard error: no key given"),
        ("time.sleep(60)", "within 1 seconds"),
        ("shake(); time.sleep(60)", "within 1 seconds"),
        ("os.close(0); time.sleep(60)", "ended|within 1 seconds|does not read"),
        ("while True: sys.stdout.write('x' * 65536)", "bytes[,;] the limit"),
        ("while True: say(method='notifications/message', params={'x': 'y' * 10000})", "bytes[,;] the limit"),
        ("while True: sys.stderr.write('x' * 65536)", "bytes[,;] the limit|within 1 seconds"),
        ("while True: say(id=1, method='ping', params={})", "does not read|bytes[,;] the limit|within 1"),
        ("answer(lambda r: dict(error={'code': -32603, 'message': 'broken \\x1b[31m'}))", "broken"),
        ("answer(lambda r: dict(result=[1]))", "no result"),
        ("answer(lambda r: dict(result={'tools': [], 'nextCursor': 'again'}))", "does not end"),
        ("answer(lambda r: dict(result={'tools': [], 'nextCursor': str(r['id'])}))", "does not end"),
        ("answer(lambda r: dict(result={'tools': [], 'nextCursor': 'x' * 20000}))", "does not end"),
        ("sys.stdout.write('[' * 100000 + '\\n'); sys.stdout.flush(); sys.exit(1)", "run its command by hand"),
    ],
)  # fmt: skip
def test_failing_server_ends_in_one_clear_sentence(script, said):
    with pytest.raises(ServerFailed, match=said) as raised:
        listed(script, timeout_s=1 if "1 sec" in said or "within 1" in said else 20)
    assert "\x1b" not in str(raised.value)


def test_last_words_of_a_server_that_ended_early_are_reported(monkeypatch):
    start = anyio.open_process

    async def start_and_wait(*arguments, **options) -> Process:
        process = await start(*arguments, **options)
        while process.returncode is None:
            await anyio.sleep(0.01)
        return process

    monkeypatch.setattr(anyio, "open_process", start_and_wait)
    with pytest.raises(ServerFailed, match="standard error: no key given"):
        listed("sys.exit('no key given')")


def test_missing_command_is_reported():
    with pytest.raises(ServerFailed, match=r"cannot be started: .*; check the command"):
        list_by_command(["/no/such/server"], timeout_s=1)


def alive(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.strip().startswith("Z")


def test_process_group_that_ignores_sigterm_is_killed(tmp_path):
    note = tmp_path / "pids"
    script = f"""
        import signal, subprocess
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
        open({str(note)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
        say(id=next(requests)["id"], result=[])
        time.sleep(300)
    """
    with pytest.raises(ServerFailed, match="no result"):
        listed(script)
    pids = [int(pid) for pid in note.read_text().split()]
    assert len(pids) == 2
    wait_until(lambda: not any(map(alive, pids)))
    assert os.getpid() not in pids


@pytest.mark.parametrize("handler", ["default_int_handler", "SIG_IGN"])  # as in a background process of a shell
def test_server_ends_when_the_import_is_terminated(tmp_path, handler):
    note = tmp_path / "pid"
    server = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    command = [sys.executable, "-c", server]
    lists = f"list_by_command({command!r}, timeout_s=60, grace_s=0.1)"
    prepares = f"import signal; signal.signal(signal.SIGINT, signal.{handler})"
    asks = f"{prepares}; from mats.local.imports.mcp_servers import list_by_command; {lists}"
    process = subprocess.Popen([sys.executable, "-c", asks], stderr=subprocess.DEVNULL)
    wait_until(lambda: note.exists() and bool(note.read_text()))
    process.terminate()
    assert process.wait(20)
    wait_until(lambda: not alive(int(note.read_text())))


REFUSAL = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "go away"}}


@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        ("401 Unauthorized\r\nContent-Length: 0", b"", "requires authentication"),
        ("200 OK\r\nContent-Type: application/json", b"not json", "is not a JSON-RPC response"),
        ("405 Method Not Allowed\r\nContent-Length: 0", b"", "status 405"),
        ("200 OK\r\nContent-Type: text/event-stream", b'data: {"id": 7}\n\n', "is not a JSON-RPC response"),
        ("400 Bad\r\nContent-Type: application/json", json.dumps(REFUSAL).encode(), "status 400.*go away|go away.*400"),
    ],
)
def test_failing_http_server_is_reported(head, body, said):
    with answering(response(head, body)) as url, pytest.raises(ServerFailed, match=said):
        list_by_address(url, timeout_s=10)
