"""Whatever an owner writes stays one value in the texts that call a capability."""

import ast
import json
import subprocess
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mats.domain.protocols.catalogue import to_text
from mats.domain.protocols.mcp_server import McpRemote, McpStdio
from mats.domain.protocols.openapi import HttpCall, Parameter
from mats.domain.text.fence import find_hidden
from mats.edge.snippets.capability import Snippets
from tests.builders import a_profile
from tests.unit.edge.test_snippets import called, value_of, words

HOSTILE = [
    "'; touch /tmp/owned; '", '"; touch /tmp/owned; "', "$(touch /tmp/owned)", "`touch /tmp/owned`",
    "a\nb\rc\x00d\x1b[2J",
    "\\", "\\'", '\\"', "'''", '"""', "\u202e\u200b\U000e0041\u3164\u2028", "@/etc/passwd", "</script>", "-o/tmp/owned",
    "{a,b}[1-9]", "!history", "${HOME}", "%s%n", "#", "*", "~root", "é中👩‍👧",
]  # fmt: skip
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=20) | st.lists(st.sampled_from(HOSTILE), max_size=3).map("".join)


def a_call(invocation: Any, schema: dict[str, Any] | None = None) -> Snippets:
    update = {"invocation": to_text(invocation), "input_schema": json.dumps(schema) if schema else ""}
    return Snippets.of(a_profile().model_copy(update=update))


def assert_visible(found: Snippets) -> None:
    for text in (found.mcp, found.curl, found.python, found.converse):
        assert find_hidden(text, allow_shaping=True) == []
        assert [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Zl", "Zp")] == []


def run_by_shell(command: str) -> list[str]:
    """The arguments that a real shell passes to `curl`, with variables that name themselves."""
    variables = {name: f"<{name}>" for name in ("API_TOKEN", "API_KEY", "API_USER", "API_PASSWORD")}
    script = f'set -f\ncurl() {{ printf "%s\\0" "$@"; }}\n{command}\n'
    ran = subprocess.run(["/bin/sh"], input=script.encode(), env=variables, capture_output=True, check=True)
    assert ran.stderr == b""
    return ran.stdout.decode().split("\0")[:-1]


@given(TEXTS, st.lists(TEXTS, max_size=3), st.lists(TEXTS, max_size=2, unique=True), TEXTS)
def test_hostile_commands_stay_values(command, args, env, tool):
    found = a_call(McpStdio(command=f"x{command}", args=tuple(args), env=tuple(env), tool=tool))
    entry = {"command": f"x{command}", "args": args, **({"env": dict.fromkeys(env, "")} if env else {})}
    assert list(json.loads(found.mcp)["mcpServers"].values()) == [entry]
    assert {"args": [], **called(found.python, "StdioServerParameters")} == entry
    assert names_of(found.python) <= {"asyncio", "Client", "StdioServerParameters", "server", "client", "print", "main"}
    if tool:
        assert called(found.python, "client.call_tool")["0"] == tool
    assert_visible(found)


@given(TEXTS, st.lists(TEXTS, max_size=2, unique=True))
def test_hostile_addresses_stay_values(address, headers):
    found = a_call(McpRemote(transport="streamable-http", url=f"https://x.example/{address}", headers=tuple(headers)))
    [server] = json.loads(found.mcp)["mcpServers"].values()
    assert server["url"] == f"https://x.example/{address}"
    assigned = {n.targets[0].id: value_of(n.value) for n in ast.parse(found.python).body if isinstance(n, ast.Assign)}
    assert assigned["url"] == server["url"]
    assert list(assigned.get("headers", {})) == headers
    assert_visible(found)


@settings(max_examples=60)
@given(
    TEXTS,
    TEXTS,
    TEXTS,
    st.sampled_from(["application/json", "application/x-www-form-urlencoded", "multipart/form-data"]),
)
def test_hostile_operations_stay_arguments(path, name, value, media_type):
    body = {"type": "object", "properties": {name: {"const": value}}}
    parameter = Parameter(name=name or "n", in_="query")
    schema = {"type": "object", "properties": {"body": body}, "required": [parameter.name]}
    call = HttpCall(method="POST", url=f"https://x.example/{path}", parameters=(parameter,), body=media_type)
    found = a_call(call, schema)
    assert_visible(found)
    before, _, last = found.curl.rpartition("\n")
    assert before.count("\n") == before.count(" \\\n")
    arguments = run_by_shell(found.curl)
    assert ["curl", *arguments] == words(found.curl)
    assert [argument for argument in arguments if argument.startswith("-")] == [
        *(["--globoff"] if "--globoff" in arguments else []), "-X",
        *(["-H", "--data-raw"] if "json" in media_type else [words(last)[0]]),
    ]  # fmt: skip
    assert not any(argument.startswith(("@", "<")) for argument in arguments)
    sent = called(found.python, "httpx.request")
    assert sent["1"] == f"https://x.example/{path}".partition("?")[0]
    assert names_of(found.python) <= {"httpx", "response", "print"}
    if "json" in media_type:
        assert sent["json"] == json.loads(arguments[-1]) == {name: value}


@pytest.mark.parametrize("name", ["X\r\nHost: evil", "a b", "", "é"])
def test_a_header_that_cannot_be_sent_makes_no_snippet(name):
    call = HttpCall(method="GET", url="https://x.example/", parameters=(Parameter(name=name, in_="header"),))
    found = a_call(call, {"type": "object", "properties": {}, "required": [name]})
    assert (found.curl, found.python) == ("", "")


def names_of(program: str) -> set[str]:
    """All names that a program reads or writes."""
    return {node.id for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Name)}
