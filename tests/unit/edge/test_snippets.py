"""Texts that call a capability: what they say, and that whatever an owner writes stays one value in them."""

import ast
import json
import re
import shlex
import subprocess
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mats.domain.capability.capability import Kind
from mats.domain.profile.profile import Profile
from mats.domain.protocols.catalogue import to_text
from mats.domain.protocols.mcp_server import McpRemote, McpStdio
from mats.domain.protocols.openapi import HttpCall, Parameter
from mats.domain.text.fence import find_hidden
from mats.edge.http import Request
from mats.edge.routes import respond
from mats.edge.snippets.capability import WAYS_TO_CALL, Snippets
from mats.edge.snippets.http_request import example_of
from tests.builders import a_profile
from tests.world import an_application

ASKED = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CLAIM = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "dry": {"type": "boolean"},
        "note": {"type": "string"},
        "X-Trace": {"type": "string"},
        "body": {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
    },
    "required": ["id", "dry", "X-Trace", "body"],
}
PLACES = [
    {"name": "id", "in": "path"},
    *({"name": n, "in": "query"} for n in ("dry", "note")),
    {"name": "X-Trace", "in": "header"},
]
BEARER = {"security": [{"t": []}], "securitySchemes": {"t": {"type": "http", "scheme": "bearer"}}}


def an_operation(media_type: str = "application/json", **descriptor: Any) -> Profile:
    written = {"method": "post", "parameters": PLACES, "requestMediaTypes": [media_type], **descriptor}
    return a_profile(endpoint="https://api.example.com/claims/{id}", input_schema=CLAIM, descriptor=written)


def a_server(**server: Any) -> Profile:
    return a_profile(namespace="io.example.weather", name="forecast", descriptor={"server": server}, input_schema=ASKED)


def words(command: str) -> list[str]:
    """The arguments of a command, its variables as they are written."""
    return shlex.split(command.replace("\\\n", ""))


def called(program: str, name: str) -> dict[str, Any]:
    """The arguments of the call of a name in a program; those that are no literals as they are written."""
    calls = (node for node in ast.walk(ast.parse(program)) if isinstance(node, ast.Call))
    call = next(node for node in calls if ast.unparse(node.func) == name)
    arguments = {str(place): value for place, value in enumerate(call.args)} | {k.arg: k.value for k in call.keywords}
    return {place: value_of(value) for place, value in arguments.items()}


def value_of(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def test_a_server_over_stdio():
    found = Snippets.of(a_server(command="npx", args=["-y", "@scope/weather", "--key=1"], env={"TOKEN": "secret"}))
    entry = {"command": "npx", "args": ["-y", "@scope/weather", "--key={key}"], "env": {"TOKEN": ""}}
    assert json.loads(found.mcp) == {"mcpServers": {"weather": entry}}
    assert called(found.python, "StdioServerParameters") == entry
    assert called(found.python, "client.call_tool") == {"0": "forecast", "1": {"city": ""}}
    assert found.curl == ""
    assert found.facts == {
        "protocol": "MCP over stdio",
        "runs": "npx @scope/weather",
        "command": "npx -y @scope/weather '--key={key}'",
        "tool": "forecast",
        "variables to set": "TOKEN",
        "to fill in": "{key}",
    }


EXPANSIONS = (
    "${HOME}", "$HOME", "$${A}", "${A:-${B}}", "${env:A}", "${file:/etc/passwd}", "$env:A", "$(id)", "`id`",
    "%APPDATA%", "%ProgramFiles(x86)%", "$${", "$gh" + "p_" + "a1" * 10, "${A${B}}", "%${A}%", "%%A%%",
)  # fmt: skip


@pytest.mark.parametrize("expansion", EXPANSIONS)
def test_nothing_that_a_client_expands_is_of_the_owners_choice(expansion):
    local = a_server(
        command=f"{expansion}/x", args=[expansion, f"--a={expansion}", f"-b {expansion}$", f"k: {expansion}"]
    )
    address = a_server(url=f"https://h/{expansion}/mcp?x={expansion}", headers={f"X-{expansion}": "", "X-Ok": ""})
    for profile in (local, address):
        found = Snippets.of(profile)
        for text in (profile.invocation, found.mcp, found.facts.get("command", "")):
            assert not re.search(r"[$%]\{|\$[\w(]|%[A-Za-z]\w*%|`", text), text


@pytest.mark.parametrize(("line", "runs"), [
    ("npx -y @acme/pkg --flag x", "npx @acme/pkg"), ("npx --package=evil good", "npx evil"),
    ("npx -p evil good", "npx evil"), ("uvx --from git+https://h/x tool", "uvx git+https://h/x"),
    ("uv tool run pkg", "uv pkg"), ("docker run -i --rm -e A -v /a:/b -p 80:80 acme/img:1 x", "docker acme/img:1"),
    ("pnpm dlx pkg", "pnpm pkg"), ("/opt/server --port 1", "/opt/server"), ("sh -c id", "sh"),
])  # fmt: skip
def test_the_program_and_its_package_are_named(line, runs):
    command, *args = line.split()
    assert Snippets.of(a_server(command=command, args=args)).facts["runs"] == runs


def test_a_server_at_an_address():
    headers = {"Authorization": "Bearer secret", "X-Api-Key": "secret", "X-Region": "eu"}
    found = Snippets.of(a_server(url="https://mcp.example.com/mcp", headers=headers))
    assert json.loads(found.mcp)["mcpServers"]["weather"] == {
        "type": "http",
        "url": "https://mcp.example.com/mcp",
        "headers": {"X-Region": "", "Authorization": "Bearer {token}", "X-Api-Key": ""},
    }
    assert "'Authorization': 'Bearer ' + os.environ['API_TOKEN']" in ast.unparse(ast.parse(found.python))
    assert found.facts["authentication"] == "bearer and apiKey X-Api-Key (header)"
    assert found.curl == ""


def test_a_server_that_speaks_sse_and_needs_nothing():
    found = Snippets.of(a_server(url="https://mcp.example.com/sse"))
    assert json.loads(found.mcp)["mcpServers"]["weather"] == {"type": "sse", "url": "https://mcp.example.com/sse"}
    assert "Client(sse_client(url))" in found.python


def test_a_server_without_a_tool_lists_its_tools():
    found = Snippets.of(a_profile(name="pay", kind="agent", descriptor={"server": {"command": "pay"}}))
    assert "client.list_tools()" in found.python
    assert list(json.loads(found.mcp)["mcpServers"]) == ["pay"]


def test_an_operation_of_an_http_api():
    found = Snippets.of(an_operation(**BEARER))
    assert words(found.curl) == [
        "curl", "--globoff", "-X", "POST", "https://api.example.com/claims/{id}?dry={dry}",
        "-H", "Authorization: Bearer $API_TOKEN", "-H", "X-Trace: {X-Trace}",
        "-H", "Content-Type: application/json", "--data-raw", '{"reason": ""}',
    ]  # fmt: skip
    assert called(found.python, "httpx.request") == {
        "0": "POST",
        "1": "https://api.example.com/claims/{id}",
        "params": {"dry": "{dry}"},
        "headers": "{'X-Trace': '{X-Trace}', 'Authorization': 'Bearer ' + os.environ['API_TOKEN']}",
        "json": {"reason": ""},
    }
    assert (found.facts["method"], found.facts["endpoint"]) == ("POST", "https://api.example.com/claims/{id}")
    assert found.mcp == ""


@pytest.mark.parametrize(("media_type", "sent", "argument"), [
    ("application/merge-patch+json", "--data-raw", "json"),
    ("application/x-www-form-urlencoded", "--data-urlencode", "data"),
    ("multipart/form-data", "--form-string", "files"), ("text/plain", "--data-raw", "content"),
])  # fmt: skip
def test_the_body_is_written_by_its_media_type(media_type, sent, argument):
    found = Snippets.of(an_operation(media_type))
    assert words(found.curl)[-2] == sent
    assert words(found.curl)[-1] == {"json": '{"reason": ""}', "content": "{body}"}.get(argument, "reason=")
    assert argument in called(found.python, "httpx.request")


@pytest.mark.parametrize(("kind", "sent"), [
    ({"type": "string", "format": "binary"}, ["--form", "photo=@{photo}"]),
    ({"type": "string", "contentMediaType": "image/png"}, ["--form", "photo=@{photo}"]),
    ({"type": "string", "contentMediaType": "image/png", "contentEncoding": "base64"}, ["--form-string", "photo="]),
    ({"type": "string"}, ["--form-string", "photo="]),
])  # fmt: skip
def test_a_field_of_a_form_that_is_a_file_is_read_from_one(kind, sent):
    body = {"type": "object", "properties": {"photo": kind}, "required": ["photo"]}
    schema = {"type": "object", "properties": {"body": body}, "required": ["body"]}
    descriptor = {"method": "post", "requestMediaTypes": ["multipart/form-data"]}
    found = Snippets.of(a_profile(endpoint="https://api.example.com/p", input_schema=schema, descriptor=descriptor))
    assert words(found.curl)[-2:] == sent


@pytest.mark.parametrize(("schemes", "in_curl", "in_python"), [
    ({"type": "apiKey", "in": "header", "name": "X-Key"}, '-H "X-Key: $API_KEY"', "'X-Key': os.environ['API_KEY']"),
    ({"type": "apiKey", "in": "query", "name": "key"}, '&key=\'"$API_KEY"', "'key': os.environ['API_KEY']"),
    ({"type": "apiKey", "in": "cookie", "name": "sid"}, '-b "sid=$API_KEY"', "'sid': os.environ['API_KEY']"),
    ({"type": "http", "scheme": "basic"}, '-u "$API_USER:$API_PASSWORD"', "auth=(os.environ['API_USER'], "),
    ({"type": "oauth2"}, '-H "Authorization: Bearer $API_TOKEN"', "os.environ['API_TOKEN']"),
])  # fmt: skip
def test_credentials_are_variables_with_names_of_ours(schemes, in_curl, in_python):
    found = Snippets.of(an_operation(security=[{"s": []}], securitySchemes={"s": schemes}))
    assert in_curl in found.curl
    assert in_python in ast.unparse(ast.parse(found.python))


def test_methods_without_a_body():
    plain = {"method": "get", "parameters": [], "requestMediaTypes": []}
    found = Snippets.of(a_profile(endpoint="https://api.example.com/x", descriptor=plain))
    assert words(found.curl) == ["curl", "https://api.example.com/x"]
    found = Snippets.of(a_profile(endpoint="https://api.example.com/x", descriptor={**plain, "method": "head"}))
    assert words(found.curl) == ["curl", "--head", "https://api.example.com/x"]


@pytest.mark.parametrize(
    ("version", "method", "headers"), [("0.3.0", "message/send", []), ("1.0", "SendMessage", ["A2A-Version: 1.0"])]
)
def test_an_agent_of_a2a(version, method, headers):
    card = {"protocolVersion": version, "preferredTransport": "JSONRPC", "url": "https://agent.example.com/a2a"}
    found = Snippets.of(a_profile(kind="agent", endpoint=card["url"], descriptor=card))
    *before, body = words(found.curl)
    assert before[:4] == ["curl", "-X", "POST", card["url"]]
    assert [word for word in before if word.startswith("A2A")] == headers
    assert (json.loads(body)["jsonrpc"], json.loads(body)["method"]) == ("2.0", method)
    assert called(found.python, "httpx.request")["json"] == json.loads(body)


def test_an_agent_over_another_transport_has_no_snippet():
    card = {"protocolVersion": "0.3.0", "preferredTransport": "GRPC", "url": "https://agent.example.com/a2a"}
    found = Snippets.of(a_profile(kind="agent", endpoint=card["url"], descriptor=card))
    assert (found.curl, found.python) == ("", "")
    assert found.facts["protocol"] == "A2A 0.3.0 over GRPC"


def test_a_model_of_bedrock():
    found = Snippets.of(
        a_profile(
            kind="model", name="amazon.nova-lite-v1:0", endpoint="https://bedrock-runtime.eu-west-1.amazonaws.com"
        )
    )
    assert called(found.python, "bedrock.converse")["modelId"] == "amazon.nova-lite-v1:0"
    assert called(found.python, "boto3.client") == {"0": "bedrock-runtime", "region_name": "eu-west-1"}
    assert (found.mcp, found.curl, found.converse) == ("", "", "")


def test_a_tool_of_converse_is_that_of_the_format():
    spec = json.loads(Snippets.of(an_operation()).converse)["toolSpec"]
    assert spec["name"] == "com_acme_pay__refund_payment"
    assert spec["inputSchema"]["json"]["required"] == CLAIM["required"]
    suspicious = an_operation().model_copy(update={"suspicious": ("odd",)})
    assert Snippets.of(suspicious).converse == ""


@pytest.mark.parametrize("kind", Kind)
def test_without_an_invocation_only_what_is_missing(kind):
    found = Snippets.of(a_profile(kind=kind))
    assert found == Snippets(facts={}, missing=WAYS_TO_CALL[kind])


@pytest.mark.parametrize(("schema", "example"), [
    ({"type": "integer"}, 0), ({"type": ["null", "boolean"]}, False),
    ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a"]), ({"default": 3}, 3),
    ({"const": "x" * 300, "type": "string"}, ""), ({"$ref": "#/$defs/a"}, {"deep": ""}),
    ({"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}, {"deep": ""}),
    ({"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": {"type": "number"}}}]}, {"b": 0, "deep": ""}),
    ({"properties": {"a": {}, "b": {}}, "required": ["b", "c"]}, {"b": ""}), (True, ""),
    ({"type": 3, "properties": [], "required": {}, "items": 1}, {}),
])  # fmt: skip
def test_example_of_a_schema(schema, example):
    assert (
        example_of(schema, {"$defs": {"a": {"type": "object", "properties": {"deep": {"type": "string"}}}}}) == example
    )


def test_example_of_a_circular_schema_ends():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    assert json.dumps(example_of(node, {"$defs": {"node": node}})).count("next") < 10


APPLICATION = an_application(an_operation())


def get(*snippets: str) -> tuple[int, Any]:
    path = "/capabilities/com.acme.pay/refund_payment"
    response = respond(APPLICATION, Request(method="GET", path=path, query={"snippets": snippets} if snippets else {}))
    return response.status, json.loads(response.body)


def test_snippets_are_in_the_answer_if_asked_for():
    status, plain = get()
    assert (status, "snippets" in plain) == (200, False)
    assert get("false") == (status, plain)
    status, answer = get("true")
    assert answer.pop("snippets") == Snippets.of(an_operation()).model_dump()
    assert (status, answer) == (200, plain)


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
