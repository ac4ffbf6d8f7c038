"""Calls of what hostile owners registered: nothing leaves its place, its host, or the limits."""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from mats.client import Called, Caller, call
from mats.client.calls import check_names
from mats.client.requests import variable_of
from mats.domain.errors import CapabilityError, DependencyFailed, NotPossible, RequestInvalid
from mats.domain.protocols.addresses import Unfetchable
from mats.domain.protocols.mcp_server import McpRemote, published_server, server_of
from tests.servers.raw_http import answering, drip, response
from tests.servers.site import Asked, site


def http(url: str, *parameters: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"protocol": "http", "method": "GET", "url": url, "parameters": list(parameters), **more}


def shown(invocation: Mapping[str, Any], arguments: Mapping[str, Any], **options: Any) -> Mapping[str, Any]:
    return Caller(**{"environment": {}, **options}).prepare(invocation, arguments).shown


ID = {"name": "id", "in": "path"}
AT = "https://api.example.com/users/{id}/posts"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a/b", "a%2Fb"), ("?x=1#y", "%3Fx%3D1%23y"), ("{id}", "%7Bid%7D"), ("ä", "%C3%A4"), ("%2e", None),
        ("..", None), (".", None), ("../admin", None), ("..%2fadmin", None), ("a\\..\\b", None), ("", None),
        ([], None), (None, None),
        ([1, 2], "1,2"), ({"a": 1}, "a,1"), (["..", "x"], None), ("@evil.com", "%40evil.com"), (True, "true"),
    ],
)  # fmt: skip
def test_value_of_a_path_parameter_stays_in_its_segment(value, written):
    if written is None:
        with pytest.raises(RequestInvalid, match="id: "):
            shown(http(AT, ID), {"id": value})
    else:
        assert shown(http(AT, ID), {"id": value})["url"] == f"https://api.example.com/users/{written}/posts"


@pytest.mark.parametrize(
    ("parameter", "value", "written"),
    [
        ({"style": "label"}, [1, 2], "/x/.1,2"),
        ({"style": "label", "explode": True}, [1, 2], "/x/.1.2"),
        ({"style": "matrix"}, [1, 2], "/x/;id=1,2"),
        ({"style": "matrix", "explode": True}, {"a": 1, "b": 2}, "/x/;a=1;b=2"),
        ({"explode": True}, {"a": 1, "b": 2}, "/x/a=1,b=2"),
        ({"in": "query"}, {"a": 1, "b": "&"}, "/x/?a=1&b=%26"),
        ({"in": "query", "explode": False}, ["a,b", "c"], "/x/?id=a%2Cb,c"),
        ({"in": "query", "style": "spaceDelimited"}, ["a", "b"], "/x/?id=a%20b"),
        ({"in": "query", "content": "application/json"}, {"a": 1}, "/x/?id=%7B%22a%22%3A%201%7D"),
        ({"content": "application/json"}, {"a": 1}, "/x/%7B%22a%22%3A%201%7D"),
        ({"style": "pipeDelimited"}, ["a", "b"], "/x/a%7Cb"),
        ({"in": "query", "style": "spaceDelimited"}, {"R": 1, "G": 2}, "/x/?id=R%201%20G%202"),
        ({"in": "query", "style": "tabDelimited", "explode": False}, ["a", "b"], "/x/?id=a%09b"),
        ({"in": "query", "style": "deepObject"}, {"a": {"b": [1, 2]}}, "/x/?id[a][b][]=1&id[a][b][]=2"),
    ],
)
def test_styles_of_openapi(parameter, value, written):
    path = "{id}" if parameter.get("in", "path") == "path" else ""
    sent = shown(http(f"https://api.example.com/x/{path}", {**ID, **parameter}), {"id": value})
    assert sent["url"] == f"https://api.example.com{written}"


@pytest.mark.parametrize(
    ("parameter", "value", "written"),
    [
        ({"content": "text/plain"}, "hello", "hello"),
        ({"content": "application/json"}, "hello", '"hello"'),
        ({"style": "pipeDelimited"}, ["a", "b"], "a|b"),
    ],
)
def test_a_header_is_written_as_its_parameter_says(parameter, value, written):
    sent = shown(http("https://api.example.com/x", {"name": "X-A", "in": "header", **parameter}), {"X-A": value})
    assert sent["headers"]["x-a"] == written


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X-Trace", "a\r\nX-Evil: 1"), ("X-Trace", "ä"), ("X-Trace\r\nX-Evil", "1"), ("Host", "evil.com"),
        ("Cookie", "a=b"), ("authorization", "Bearer x"), ("Content-Length", "0"), ("Transfer-Encoding", "chunked"),
        ("X-Forwarded-For", "::1"),
    ],
)  # fmt: skip
def test_input_sets_no_header_but_the_one_it_is_for(name, value):
    with pytest.raises(RequestInvalid, match="header"):
        shown(http("https://api.example.com/x", {"name": name, "in": "header"}), {name: value})


@pytest.mark.parametrize(
    ("url", "more", "arguments", "said"),
    [
        ("https://{id}.example.com/x", {"parameters": [ID]}, {"id": "evil.com/"}, "part of the host"),
        ("https://api.example.com/x", {}, {"unknown": 1}, "is no input of this operation"),
        ("https://{tenant}.example.com/x", {"inputs": ["tenant"]}, {}, "tenant: needs a value"),
        ("https://user:pw@api.example.com/x", {}, {}, "user name or password"),
        ("file:///etc/passwd", {}, {}, "is not a valid address"),
        ("https://api.example.com/x", {"auth": [{"scheme": "mutualTLS"}]}, {}, "mutualTLS"),
        ("http://api.example.com/x", {"auth": [{"scheme": "bearer"}]}, {}, "over https only"),
    ],
)
def test_invocation_that_cannot_be_sent_is_refused(url, more, arguments, said):
    secrets = {"API_TOKEN_API_EXAMPLE_COM": "t", "API_TOKEN_API_EXAMPLE_COM___80": "t"}
    with pytest.raises(CapabilityError, match=said):
        call({**http(url), **more}, arguments, environment=secrets, private=True)


def test_filled_in_values_cannot_change_the_host():
    invocation = http("https://api.example.com/x?key={key}", inputs=["key"])
    assert shown(invocation, {}, values={"key": "a&b=/#"})["url"].endswith("?key=$key")
    evil = http("https://api.example.com/{place}/x", inputs=["place"])
    assert shown(evil, {}, values={"place": "a/b?c"})["url"] == "https://api.example.com/a%2Fb%3Fc/x"
    with pytest.raises(RequestInvalid, match=r"place: must not be"):
        shown(evil, {}, values={"place": ".."})


def test_different_hosts_have_different_variables():
    hosts = ["a.b.com", "a-b.com", "a--b.com", "ab.com", "a.b-com", "a.b.com:8443", "a.b.c-om", "a-b-com"]
    names = [variable_of("API_TOKEN", f"https://{host}/x") for host in hosts]
    assert len({*names}) == len(hosts)
    assert names[:2] == ["API_TOKEN_A_B_COM", "API_TOKEN_A__B_COM"]
    assert variable_of("API_TOKEN", "https://[::1]/x") == ""


BEARER = [{"scheme": "bearer"}]


def test_credentials_stay_with_their_host_and_redirects():
    seen: list[Asked] = []

    def elsewhere(asked: Asked) -> Any:
        seen.append(asked)
        return {"here": True}

    with site(elsewhere) as other:
        moved = {
            "/same": (302, {"Location": "/done"}),
            "/other": (302, {"Location": f"{other}/taken"}),
            "/done": {"ok": 1},
        }

        def answer(asked: Asked) -> Any:
            seen.append(asked)
            return moved[asked.path]

        with site(answer) as base:
            secrets = {variable_of("API_TOKEN", base): "s3cret"}
            options: dict[str, Any] = {"environment": secrets, "private": True}
            assert call(http(f"{base}/same", auth=BEARER), {}, **options).content == {"ok": 1}
            with pytest.raises(Unfetchable, match="another service of this machine"):
                call(http(f"{base}/other", auth=BEARER), {}, **options)
            posted = call({**http(f"{base}/other", auth=BEARER), "method": "POST"}, {}, **options)
            with pytest.raises(RequestInvalid, match="API_TOKEN"):
                call(http(f"{other}/x", auth=BEARER), {}, **options)
    assert [asked.headers.get("Authorization") for asked in seen] == ["Bearer s3cret"] * 4
    assert (posted.ok, posted.status) == (False, 302)


def test_redirect_elsewhere_carries_no_header():
    import httpx2

    from mats.client.bounded_http import _follow

    sent = httpx2.Request(
        "GET", "https://a.com/x", headers={"Authorization": "Bearer t", "X-Key": "k", "Cookie": "c=1"}
    )
    for location in ("https://b.com/y", "https://a.com:8443/y", "//b.com/y"):
        following = _follow(sent, httpx2.Response(307, headers={"Location": location}))
        assert following
        assert not {"authorization", "x-key", "cookie"} & {*following.headers}
    posted = httpx2.Request("POST", "https://a.com/x", content=b"body", headers={"Authorization": "Bearer t"})
    assert _follow(posted, httpx2.Response(307, headers={"Location": "https://b.com/y"})) is None
    with pytest.raises(Unfetchable, match="https to http"):
        _follow(sent, httpx2.Response(302, headers={"Location": "http://a.com/y"}))


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "0.0.0.0"])
@pytest.mark.parametrize("protocol", ["http", "mcp", "a2a"])
def test_blocked_addresses_are_never_called(host, protocol):
    more = {"http": {"method": "GET"}, "mcp": {"transport": "streamable-http", "tool": "t"}, "a2a": {}}[protocol]
    with pytest.raises(Unfetchable, match="blocked"):
        call(
            {"protocol": protocol, "url": f"http://{host}/mcp", **more},
            {"message": "x"} if more == {} else {},
            private=True,
        )


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x", "http://10.0.0.1/x", "http://localhost:9/x"])
def test_private_addresses_are_called_only_if_allowed(url):
    with pytest.raises(Unfetchable, match="which is blocked"):
        call(http(url), {})


def test_answers_are_bounded_in_size_and_time():
    with (
        answering(response("200 OK", b"x" * 200_000)) as url,
        pytest.raises(Unfetchable, match="more than 1,000 bytes"),
    ):
        call(http(url), {}, private=True, max_bytes=1_000)
    with answering(lambda connection: drip(connection, b"HTTP/1.1 200 OK\r\n\r\n")) as url:
        for protocol in (http(url), {"protocol": "mcp", "transport": "streamable-http", "url": url, "tool": "t"}):
            with pytest.raises((Unfetchable, DependencyFailed)):
                call(protocol, {}, private=True, timeout_s=0.3)


RPC = {"jsonrpc": "2.0", "id": 1}


@pytest.mark.parametrize(
    ("version", "transport", "reply", "ok"),
    [
        ("0.3.0", "", {**RPC, "result": {"kind": "message", "parts": []}}, True),
        ("0.3.0", "", {**RPC, "result": {"kind": "task", "status": {"state": "failed"}}}, False),
        ("1.0", "", {**RPC, "result": {"task": {"status": {"state": "TASK_STATE_COMPLETED"}}}}, True),
        ("1.0", "", {**RPC, "result": {"task": {"status": {"state": "TASK_STATE_REJECTED"}}}}, False),
        ("1.0", "", {**RPC, "error": {"code": -32600, "message": "no"}}, False),
        ("1.0", "HTTP+JSON", {"message": {}}, True),
        ("1.0", "HTTP+JSON", {"error": {"code": 400}}, False),
    ],
)
def test_message_to_an_agent(version, transport, reply, ok):
    with answering(response("200 OK\r\nContent-Type: application/json", json.dumps(reply).encode())) as url:
        invocation = {"protocol": "a2a", "url": url, "version": version, "transport": transport}
        called = call(invocation, {"message": "Hi"}, private=True)
    assert called == Called(ok=ok, status=200, content=reply.get("result", reply.get("error", reply)))


@pytest.mark.parametrize(
    ("agent", "address", "part"),
    [
        ({"version": "1.0", "url": "https://a.com/a2a/"}, "https://a.com/a2a/message:send", "parts"),
        ({"version": "1.0", "url": "https://a.com", "tenant": "a b"}, "https://a.com/a%20b/message:send", "parts"),
        ({"version": "0.3.0", "url": "https://a.com/a2a?t=1"}, "https://a.com/a2a/v1/message:send?t=1", "content"),
        ({"version": "0.3.0", "url": "https://a.com/v1"}, "https://a.com/v1/message:send", "content"),
    ],
)
def test_message_over_http_and_json(agent, address, part):
    sent = shown({"protocol": "a2a", "transport": "HTTP+JSON", **agent}, {"message": "Hi"})
    assert sent["url"] == address
    assert json.loads(sent["body"])["message"][part] == [{"text": "Hi"}]
    over_rpc = json.loads(shown({"protocol": "a2a", **agent}, {"message": "Hi"})["body"])
    assert over_rpc["params"].get("tenant") == agent.get("tenant")


@pytest.mark.parametrize("arguments", [{}, {"message": ""}, {"message": 1}, {"message": "x", "more": 1}])
def test_agent_needs_a_message(arguments):
    with pytest.raises(RequestInvalid, match="message"):
        shown({"protocol": "a2a", "url": "https://a.example.com"}, arguments)


@pytest.mark.parametrize(
    "invocation",
    [None, {}, {"protocol": "grpc"}, {"protocol": "skill", "instructions": "GET /x"},
     {"protocol": "bedrock", "model": "m"}, {"protocol": "mcp", "transport": "sse", "url": "https://a.com/sse"}],
)  # fmt: skip
def test_what_this_client_does_not_call_is_refused(invocation):
    with pytest.raises(NotPossible):
        call(invocation, {})


def test_content_that_is_no_text_and_calls_within_a_loop():
    async def main(url: str) -> Called:
        return call(http(url), {}, private=True)

    with answering(response("200 OK\r\nContent-Type: image/png", b"\xff\x00")) as url:
        assert asyncio.run(main(url)).content == {"base64": "/wA="}
    with answering(response("500 Oops\r\nContent-Type: application/json", b"{broken")) as url:
        assert call(http(url), {}, private=True) == Called(ok=False, status=500, content="{broken")


def test_secrets_are_neither_shown_nor_in_errors():
    secrets = {f"{name}_API_EXAMPLE_COM": "s3\ncret" for name in ("API_TOKEN", "API_KEY")}
    with pytest.raises(RequestInvalid) as refused:
        shown(http("https://api.example.com/x", auth=BEARER), {}, environment=secrets)
    assert "cret" not in str(refused.value)
    caller = Caller(environment={"API_TOKEN_API_EXAMPLE_COM": "s3cret"}, values={"key": "s3cret"})
    prepared = caller.prepare(http("https://api.example.com/x", auth=BEARER), {})
    assert "s3cret" not in repr((caller, prepared))
    assert prepared.shown["headers"]["authorization"] == "Bearer $API_TOKEN_API_EXAMPLE_COM"


def keys(*places: str, **more: int) -> list[dict[str, Any]]:
    return [{"scheme": "apiKey", "in": place, "name": name, **more} for place, name in map(str.split, places)]


@pytest.mark.parametrize(
    ("auth", "environment", "named"),
    [
        (keys("query api_key", "query api_key", "header X-Api-Key"), [], ["API_KEY", "API_KEY"]),
        (keys("header X-App-Id", "header X-App-Key"), [], ["API_KEY", "API_KEY_2"]),
        ([*keys("query a", option=1), *keys("header b", option=2)], [], ["API_KEY"]),
        ([{"scheme": "bearer", "option": 1}, *keys("header b", option=2)], ["API_KEY"], ["API_KEY"]),
        ([{"scheme": "mutualTLS", "option": 1}, {"scheme": "bearer", "option": 2}], [], ["API_TOKEN"]),
    ],
)
def test_one_key_in_one_alternative_is_enough(auth, environment, named):
    host = "_API_EXAMPLE_COM"
    invocation = http("https://api.example.com/x", auth=auth)
    prepared = shown(invocation, {}, environment={f"{name}{host}": "s" for name in environment})
    sent = re.findall(rf"\$(\w+){host}", f"{prepared['url']} {prepared['headers']}")
    assert sent == named
    with pytest.raises(RequestInvalid) as refused:
        call(invocation, {}, environment={})
    assert set(re.findall(rf"(\w+){host}", str(refused.value))) >= set(named)


def test_a_missing_credential_and_what_else_keeps_it_from_being_sent_are_said_at_once():
    with pytest.raises(RequestInvalid, match=r"needs API_TOKEN_LOCALHOST.*over https only.*private=True"):
        call(http("http://localhost/x", auth=[{"scheme": "bearer"}]), {}, environment={})


def test_what_a_publisher_states_is_sent_unless_another_value_is_given():
    stated = [{"name": "X-Mode", "value": "fast"}, {"name": "X-Other", "value": "x"}]
    mcp = {"protocol": "mcp", "stated": stated, "tool": "t"}
    remote = {**mcp, "transport": "streamable-http", "url": "https://a.com/mcp", "headers": ["X-Mode"]}
    assert shown(remote, {})["headers"] == {"X-Mode": "fast"}
    assert shown(remote, {}, values={"X-Mode": "slow"})["headers"] == {"X-Mode": "slow"}
    server = {**mcp, "transport": "stdio", "command": "serve", "env": ["MODE"]}
    assert shown(server, {})["command"] == "MODE=$MODE serve"
    server["stated"] = [{"name": "MODE", "value": "r o"}]
    assert shown(server, {})["command"] == "MODE='r o' serve"
    assert shown(server, {}, environment={"MODE": "rw"})["command"] == "MODE=$MODE serve"


def test_a_value_that_would_be_ignored_is_refused_with_what_can_be_set_and_a_missing_header_is_named():
    server = {"url": "https://a.com/{team}/mcp", "headers": {"X-Region": "${REGION}", "X-Hive-Key": "${KEY}"}}
    remote = server_of(server)
    assert remote
    with pytest.raises(RequestInvalid) as refused:
        check_names(remote, ["team", "X-Region", "X-Hive-Key", "authorization", "other"])
    assert [str(fault) for fault in refused.value.faults] == [
        "X-Hive-Key: is not taken by --set: set API_KEY_A_COM in the environment",
        "authorization: is not taken by --set: set API_TOKEN_A_COM in the environment",
        "other: cannot be set: this call takes team, X-Region by --set",
    ]
    with pytest.raises(RequestInvalid, match=r"X-Region: needs a value, by `--set X-Region=.*; team: needs a value"):
        Caller(environment={}).prepare(remote, {})
    with pytest.raises(RequestInvalid, match="set API_USER_A_COM and API_PASSWORD_A_COM in"):
        check_names(server_of({"url": "https://a.com/mcp", "headers": {"Authorization": "Basic x"}}), ["Authorization"])
    published = {"type": "streamable-http", "url": "https://a.com/mcp", "headers": [{"name": "X-Mode"}]}
    optional = published_server({"remotes": [published]})
    assert isinstance(optional, McpRemote)
    assert shown(json.loads(optional.model_dump_json()), {})["headers"] == {}
    with pytest.raises(RequestInvalid, match="MAIL_KEY in the environment"):
        check_names(server_of({"command": "serve", "env": {"MAIL_KEY": "k"}}), ["MAIL_KEY"])


BODY = {
    "type": "object", "required": ["id", "title", "owner"], "allOf": [{"required": ["list"]}, {"$ref": "#"}],
    "properties": {
        "id": {"readOnly": True}, "owner": {"type": "object", "required": ["name"]}, "parent": {"required": ["id"]},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        ({}, "id body.list body.title body.owner.name"),
        ({"id": 1, "body": {"title": "", "list": [], "owner": {"name": "a"}}}, ""),
        ({"id": 1, "body": {"title": None, "list": 1, "owner": {}, "parent": {}}}, "title owner.name parent.id"),
        ({"id": 1, "body": "text"}, ""),
    ],
)
def test_everything_that_an_input_lacks_is_named_before_a_credential(arguments, missing):
    url = "https://api.example.com/{tenant}/{id}"
    invocation = http(url, ID, {"name": "X-A", "in": "header"}, auth=BEARER, inputs=["tenant"], body="application/json")
    schema = {"required": ["id", "body"], "properties": {"id": {}, "body": BODY}}
    named = [name if name.startswith(("id", "body")) else f"body.{name}" for name in missing.split()]
    with pytest.raises(RequestInvalid) as refused:
        Caller(environment={}).prepare(invocation, {**arguments, "more": 1, "X-A": "ä"}, schema=schema)
    assert {fault.attribute for fault in refused.value.faults} == {*named, "tenant", "more", "X-A"}


def faults_of(invocation: Any, arguments: Any, schema: Any) -> list[str]:
    try:
        Caller(environment={}).prepare(invocation, arguments, schema=schema)
    except RequestInvalid as error:
        return list(map(str, error.faults))
    return []


TYPED = {
    "properties": {"limit": {"type": "integer"}, "body": {"$ref": "#/$defs/parcel"}},
    "$defs": {"parcel": {"type": "object", "properties": {
        "weight": {"type": "number"}, "count": {"type": ["integer", "null"]}, "fragile": {"type": "boolean"},
        "label": {"type": "string", "format": "binary"}, "items": {"type": "array", "items": {"type": "string"}},
        "hours": {"type": "number", "minimum": 1, "exclusiveMaximum": 24}, "size": {"enum": ["S", "L", 1]},
        "code": {"type": "string", "maxLength": 3}, "odd": {"type": "weight"},
        "none": {"type": [{}]}, "meta": {"required": ["k"]}, "data": {"format": "binary"},
        "due": {"required": ["a", "b", "c", "d"], "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "b": {"type": "string", "nullable": True},
            "c": {"type": ["string", "null"]}, "d": {"type": "string"},
        }},
    }}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "faults"),
    [
        ({"none": 1, "data": "aGk="}, []),
        ({"weight": 2, "count": None, "fragile": True, "items": ["a"], "odd": "?", "label": {"filename": "a"}}, []),
        ({"weight": "heavy"}, ["body.weight: must be of type number, not string"]),
        (
            {"weight": True, "count": 1.5},
            ["body.weight: must be", "body.count: must be of type integer or null, not n"],
        ),
        ({"count": 2.0, "fragile": "yes"}, ["body.fragile: must be of type boolean, not string"]),
        ({"items": ["a", 5]}, ["body.items[1]: must be of type string, not integer"]),
        ([1], ["body: must be of type object, not array"]),
        ({"vector": [0.5] * 1_000, "meta": {}}, ["body.meta.k: is required"]),
        ({"items": [5, 5]}, ["body.items[0]: must be of type", "body.items[1]: must be of type"]),
        ({"items": ("a", "b")}, []),
        ({"hours": 0}, ["body.hours: must be at least 1"]),
        ({"hours": 24, "code": "four"}, ["body.hours: must be less than 24", "body.code: must have at most 3 ch"]),
        ({"hours": 1, "code": "abc", "size": "1"}, []),
        ({"size": "M"}, ["body.size: must be one of S, L, 1"]),
        ({"due": {"a": None, "b": None, "c": None, "d": ""}}, []),
        ({"due": {"b": None, "c": None, "d": None}}, ["body.due.a: is required", "body.due.d: is required"]),
    ],
)
def test_values_of_another_type_are_named_before_anything_is_sent(body, faults):
    invocation = http("https://api.example.com/x", {"name": "limit", "in": "query"}, body="application/json")
    found = faults_of(invocation, {"limit": "5", "body": body}, TYPED)  # an address has texts only
    assert [one[: len(start)] for one, start in zip(found, faults, strict=True)] == faults


@pytest.mark.parametrize(
    ("media_type", "arguments", "faults"),
    [
        ("", {"limit": "many"}, ["limit: must be of type integer, not string"]),
        ("", {"limit": "-5", "page[size]": "2", "ids": ["1", "2"], "all": "true"}, []),
        ("", {"ids": ["1", "x"]}, ["ids[1]: must be"]),
        ("application/x-www-form-urlencoded", {"body": {"n": "5"}}, []),
        ("application/json", {"body": {"n": "5"}}, ["body.n: must be of type integer, not string"]),
        ("multipart/form-data", {"body": {"n": "5", "file": "text"}}, ["body.file: must be a file"]),
        ("multipart/form-data", {"body": {"file": {"filename": "a", "content": "b"}}}, []),
        ("image/png", {"body": "text"}, []),
    ],
)
def test_what_is_sent_as_text_may_be_spelled(media_type, arguments, faults):
    names = ("limit", "page[size]", "ids", "all")
    invocation = http("https://api.example.com/x", *({"name": name, "in": "query"} for name in names), body=media_type)
    fields = {"n": {"type": "integer"}, "file": {"type": "string", "format": "binary"}}
    schema = {"properties": {
        "limit": {"type": "integer"}, "page[size]": {"type": "integer"}, "all": {"type": "boolean"},
        "ids": {"type": "array", "items": {"type": "integer"}}, "body": {"properties": fields},
    }}  # fmt: skip
    found = faults_of(invocation, arguments, schema)
    assert [one[: len(start)] for one, start in zip(found, faults, strict=True)] == faults
