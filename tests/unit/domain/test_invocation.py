"""How a capability is called, from what its owner wrote."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Kind
from mats.domain.profile.grounding import is_bare
from mats.domain.profile.origin import Recipe
from mats.domain.profile.profile import MAX_PROFILE_BYTES, SourceText
from mats.domain.protocols.catalogue import from_text, invocation_of, to_text
from mats.domain.protocols.skill import MAX_INSTRUCTIONS_BYTES
from mats.domain.text.redaction import MAX_TEXT
from tests.builders import a_profile, a_registration
from tests.strategies import SCALARS, json_values

SECRET = "hunter2"
GROWING = {f"v{n}": {"default": f"{{v{n + 1}}}" * 2} for n in range(60)}
"""Variables of which each has the next one twice."""
MCP_URL = "https://mcp.example.com/mcp"


def call(**item: Any) -> Any:
    """The invocation of an item as JSON."""
    return json.loads(to_text(invocation_of(a_registration(**item))) or "null")


def test_an_address_of_a_server():
    headers = {"Authorization": f"Bearer {SECRET}", "X-Api-Key": SECRET, "X-Region": SECRET}
    server = {"url": f"https://me:{SECRET}@mcp.example.com/mcp?org={SECRET}", "type": "http", "headers": headers}
    assert call(name="pay", descriptor={"server": server}) == {
        "protocol": "mcp",
        "transport": "streamable-http",
        "url": "https://mcp.example.com/mcp?org={org}",
        "auth": [{"scheme": "bearer"}, {"scheme": "apiKey", "name": "X-Api-Key", "in": "header"}],
        "headers": ["X-Region"],
        "inputs": ["org"],
        "tool": "pay",
    }


@pytest.mark.parametrize(
    ("item", "transport"),
    [
        ({"endpoint": MCP_URL}, "streamable-http"),
        ({"endpoint": "https://x.example/v1/sse"}, "sse"),
        ({"endpoint": "https://x.example/", "tags": ["MCP"]}, "streamable-http"),
        ({"endpoint": "https://x.example/", "descriptor": {"format": "mcp-tool"}}, "streamable-http"),
        ({"descriptor": {"server": {"url": "https://x.example/", "transport": "sse"}}}, "sse"),
    ],
)  # fmt: skip
def test_an_endpoint_that_is_declared_to_be_an_mcp_server(item, transport):
    assert call(**item)["transport"] == transport


def published(**server: Any) -> Any:
    return call(descriptor={"format": "mcp-server", **server})


def test_a_published_server_prefers_its_remote():
    remotes = [
        {"type": "sse", "url": "https://x.example/sse"},
        {
            "type": "streamable-http",
            "url": "https://{tenant}.example.com/mcp",
            "variables": {"tenant": {"default": "www"}},
            "headers": [{"name": "X-Key", "isSecret": True, "value": SECRET}],
        },
    ]
    assert published(remotes=remotes, packages=[{"registryType": "npm", "identifier": "x"}]) == {
        "protocol": "mcp", "transport": "streamable-http", "url": "https://www.example.com/mcp",
        "auth": [{"scheme": "apiKey", "name": "X-Key", "in": "header"}],
    }  # fmt: skip
    package, unknown = {"registryType": "npm", "identifier": "x"}, {"registryType": "mcpb", "identifier": "x"}
    assert published(remotes=remotes[:1], packages=[unknown, package])["command"] == "npx"
    assert published(remotes=remotes[:1], packages=[unknown])["transport"] == "sse"


def test_authentication_by_an_optional_header_is_an_alternative_to_none():
    headers = [{"name": "Authorization"}, {"name": "X-Key", "isSecret": True, "isRequired": False}]
    assert published(remotes=[{"url": MCP_URL, "headers": headers}])["auth"] == [
        {"scheme": "bearer"},
        {"scheme": "apiKey", "name": "X-Key", "in": "header", "option": 1},
        {"scheme": "none", "option": 2},
    ]


def test_stated_values_of_headers_and_variables_are_kept_unless_they_may_be_secret():
    headers = [
        {"name": "X-Mode", "value": "fast"}, {"name": "X-Org", "default": "{org}", "variables": {"org": {}}},
        {"name": "X-At", "value": "https://{at}/", "variables": {"at": {"default": "eu"}}},
        {"name": "X-Any", "value": SECRET}, {"name": "X-Hidden", "value": "x", "isSecret": True}, {"name": "X-None"},
    ]  # fmt: skip
    kept = [{"name": "X-Mode", "value": "fast"}, {"name": "X-At", "value": "https://eu/"}]
    found = published(remotes=[{"url": MCP_URL, "headers": headers}])
    assert (found["stated"], found["headers"]) == (kept, ["X-Mode", "X-Org", "X-At", "X-Any", "X-None"])
    variables = [{"name": "MODE", "default": "ro"}, {"name": "API_KEY", "value": "x"}]
    package = {"registryType": "oci", "identifier": "a/b", "environmentVariables": variables}
    assert published(packages=[package])["stated"] == [{"name": "MODE", "value": "ro"}]


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("client=agent-plugin&v=2025-03-26", None),
        ("readonly&region={region}&in=x-{zone}", "readonly&region=eu&in=x-{zone}"),
        (f"apiKey=demo&org={SECRET}&{SECRET}&api%5Fkey=demo", "apiKey={apiKey}&org={org}&api%5Fkey={api5Fkey}"),
    ],
)
def test_what_its_publisher_wrote_in_an_address_is_sent_unless_it_looks_secret(query, sent):
    variables = {"region": {"default": "eu"}, "zone": {}}
    assert (
        published(remotes=[{"url": f"{MCP_URL}?{query}", "variables": variables}])["url"]
        == f"{MCP_URL}?{sent or query}"
    )


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ({"registryType": "npm", "identifier": "@a/b", "version": "1.2"}, "npx -y @a/b@1.2"),
        ({"registry_name": "npm", "name": "b", "version": "1"}, "npx -y b@1"),
        ({"registryType": "pypi", "identifier": "tides", "version": "1.4.0"}, "uvx tides@1.4.0"),
        ({"registryType": "pypi", "identifier": "tides", "version": "1", "runtimeHint": "pipx"}, "pipx run tides==1"),
        ({"registryType": "npm", "identifier": "b", "runtimeHint": "node"}, "npx -y b"),
        ({"identifier": "tides", "runtimeHint": "uvx"}, "uvx tides"),
        ({"registryType": "nuget", "identifier": "Tides", "version": "1"}, "dnx Tides@1 --yes"),
        (
            {"registryType": "oci", "identifier": "docker.io/a/b:2", "environmentVariables": [{"name": "KEY"}]},
            "docker run -i --rm -e KEY docker.io/a/b:2",
        ),
        (
            {
                "registryType": "npm",
                "identifier": "b",
                "packageArguments": [
                    {"type": "positional", "valueHint": "folder", "isRequired": True},
                    {"type": "named", "name": "--mode", "value": "fast"},
                    {"type": "named", "name": "--key", "value": SECRET, "isSecret": True},
                    {"type": "named", "name": "--verbose"},
                    {"type": "positional", "valueHint": "unused"},
                ],
            },
            "npx -y b {folder} --mode fast --key {key}",
        ),
        (
            {
                "registryType": "oci",
                "identifier": "a/b",
                "runtimeArguments": [
                    *({"type": "named", "value": value} for value in ("-i", "--rm")),
                    {"type": "named", "name": "--network"},
                    {"type": "named", "name": "-v", "value": "{src}:/d", "variables": {"src": {"isRequired": True}}},
                    {"type": "named", "name": "--env", "value": "KEY={key}", "variables": {"key": {"isSecret": True}}},
                ],
            },
            "docker run -i --rm -v {src}:/d --env KEY a/b",
        ),
        (
            {
                "registry_type": "pypi",
                "identifier": "tides",
                "runtime_hint": "uvx",
                "runtime_arguments": [{"type": "named", "name": "--from", "value": "tides[mcp]==2"}],
                "package_arguments": [{"type": "positional", "value_hint": "port", "is_required": True}, "serve", 8080],
            },
            "uvx --from tides[mcp]==2 {port} serve 8080",
        ),
        (
            {
                "registryType": "npm",
                "identifier": "@a/b",
                "version": "2",
                "runtimeArguments": [{"type": "positional", "value": value} for value in ("-y", "@a/b@latest")],
            },
            "npx -y @a/b@latest",
        ),
        ({"registryType": "mcpb", "identifier": "https://x.example/x.mcpb"}, None),
        ({"registryType": "npm", "identifier": "--eval"}, None),
        ({"registryType": "npm", "identifier": "b", "packageArguments": [None]}, None),
        ({"registryType": "npm", "identifier": "b", "transport": {"type": "sse", "url": "http://localhost"}}, None),
    ],
)
def test_a_package_is_started_by_its_runner(package, command):
    found = published(packages=[package])
    assert (" ".join([found["command"], *found["args"]]) if found else None) == command


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"format": "filepath"}, ""),
        ({"isRequired": True}, "--x {x}"),
        ({"type": None, "value": "a"}, "--x a"),
        ({"type": None, "name": "x", "value": "a"}, "a"),
        ({"default": 8080}, "--x 8080"),
        ({"value": ""}, "--x"),
        ({"value": "--x fast"}, "--x fast"),
        ({"name": "--x /data", "value": "--x /data"}, "--x /data"),
        ({"name": "--x=fast", "value": "--x=fast"}, "--x=fast"),
        *(({"format": "boolean", **given}, "--x") for given in ({"value": True}, {"default": "true"})),
        *(({"format": "boolean", **given}, "") for given in ({}, {"value": False}, {"default": "false"})),
        ({"format": "boolean", "isRequired": True}, "--x"),
        ({"value": "{a}", "variables": {"a": {}}}, ""),
        ({"value": "{a}", "variables": {"a": {"isRequired": True}}}, "--x {a}"),
        ({"value": "{a}", "variables": {"a": {"default": "eu"}}}, "--x eu"),
        ({"value": "${A_FOLDER}"}, ""),
        ({"value": "${A_FOLDER}", "isRequired": True}, "--x {A_FOLDER}"),
        ({"value": "${A_FOLDER}", "type": "positional", "isRequired": False}, ""),
    ],
)  # fmt: skip
def test_a_named_argument_is_there_with_a_value_or_if_it_is_required(argument, words):
    package = {
        "registryType": "npm",
        "identifier": "b",
        "packageArguments": [{"type": "named", "name": "--x"} | argument],
    }
    assert " ".join(published(packages=[package])["args"]) == f"-y b {words}".strip()


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"command": "uvx", "args": ["x", 8080, True, 0.5], "env": {"PORT": 1}}, "uvx x 8080 true 0.5 PORT"),
        ({"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "b"}}, "npx -y x A"),
        ({"command": {"path": "/bin/x", "args": ["a"], "env": {"A": "b"}}}, "/bin/x a A"),
        ({"cmd": "uvx", "args": ["x"], "envs": {"A": "b"}, "env_keys": ["B"]}, "uvx x A B"),
        ({"command": "docker", "args": ["run", "-e", "T=x", "--env=M=x", "i"]}, "docker run -e T --env=M i T M"),
        ({"command": "env", "args": ["A=x", "/usr/bin/node", "x.js"]}, "/usr/bin/node x.js A"),
        ({"transport": {"type": "stdio", "command": "uvx", "args": ["x"]}}, "uvx x"),
        ({"command": "npx -y x"}, "npx -y x"),
        ({"command": "uvx", "args": "x --stdio"}, "uvx x --stdio"),
        ({"command": "x", "args": ["${A_HOST}:${env:B_PORT}", "${input:the-org}"]}, "x {A_HOST}:{B_PORT} {the-org}"),
        ({"command": "x", "args": ["--token", "${A}", "--key=${B}", "C=${D}"]}, "x --token {A} --key={B} C={D}"),
        ({"command": "x", "args": ["--secret", "{aaaaaaaa-1111-2222-3333-444444444444}"]}, "x --secret {secret}"),
        ({"command": "x", "args": ["--at", "${A:-${B}}", "$C", "%D%", "$(e)"]}, "x --at {A} {C} {D} {value}"),
        ({"httpUrl": MCP_URL, "headers": {"Authorization": "Bearer ${T}"}}, f"{MCP_URL} bearer"),
        ({"serverUrl": "https://x.example/sse"}, "https://x.example/sse sse"),
        ({"type": "streamable_http", "uri": "https://${HOST:-x}/mcp"}, "https://x/mcp"),
        ({"url": "${BASE:-https://x.example:8080}/mcp"}, "https://x.example:8080/mcp"),
        ({"url": "https://{env:HOST}/mcp"}, "https://{HOST}/mcp"),
        ({"command": "x", "args": ["--at=${A:-80}", "${B:-/tmp/1.db}", "${C:-}"]}, "x --at=80 /tmp/1.db "),
        ({"command": "x", "args": ["${A_KEY:-b}", "${A:-hunter2}", "${A:-https://a:b@c.d}"]}, "x {A_KEY} {A} {A}"),
        ({"url": MCP_URL, "bearer_token_env_var": "T", "env_http_headers": {"X-A": "B"}}, f"{MCP_URL} bearer X-A"),
        ({"url": MCP_URL, "requestOptions": {"headers": {"X-A": "b"}}}, f"{MCP_URL} X-A"),
        ({"url": MCP_URL, "headers": ["Authorization: Bearer x", "X-A: b"]}, f"{MCP_URL} bearer X-A"),
        *(({"command": "x", "args": args}, None) for args in ([None], [["a"]], {"a": "b"})),
    ],
)  # fmt: skip
def test_an_entry_of_any_client_is_a_whole_command_or_an_address(entry, found):
    server = call(descriptor={"server": entry})
    if server and "command" in server:
        shown = [server["command"], *server.get("args", ()), *server.get("env", ())]
    elif server:
        auth = [scheme["scheme"] for scheme in server.get("auth", ())]
        shown = [server["url"], *(["sse"] if server["transport"] == "sse" else []), *auth, *server.get("headers", ())]
    assert (" ".join(shown) if server else None) == found


def operation(**descriptor: Any) -> Any:
    return call(
        endpoint="https://api.example.com/v1/claims/{id}",
        input_schema={"properties": {"id": {}, "body": {}}},
        descriptor={"method": "POST", **descriptor},
    )


def test_alternatives_of_authentication_are_numbered():
    schemes = {"a": {"type": "http", "scheme": "Bearer"}, "b": {"type": "oauth2"}, "c": {"type": "openIdConnect"}}
    assert operation(security=[{"a": []}], securitySchemes=schemes)["auth"] == [{"scheme": "bearer"}]
    assert operation(security=[{"a": [], "b": []}, {"c": []}, {}], securitySchemes=schemes)["auth"] == [
        {"scheme": "bearer", "option": 1}, {"scheme": "oauth2", "option": 1},
        {"scheme": "openIdConnect", "option": 2}, {"scheme": "none", "option": 3},
    ]  # fmt: skip
    assert "auth" not in operation(security=[{}], securitySchemes=schemes)
    assert "auth" not in operation(security="x", securitySchemes=[])
    odd = {"key": {"type": "apiKey", "name": "X-Key", "in": {}}}
    assert operation(security=[{"key": []}], securitySchemes=odd)["auth"] == [{"scheme": "apiKey", "name": "X-Key"}]


def test_an_agent_of_either_card():
    url = "https://agent.example.com/a2a"
    old = {"protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}
    oauth = {"security": [{"o": ["read"]}], "securitySchemes": {"o": {"type": "oauth2", "flows": {}}}}
    assert call(kind="agent", endpoint=url, descriptor={**old, **oauth}) == {
        "protocol": "a2a", "url": url, "version": "0.3.0", "transport": "JSONRPC", "auth": [{"scheme": "oauth2"}],
    }  # fmt: skip
    new = {
        "supportedInterfaces": [
            {"url": "https://x.example", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ],
        "securityRequirements": [{"schemes": {"k": {"list": []}}}],
        "securitySchemes": {"k": {"apiKeySecurityScheme": {"name": "X-K", "location": "header"}}},
    }
    assert call(kind="agent", endpoint=url, descriptor=new) == {
        "protocol": "a2a", "url": url, "version": "1.0", "transport": "HTTP+JSON",
        "auth": [{"scheme": "apiKey", "name": "X-K", "in": "header"}],
    }  # fmt: skip
    assert call(kind="agent", descriptor=new)["transport"] == "HTTP+JSON"
    assert call(kind="agent", endpoint=url, tags=["a2a"]) == {"protocol": "a2a", "url": url}


GRPC, RPC = "https://grpc.example.com", "https://rpc.example.com/a2a"


@pytest.mark.parametrize(
    ("card", "found"),
    [
        (
            {
                "supportedInterfaces": [
                    {"url": "grpc.example.com:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
                    {"url": RPC, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
                ]
            },
            (RPC, "JSONRPC", "1.0"),
        ),
        (
            {
                "url": GRPC, "preferredTransport": "GRPC", "protocolVersion": "0.3.0",
                "additionalInterfaces": [{"url": GRPC, "transport": "GRPC"}, {"url": RPC, "transport": "JSONRPC"}],
            },
            (RPC, "JSONRPC", "0.3.0"),
        ),
        (
            {"url": RPC, "preferred_transport": "HTTP+JSON", "protocol_version": "0.3.0", "provider": None},
            (RPC, "HTTP+JSON", "0.3.0"),
        ),
        (
            {"supported_interfaces": [{"url": RPC, "protocol_binding": "JSONRPC", "protocol_version": "1.0"}]},
            (RPC, "JSONRPC", "1.0"),
        ),
        (
            {
                "url": "http://localhost:9999", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0",
                "additionalInterfaces": [{"url": GRPC, "transport": "GRPC"}, {"url": RPC, "transport": "HTTP+JSON"}],
            },
            (RPC, "HTTP+JSON", "0.3.0"),
        ),
        ({"url": GRPC, "preferredTransport": "GRPC"}, (GRPC, "GRPC", "")),
        ({"url": f"{RPC}/v1/message:stream", "protocolVersion": "0.3.0"}, (f"{RPC}/v1", "HTTP+JSON", "0.3.0")),
    ],
)  # fmt: skip
def test_the_interface_of_a_card_that_can_be_called(card, found):
    schemes = {"my_key": {"type": "apiKey", "in_": "header", "name": "X-K"}}
    calls = call(kind="agent", descriptor={**card, "security": [{"my_key": []}], "security_schemes": schemes})
    assert (calls["url"], calls.get("transport", ""), calls.get("version", "")) == found
    assert calls["auth"] == [{"scheme": "apiKey", "name": "X-K", "in": "header"}]


def test_a_skill_is_read():
    found = call(kind="skill", name="fill forms", descriptor={"instructions": "Do it.", "files": ["SKILL.md", 1]})
    assert found == {
        "protocol": "skill", "instructions": "GET /capabilities/com.acme.pay/fill%20forms/instructions",
        "files": ["SKILL.md"],
    }  # fmt: skip
    assert call(kind="skill", endpoint="https://x.example/SKILL.md") == {
        "protocol": "skill", "url": "https://x.example/SKILL.md",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        ({"descriptor": {"format": "bedrock-model"}}, {"model": "m:0"}),
        ({"endpoint": "https://bedrock-runtime.eu-west-1.amazonaws.com"}, {"model": "m:0", "region": "eu-west-1"}),
        (
            {"endpoint": "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-micro-v1:0"},
            {"model": "amazon.nova-micro-v1:0", "region": "us-east-1"},
        ),
        (
            {"endpoint": "arn:aws:bedrock:eu-west-1:111122223333:inference-profile/eu.x-v1:0"},
            {"model": "eu.x-v1:0", "region": "eu-west-1"},
        ),
    ],
)
def test_a_model_of_bedrock(item, shown):
    assert call(kind="model", name="m:0", **item) == {"protocol": "bedrock", **shown}


@pytest.mark.parametrize(
    "item",
    [
        *({"endpoint": "https://x.example/", "kind": kind} for kind in ("tool", "agent", "model")),
        {},
        {"endpoint": "/v1/claims", "descriptor": {"method": "GET"}},
        {"endpoint": "https://x.example/", "descriptor": {"method": "FETCH"}},
        {"kind": "skill", "descriptor": {"instructions": " "}},
        {"descriptor": {"server": {"command": "x\u200b"}}},
        {"descriptor": {"server": {"command": "x", "args": ["a\u202e"]}}},
        {"descriptor": {"server": {"command": "x", "args": [{}]}}},
        {"descriptor": {"server": {"command": "x", "args": ["a" * 20_000]}}},
        {"descriptor": {"server": {"url": "https://x.example/\u200b"}}},
        {"descriptor": {"server": {"url": f"https://x.example/{'a' * 300_000}"}}},
        {"descriptor": {"server": {"command": "x", "args": ["a-" * 150_000]}}},
        {"descriptor": {"format": "mcp-server", "remotes": [{"url": "https://{v0}.example", "variables": GROWING}]}},
        {"endpoint": MCP_URL, "descriptor": {"method": "GET", "parameters": [{"name": "\u200b", "in": "query"}]}},
    ],
)  # fmt: skip
def test_what_is_not_declared_or_cannot_be_shown_is_no_way_to_call(item):
    assert call(**item) is None


def test_long_arguments_take_no_time():
    for part in ("a-", "a=", "eyJ-", "https://", "'a", "{a", "a:", "Bearer ", "sk-1"):
        call(descriptor={"server": {"command": "x", "args": [part * (MAX_TEXT // len(part))] * 3}})


_KEYS = st.sampled_from(
    "format server command method parameters security securitySchemes supportedInterfaces url remotes packages "
    "protocolVersion instructions files requestMediaTypes preferredTransport".split()
)
_FORMATS = st.sampled_from(["mcp-server", "mcp-tool", "a2a-agent-card", "openapi-operation", "agent-skill"])


@given(
    st.sampled_from(Kind), st.dictionaries(_KEYS, json_values(SCALARS), max_size=6), _FORMATS | st.none(),
    st.sampled_from(["", MCP_URL, "x", "https://x.example/{id}"]),
)  # fmt: skip
def test_any_descriptor_has_an_invocation_or_none(kind, descriptor, format, endpoint):
    given = {**descriptor, "format": format} if format else descriptor
    found = invocation_of(a_registration(kind=kind, descriptor=given, endpoint=endpoint))
    assert from_text(to_text(found)) == found
    assert from_text('{"protocol": "smoke-signals"}') is None


def test_how_it_is_called_is_neither_searched_nor_read_by_a_model():
    server = {"command": "npx", "args": ["flamingo"], "env": ["FLAMINGO"]}
    bare, with_server = a_registration(descriptor={"a": "b"}), a_registration(descriptor={"a": "b", "server": server})
    assert SourceText.of(bare) == SourceText.of(with_server)
    assert Recipe().origin(bare) == Recipe().origin(with_server)
    assert Recipe().origin(a_registration()) == Recipe().origin(a_registration(descriptor={"server": server}))
    skill = {"kind": "skill", "descriptor": {"format": "agent-skill", "instructions": "x"}}
    listed = {"kind": "skill", "descriptor": {**skill["descriptor"], "files": ["a.py"]}}
    assert Recipe().origin(a_registration(**skill)) == Recipe().origin(a_registration(**listed))
    assert is_bare(a_registration(description="", descriptor={"server": server}))


def test_long_instructions_are_truncated_and_say_so():
    text = "é" * MAX_INSTRUCTIONS_BYTES
    served = a_profile(kind="skill", descriptor={"instructions": text}).instructions
    assert served.startswith("é" * (MAX_INSTRUCTIONS_BYTES // 2))
    assert served.endswith("[truncated: 32,000 of 64,000 characters]")
    assert a_profile(kind="skill", descriptor={"instructions": " a\n"}).instructions == "a"
    assert a_profile(descriptor={"instructions": "a"}).instructions == ""


def test_instructions_never_make_a_profile_too_large():
    item = {
        "description": "𝄞" * 20_000, "examples": [f"{number} {'𝄞' * 1_900}" for number in range(24)],
        "descriptor": {"instructions": "𝄞" * 15_000},
    }  # fmt: skip
    profile = a_profile(kind="skill", **item)
    assert profile.instructions == ""
    assert len(profile.model_dump_json().encode()) <= MAX_PROFILE_BYTES
