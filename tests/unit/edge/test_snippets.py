"""Texts that call a capability: what they say, and that whatever an owner writes stays one value in them."""

import ast
import json
import shlex
import subprocess
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mats.domain.capability.capability import Kind
from mats.domain.capability.json_schema import example_of
from mats.domain.profile.profile import Profile
from mats.domain.protocols.catalogue import to_text
from mats.domain.protocols.mcp_server import McpStdio
from mats.domain.protocols.openapi import HttpCall, Parameter
from mats.domain.text.fence import find_hidden
from mats.edge.http import Request
from mats.edge.routes import respond
from mats.edge.snippets import WAYS_TO_CALL, Snippets
from tests.builders import a_profile
from tests.world import an_application

CLAIM = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("id", "dry", "note", "X-Trace")},
        "body": {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]},
    },
    "required": ["id", "dry", "X-Trace", "body"],
}
PLACES = [
    {"name": n, "in": at} for n, at in (("id", "path"), ("dry", "query"), ("note", "query"), ("X-Trace", "header"))
]
BEARER = {"security": [{"t": []}], "securitySchemes": {"t": {"type": "http", "scheme": "bearer"}}}


def an_operation(media_type: str = "application/json", **descriptor: Any) -> Profile:
    written = {"method": "post", "parameters": PLACES, "requestMediaTypes": [media_type], **descriptor}
    return a_profile(endpoint="https://api.example.com/claims/{id}", input_schema=CLAIM, descriptor=written)


def a_server(**server: Any) -> Profile:
    return a_profile(namespace="io.example.weather", name="forecast", descriptor={"server": server})


def words(command: str) -> list[str]:
    """The arguments of a command, its variables as they are written."""
    return shlex.split(command.replace("\\\n", ""))


def called(program: str) -> tuple[list[Any], dict[str, str]]:
    """The positional arguments of the call in a program, as values, and its options as they are written."""
    tree = ast.parse(program)
    assert {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} <= {"call", "called", "print"}
    (call,) = (node.value for node in tree.body if isinstance(node, ast.Assign))
    return list(map(ast.literal_eval, call.args)), {k.arg: ast.unparse(k.value) for k in call.keywords}


def test_a_server_over_stdio():
    profile = a_server(command="npx", args=["-y", "@scope/weather", "--key=1"], env={"TOKEN": "secret"})
    found = Snippets.of(profile)
    entry = {"command": "npx", "args": ["-y", "@scope/weather", "--key={key}"], "env": {"TOKEN": ""}}
    assert json.loads(found.mcp) == {"mcpServers": {"weather": entry}}
    assert called(found.python) == (
        [json.loads(profile.invocation), {}],
        {"may_run": "lambda command: True", "values": "{'key': ''}"},
    )
    assert found.curl == ""
    assert found.facts == {
        "protocol": "MCP over stdio",
        "command": "npx -y @scope/weather '--key={key}'",
        "tool": "forecast",
        "variables to set": "TOKEN",
        "to fill in": "{key}",
    }


def test_a_server_at_an_address():
    headers = {"Authorization": "Bearer secret", "X-Api-Key": "secret", "X-Region": "eu"}
    found = Snippets.of(a_server(url="https://mcp.example.com/mcp", headers=headers))
    assert json.loads(found.mcp)["mcpServers"]["weather"] == {
        "type": "http",
        "url": "https://mcp.example.com/mcp",
        "headers": {"X-Region": "", "Authorization": "Bearer {token}", "X-Api-Key": ""},
    }
    assert called(found.python)[1] == {"values": "{'X-Region': ''}"}
    assert found.facts["authentication"] == "bearer and apiKey X-Api-Key (header)"
    sse = Snippets.of(a_server(url="https://mcp.example.com/sse"))
    assert json.loads(sse.mcp)["mcpServers"]["weather"] == {"type": "sse", "url": "https://mcp.example.com/sse"}
    assert (sse.curl, sse.python) == ("", "")


def test_an_operation_of_an_http_api():
    profile = an_operation(**BEARER)
    found = Snippets.of(profile)
    assert words(found.curl) == [
        "curl", "--globoff", "-X", "POST", "https://api.example.com/claims/{id}?dry={dry}",
        "-H", "Authorization: Bearer $API_TOKEN_API_EXAMPLE_COM", "-H", "X-Trace: {X-Trace}",
        "-H", "Content-Type: application/json", "--data-raw", '{"reason": ""}',
    ]  # fmt: skip
    arguments = {"id": "", "dry": "", "X-Trace": "", "body": {"reason": ""}}
    assert called(found.python) == ([json.loads(profile.invocation), arguments], {})
    assert found.mcp == ""
    plain = {"parameters": [], "requestMediaTypes": []}
    for method, option in (("get", []), ("head", ["--head"])):
        found = Snippets.of(a_profile(endpoint="https://api.example.com/x", descriptor={**plain, "method": method}))
        assert words(found.curl) == ["curl", *option, "https://api.example.com/x"]


@pytest.mark.parametrize(("media_type", "sent"), [
    ("application/merge-patch+json", ["--data-raw", '{"reason": ""}']), ("text/plain", ["--data-raw", "{body}"]),
    ("application/x-www-form-urlencoded", ["--data-urlencode", "reason="]),
    ("multipart/form-data", ["--form-string", "reason="]),
])  # fmt: skip
def test_the_body_is_written_by_its_media_type(media_type, sent):
    assert words(Snippets.of(an_operation(media_type)).curl)[-2:] == sent


def test_a_file_is_uploaded_and_optional_parameters_are_left_out():
    photo, file = {"type": "string", "format": "binary"}, {"filename": "FILE", "content": ""}
    more = {"type": "array", "items": photo}
    form = {"type": "object", "properties": {"photo": photo, "title": {}, "more": more}}
    parameter = Parameter(name="status", in_="query")
    call = HttpCall(method="POST", url="https://x.example/a", parameters=(parameter,), body="multipart/form-data")
    found = a_call(call, {"properties": {"status": {"type": "string"}, "body": form}})
    assert words(found.curl)[-6:] == ["-F", "photo=@FILE", "--form-string", "title=", "-F", "more=@FILE"]
    assert called(found.python)[0][1] == {"body": {"photo": file, "title": "", "more": [file]}}
    for media_type, last in (("application/x-www-form-urlencoded", "more=[]"), ("application/json", '"photo": ""')):
        sent = a_call(call.model_copy(update={"body": media_type}), {"properties": {"body": form}})
        assert last in words(sent.curl)[-1]
    whole = call.model_copy(update={"body": "image/png"})
    found = a_call(whole, {"properties": {"body": form["properties"]["photo"]}})
    assert words(found.curl)[-3:] == ["Content-Type: image/png", "--data-binary", "@FILE"]


@pytest.mark.parametrize(("scheme", "in_curl"), [
    ({"type": "apiKey", "in": "header", "name": "X-Key"}, '-H "X-Key: $API_KEY_API_EXAMPLE_COM"'),
    ({"type": "apiKey", "in": "query", "name": "key"}, '&key=\'"$API_KEY_API_EXAMPLE_COM"'),
    ({"type": "apiKey", "in": "cookie", "name": "sid"}, '-b "sid=$API_KEY_API_EXAMPLE_COM"'),
    ({"type": "http", "scheme": "basic"}, '-u "$API_USER_API_EXAMPLE_COM:$API_PASSWORD_API_EXAMPLE_COM"'),
    ({"type": "oauth2"}, '-H "Authorization: Bearer $API_TOKEN_API_EXAMPLE_COM"'),
])  # fmt: skip
def test_credentials_are_variables_named_after_the_host(scheme, in_curl):
    assert in_curl in Snippets.of(an_operation(security=[{"s": []}], securitySchemes={"s": scheme})).curl


@pytest.mark.parametrize(("version", "method"), [("0.3.0", "message/send"), ("1.0", "SendMessage")])
def test_an_agent_of_a2a(version, method):
    card = {"protocolVersion": version, "preferredTransport": "JSONRPC", "url": "https://agent.example.com/a2a"}
    found = Snippets.of(a_profile(kind="agent", endpoint=card["url"], descriptor=card))
    *before, body = words(found.curl)
    assert before[:4] == ["curl", "-X", "POST", card["url"]]
    assert [word for word in before if word.startswith("A2A")] == ["A2A-Version: 1.0"] * (version == "1.0")
    assert (json.loads(body)["jsonrpc"], json.loads(body)["method"]) == ("2.0", method)
    assert called(found.python)[0][1] == {"message": "Hello"}
    other = {**card, "preferredTransport": "GRPC"}
    found = Snippets.of(a_profile(kind="agent", endpoint=card["url"], descriptor=other))
    assert (found.curl, found.python) == ("", "")


@pytest.mark.parametrize("kind", Kind)
def test_without_an_invocation_only_what_is_missing(kind):
    assert Snippets.of(a_profile(kind=kind)) == Snippets(facts={}, missing=WAYS_TO_CALL[kind])


@pytest.mark.parametrize(("schema", "example"), [
    ({"type": "integer"}, 0), ({"type": ["null", "boolean"]}, False), ({"enum": ["a", "b"]}, "a"), ({"default": 3}, 3),
    ({"const": "x" * 300, "type": "string"}, ""), ({"$ref": "#/$defs/a"}, {"deep": ""}), (True, ""),
    ({"properties": {"a": {}, "b": {}}, "required": ["b", "c"]}, {"b": ""}),
    ({"type": 3, "properties": {}, "required": {}, "items": 1}, {}),
    ({"$ref": "#/$defs/node"}, {"next": {"next": {"next": {"next": {"next": ""}}}}}),
])  # fmt: skip
def test_example_of_a_schema(schema, example):
    a = {"type": "object", "properties": {"deep": {"type": "string"}}}
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    assert example_of(schema, {"$defs": {"a": a, "node": node}}) == example


def test_snippets_are_in_the_answer_if_asked_for():
    application, path = an_application(an_operation()), "/capabilities/com.acme.pay/refund_payment"
    asked = (Request(method="GET", path=path, query=query) for query in ({}, {"snippets": ["true"]}))
    plain, answer = (json.loads(respond(application, request).body) for request in asked)
    assert answer.pop("snippets") == Snippets.of(an_operation()).model_dump()
    assert answer == plain


HOSTILE = [
    "'; touch /tmp/owned; '", '"; touch /tmp/owned; "', "$(touch /tmp/owned)", "`touch /tmp/owned`",
    "a\nb\rc\x00d\x1b[2J", "\\", "\\'", '\\"', "'''", '"""', "\u202e\u200b\U000e0041\u3164\u2028", "@/etc/passwd",
    "</script>", "-o/tmp/owned", "{a,b}[1-9]", "!history", "${HOME}", "%s%n", "#", "*", "~root", "é中👩‍👧",
]  # fmt: skip
TEXTS = st.sampled_from(HOSTILE) | st.text(max_size=20) | st.lists(st.sampled_from(HOSTILE), max_size=3).map("".join)


def a_call(invocation: Any, schema: dict[str, Any] | None = None) -> Snippets:
    """The snippets of an invocation, in which nothing is hidden."""
    update = {"invocation": to_text(invocation), "input_schema": json.dumps(schema) if schema else ""}
    found = Snippets.of(a_profile().model_copy(update=update))
    for text in (found.mcp, found.curl, found.python):
        assert find_hidden(text, allow_shaping=True) == []
        assert [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Zl", "Zp")] == []
    return found


@given(TEXTS, st.lists(TEXTS, max_size=3), st.lists(TEXTS, max_size=2, unique=True), TEXTS)
def test_hostile_commands_stay_values(command, args, env, tool):
    server = McpStdio(command=f"x{command}", args=tuple(args), env=tuple(env), tool=tool)
    found = a_call(server)
    entry = {"command": f"x{command}", "args": args, **({"env": dict.fromkeys(env, "")} if env else {})}
    assert list(json.loads(found.mcp)["mcpServers"].values()) == [
        {k: v for k, v in entry.items() if v != []} | {"args": args}
    ]
    assert called(found.python)[0][0] == server.model_dump(mode="json")


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
    properties = {parameter.name: {}, "body": body}
    schema = {"type": "object", "properties": properties, "required": [parameter.name]}
    call = HttpCall(method="POST", url=f"https://x.example/{path}", parameters=(parameter,), body=media_type)
    found = a_call(call, schema)
    before, _, last = found.curl.rpartition("\n")
    assert before.count("\n") == before.count(" \\\n")
    script = f'set -f\ncurl() {{ printf "%s\\0" "$@"; }}\n{found.curl}\n'
    ran = subprocess.run(["/bin/sh"], input=script.encode(), env={}, capture_output=True, check=True)
    assert ran.stderr == b""
    arguments = ran.stdout.decode().split("\0")[:-1]
    assert ["curl", *arguments] == words(found.curl)
    assert [argument for argument in arguments[:-1] if argument.startswith("-")] == [
        *(["--globoff"] if "--globoff" in arguments else []), "-X",
        *(["-H", "--data-raw"] if "json" in media_type else [words(last)[0]]),
    ]  # fmt: skip
    assert not any(argument.startswith(("@", "<")) for argument in arguments)
    assert called(found.python)[0][0]["url"] == f"https://x.example/{path}"
    if "json" in media_type:
        assert json.loads(arguments[-1]) == {name: value}


@pytest.mark.parametrize("name", ["X\r\nHost: evil", "a b", "", "é"])
def test_a_header_that_cannot_be_sent_makes_no_command(name):
    call = HttpCall(method="GET", url="https://x.example/", parameters=(Parameter(name=name, in_="header"),))
    assert a_call(call, {"type": "object", "properties": {name: {}}, "required": [name]}).curl == ""
