"""Each format becomes registrations; any value whatever ends in registrations, faults or notes."""

import copy
import json
import re
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import profile_of
from mats.domain.protocols import openapi, openapi_document
from mats.domain.protocols.catalogue import PROTOCOLS, SEARCHED, from_text, invocation_of, searchable_part, to_text
from mats.domain.protocols.descriptors import FORMAT
from mats.domain.protocols.namespaces import (
    join_labels,
    label_of_title,
    namespace_of_domain,
    namespace_of_url,
    to_label,
)
from mats.domain.protocols.protocol import MappedValue, Source
from mats.domain.protocols.references import References, Unresolved
from mats.edge.ard.entries import AGENT_CARD, SERVER_CARD, media_type
from mats.local.imports.decoding import decode
from mats.local.imports.formats import FORMATS, detect_format, map_value
from tests.conftest import ROOT
from tests.unit.local.imports.formats import documents as d
from tests.unit.local.imports.formats.documents import CASES

FUNCTION = {"type": "function", "name": "refund", "parameters": {"type": "object"}}


def value_of(name: str) -> Any:
    document = CASES[name]["document"]
    return decode(document.encode()) if isinstance(document, str) else document


SAMPLES = [value_of(name) for name in CASES]


def outcome(mapped: MappedValue) -> dict[str, Any]:
    """An entry as the cases have it: faults and notes by their attributes."""
    registration = mapped.registration
    invocation = invocation_of(registration) if registration else None
    assert from_text(to_text(invocation)) == invocation
    shown = {
        "item": registration and registration.item(),
        "invocation": invocation and invocation.model_dump(mode="json"),
        "id": "" if registration else mapped.id,
        "faults": [fault.attribute for fault in mapped.faults],
        "notes": [note.attribute for note in mapped.notes],
    }
    return {"where": mapped.where, **{key: value for key, value in shown.items() if value}}


def test_the_format_that_contributors_are_shown_works():
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    module: dict[str, Any] = {}
    exec(dedent(page.partition("```python\n")[2].partition("```")[0]), module)
    document, found = {"webhooks": [{"name": "paid", "description": "Tell of a payment."}, 5]}, module["FORMAT"]
    assert found.detect(document)
    [paid, wrong] = found.registrations(document, Source("x", namespace="com.example"))
    assert (paid.registration.id, paid.notes, len(wrong.faults)) == ("com.example/paid", (), 1)


@pytest.mark.parametrize("name", CASES)
def test_a_document_becomes_its_registrations(name: str):
    source = Source("file", **CASES[name].get("source", {}))
    found = [outcome(mapped) for mapped in map_value(value_of(name), source)]
    assert json.loads(json.dumps(found)) == CASES[name]["becomes"]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"servers": [{"server": d.SERVER, "_meta": {}}], "metadata": {"count": 1}}, "mcp-server"),
        ([d.SERVER, d.OLD_SERVER], "mcp-server"),
        (d.TOOLS["tools"], "mcp-tools"),
        ({"jsonrpc": "2.0", "id": 1, "result": d.TOOLS}, "mcp-tools"),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}, "mcp-tools"),
        ([{"name": "a", "input_schema": {"type": "object"}}], "mcp-tools"),
        ({"mcpServers": {}}, "mcp-config"),
        ({"inputs": [], "servers": {"a": {"type": "stdio", "command": "x"}}}, "mcp-config"),
        ([d.CARD, d.CARD], "a2a-agent-card"),
        ({**d.CARD, "skills": None}, "a2a-agent-card"),
        ({"swagger": "2.0", "info": {}, "paths": {}}, "openapi"),
        ({"type": "function", "function": FUNCTION}, "openai-tool"),
        ({"model": "m", "tools": [{"type": "web_search"}, FUNCTION]}, "openai-tool"),
        ({"entries": [{"identifier": "urn:air:a.example.com:x"}]}, "ard-entry"),
        ({"namespace": "a", "name": "b", "kind": "tool"}, "registrations"),
        ({"tools": [{"name": "a", "description": "b"}]}, "mcp-tools"),
        ([{"type": "web_search_20250305", "name": "web_search"}], "openai-tool"),
    ],
)
def test_a_format_is_detected_by_content(value: Any, name: str):
    format = detect_format(value)
    assert format
    assert format.name == name


@pytest.mark.parametrize(
    "value",
    [
        None, 1, "text", [], {}, {"name": "left-pad", "version": "1.0.0"}, {"tools": ["hammer"]}, [1, 2],
        {"info": {"name": "Tides", "schema": "https://schema.getpostman.com/collection.json"}, "item": []},
        {"project": {"name": "tides", "urls": {"home": "https://x.example"}}, "tool": {"ruff": {}}},
        {"asyncapi": "2.6.0", "servers": {"a": {"url": "https://x.example", "protocol": "https"}}},
    ],
)  # fmt: skip
def test_an_unknown_format_is_one_fault(value: Any):
    assert detect_format(value) is None
    for is_line in (False, isinstance(value, dict)):
        (only,) = map_value(value, Source("x"), is_line=is_line)
        assert [fault.attribute for fault in only.faults] == [""]
        assert only.faults[0].message.startswith("is of no known format; known are")


@pytest.mark.parametrize(
    ("stated", "schema"),
    [
        ({}, {"type": "object"}),
        ({"type": "object", "properties": {}}, {"type": "object", "properties": {}}),
        ({"type": "object", "properties": {"v": {}, "w": {"default": {}}}}, None),
        (
            {"city": {"type": "string", "required": True}, "days": {"type": "integer"}},
            {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
             "required": ["city"]},
        ),
    ],
)  # fmt: skip
def test_the_inputs_of_a_tool_are_taken_as_they_are_stated(stated, schema):
    (only,) = map_value([{"name": "a", "type": "function", "parameters": stated}], Source("x", namespace="com.acme"))
    assert only.registration.input_schema == (schema or stated)


def test_the_card_of_a_model_is_no_skill_and_says_how_a_model_is_registered():
    card = decode(b"---\nname: ner\npipeline_tag: token-classification\n---\nA model.\n", name="README.md")
    (only,) = map_value(card, Source("README.md", namespace="com.acme"), is_line=False)
    assert "mats add --kind model" in only.faults[0].message


RUN, ASK = {"command": "uvx", "args": ["a"]}, {"type": "http", "url": "https://x.example/mcp"}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"a": RUN, "b": ASK}, "a b"),
        ({"$schema": "https://x.example/schema", "a": RUN}, "a"),
        ({"mcpServers": {"a": RUN}, "projects": {"/srv": {"mcpServers": {"b": RUN}}, "/tmp": {}}}, "a b"),
        ({"mcpServers": [{"name": "a", **RUN}, {"name": "b", **ASK}]}, "a b"),
        ({"inputs": [], "servers": {"a": ASK}}, "a"),
        ({"editor.tabSize": 2, "mcp": {"inputs": [], "servers": {"a": RUN}}}, "a"),
        ({"mcp": {"a": {"type": "local", "command": ["uvx", "a"]}, "b": {"type": "remote", **ASK}}}, "a b"),
        ({"mcp_servers": {"a": RUN}, "model": "m"}, "a"),
        ({"context_servers": {"a": {"command": {"path": "a"}}, "b": {"settings": {}}}}, "a -b"),
        ({"extensions": {"a": {"cmd": "a", "type": "stdio"}, "b": {"type": "builtin", "enabled": True}}}, "a -b"),
        ({"experimental": {"modelContextProtocolServers": [{"name": "a", "transport": RUN}]}}, "a"),
        ({"mcpServers": {"a": {**RUN, "enabled": False}, "b": {**ASK, "isActive": False}}}, "-a -b"),
        ({"mcpServers": {"a": {"command": "x", "args": [None]}}}, "!a"),
        ({"mcpServers": {"a": {"url": "${BASE}/mcp"}, "b": {"url": "${BASE:-https://x.example}/mcp"}}}, "!a b"),
        ({"dxt_version": "0.1", "name": "a", "server": {"mcp_config": RUN}, "tools": [{"name": "b"}]}, ""),
        ({"manifest_version": "0.3", "name": "a", "server": {"type": "node"}, "tools": []}, "!server"),
    ],
)  # fmt: skip
def test_the_servers_of_any_clients_configuration(value: Any, names: str):
    found = list(map_value(value, Source("x", namespace="com.acme")))
    marks = ["" if one.registration else "!" if one.faults else "-" for one in found]
    assert " ".join(f"{mark}{one.where.rpartition('.')[2]}" for mark, one in zip(marks, found, strict=True)) == names
    assert all(invocation_of(one.registration) for one in found if one.registration)


def test_the_folder_that_a_client_starts_a_command_in_is_noted():
    (mapped,) = map_value({"mcpServers": {"a": {**RUN, "cwd": "/srv"}}}, Source("x", namespace="com.acme"))
    assert [note.attribute for note in mapped.notes] == ["cwd"]


SCHEMA = {"type": "object", "properties": {"type": {"type": "string"}}}
UPPER = {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}}
REFUND = {"name": "refund", "description": "Pay back."}
SPEC = {**REFUND, "inputSchema": {"json": SCHEMA}}
BASH = {"type": "bash_20250124", "name": "bash"}


@pytest.mark.parametrize(
    ("value", "skipped"),
    [
        ({"tools": [{"toolSpec": SPEC}, {"cachePoint": {"type": "default"}}]}, 1),
        ({"modelId": "m", "toolConfig": {"tools": [{"toolSpec": SPEC}]}}, 0),
        ({"tools": [{"functionDeclarations": [{**REFUND, "parameters": UPPER}]}, {"googleSearch": {}}]}, 1),
        ({"functionDeclarations": [{**REFUND, "parametersJsonSchema": SCHEMA}]}, 0),
        ({"config": {"tools": [{"function_declarations": [{**REFUND, "parameters_json_schema": SCHEMA}]}]}}, 0),
        ({"tools": [{"type": "custom", **REFUND, "input_schema": SCHEMA}, BASH]}, 1),
        ({"tools": [{**REFUND, "input_schema": SCHEMA}, {"type": "web_search_20250305", "name": "web_search"}]}, 1),
        ({"functions": [{**REFUND, "parameters": SCHEMA}]}, 0),
    ],
)  # fmt: skip
def test_the_tools_of_models_apis(value: Any, skipped: int):
    found = list(map_value(value, Source("x", namespace="com.acme")))
    assert [one.registration.item() for one in found if one.registration] == [
        {
            "namespace": "com.acme",
            "kind": "tool",
            **REFUND,
            "input_schema": SCHEMA,
            "descriptor": {"format": "openai-tool"},
        }
    ]
    assert [len(one.notes) for one in found if not one.registration] == [1] * skipped


BY_SERVER = {"Pay me": [REFUND], "b": {"tools": [REFUND]}}


@pytest.mark.parametrize("value", [BY_SERVER, {"servers": BY_SERVER}])
def test_the_tools_of_several_servers_are_in_a_namespace_each(value: Any):
    found = map_value(value, Source("x", namespace="com.acme"))
    assert [one.registration and one.registration.id for one in found] == [
        "com.acme.pay-me/refund",
        "com.acme.b/refund",
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"agents": [d.CARD]}, {"cards": {"desk": d.CARD}}, {"agents": [{"agentCard": d.CARD}]}, [{"card": d.CARD}],
        {"agent_card": d.CARD},
        {"jsonrpc": "2.0", "id": 1, "result": d.CARD},
    ],
)  # fmt: skip
def test_a_card_is_found_in_what_is_around_it(value: Any):
    [alone], [wrapped] = map_value(d.CARD, Source("x")), map_value(value, Source("x"))
    assert wrapped.registration == alone.registration is not None


def test_a_card_of_python_is_the_same_as_one_of_json():
    def to_snake_case(value: Any) -> Any:
        if isinstance(value, dict):
            return {re.sub("([A-Z])", r"_\1", key).lower(): to_snake_case(one) for key, one in value.items()}
        return [to_snake_case(one) for one in value] if isinstance(value, list) else value

    [one], [other] = (map_value(card, Source("x")) for card in (d.CARD, to_snake_case(d.CARD)))
    assert other.registration == one.registration is not None


@pytest.mark.parametrize(
    ("package", "note"),
    [
        ({"transport": {"type": "sse", "url": "http://localhost:1/sse?key=x"}}, "over sse at http://localhost:1/sse?key={key}"),
        ({"registryType": "mcpb"}, "no runner is known for the registryType 'mcpb'"),
        ({"packageArguments": [{"type": "positional", "value": "a"}, []]}, "not all short and plain texts"),
        ({"identifier": "a b"}, "'a b' is no name of a package"),
    ],
)  # fmt: skip
def test_a_package_that_is_not_called_has_a_note(package: Any, note: str):
    server = {"name": "com.acme/a", "version": "1", "packages": [{"registryType": "npm", "identifier": "a", **package}]}
    (mapped,) = map_value(server, Source("x"))
    assert mapped.registration
    assert note in mapped.notes[0].message


def test_a_given_namespace_overrides_the_document():
    mapped = [one for sample in SAMPLES for one in map_value(sample, Source("x", namespace="org.mine"))]
    assert {one.registration.namespace for one in mapped if one.registration} == {
        "org.mine",
        "1",  # a data set's row
    }


@pytest.mark.parametrize(("document", "type"), [(d.SERVER, SERVER_CARD), (d.CARD, AGENT_CARD)])
def test_an_import_is_found_by_ards_types(document: Any, type: str):
    (mapped,) = map_value(document, Source("x"))
    assert mapped.registration
    assert media_type(profile_of(mapped.registration, origin="")) == type


def test_every_format_that_a_protocol_imports_is_searched_by_its_table():
    of_protocols = [each for protocol in PROTOCOLS for each in protocol.formats]
    samples = [sample for sample in SAMPLES if detect_format(sample) in of_protocols]
    mapped = [one.registration for sample in samples for one in map_value(sample, Source("x", namespace="a"))]
    assert {r.descriptor[FORMAT] for r in mapped if r and r.descriptor} == SEARCHED.keys()
    card = {"format": "a2a-agent-card", "skills": [1], "protocolVersion": "0.3.0"}
    assert searchable_part(card) == {"skills": [1]}
    assert searchable_part({"format": "mcp-server", "tools": [1], "packages": [2]}) == {"tools": [1]}


def test_an_unknown_descriptor_is_searched_completely():
    for descriptor in ({"a": 1}, {"format": "mine", "a": 1}, {"format": ["a2a-agent-card"], "a": 1}):
        assert searchable_part(descriptor) == descriptor
    assert searchable_part(None) == {}


NAMED = {"openapi": "3.0.0", "info": {"title": "t"}, "servers": [{"url": "https://a.example.com"}]}


def asks(reference: str) -> dict[str, Any]:
    return {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": reference}}}}}}


def test_unbounded_or_outside_references_are_cut_and_noted():
    schemas: dict[str, Any] = {
        f"S{n}": {"properties": {f"p{k}": {"$ref": f"#/components/schemas/S{n + 1}"} for k in range(12)}}
        for n in range(14)
    }
    schemas["A"], schemas["B"] = {"$ref": "#/components/schemas/B"}, {"$ref": "#/components/schemas/A"}
    references = ["#/components/schemas/S0", "#/components/schemas/A", "https://evil.example/x", "#/nowhere", "#/paths"]
    paths = {f"/{n}": asks(reference) for n, reference in enumerate(references)}
    document = {**NAMED, "paths": paths, "components": {"schemas": schemas}}
    found = list(map_value(document, Source("x", namespace="a")))
    assert all(m.registration for m in found)
    noted = [" ".join(note.message for note in m.notes) for m in found]
    assert "too large" in noted[0]
    assert noted[1] == ""
    assert "nothing is fetched" in noted[2]
    assert "not in the document" in noted[3]
    assert all(len(json.dumps(m.registration.item())) < 400_000 for m in found if m.registration)


def test_a_schema_of_many_operations_is_expanded_once(monkeypatch: pytest.MonkeyPatch):
    schema = {"type": "object", "properties": {f"p{k}": {"type": "string"} for k in range(3_000)}}
    read, counts = References._read, dict.fromkeys((1, 40), 0)

    def count(references: References, *arguments: Any) -> Any:
        counts[operations] += 1
        return read(references, *arguments)

    monkeypatch.setattr(References, "_read", count)
    for operations in counts:
        paths = {f"/{n}": asks("#/components/schemas/S") for n in range(operations)}
        components = {"schemas": {"S": schema}}
        document = {**NAMED, "paths": paths, "components": components}
        found = list(map_value(document, Source("x", namespace="a")))
        assert len(found) == operations
        assert all("too large" in m.notes[0].message for m in found)
    assert counts[1] == counts[40] > 3_000


class Looked(dict[str, Any]):
    """A document that counts how often it is looked into."""

    looks = 0

    def __getitem__(self, key: str) -> Any:
        self.looks += 1
        return super().__getitem__(key)


def test_a_reference_is_looked_up_once():
    document = Looked(schemas={f"S{n}": {"items": {"$ref": f"#/schemas/S{n + 1}"}} for n in range(10)} | {"S10": {}})
    references = References(document)
    for text in range(50):
        references.expand({"$ref": "#/schemas/S0", "description": str(text)})
    assert document.looks == 11


def test_references_that_lead_through_too_many_others_are_not_followed():
    chain = {f"S{n}": {"$ref": f"#/S{n + 1}/x"} for n in range(5_000)}
    with pytest.raises(Unresolved, match="is not in the document"):
        References(chain).follow({"$ref": "#/S0/x"})


def shares(**content: Any) -> dict[str, Any]:
    """A document whose 2,000 paths lead to one, which holds this."""
    paths = {f"/{n}": {"$ref": "#/components/pathItems/P"} for n in range(2_000)}
    components = {"pathItems": {"P": {"post": {"summary": "Pay", **content}}}}
    return {"openapi": "3.1.0", "info": {"title": "t"}, "paths": paths, "components": components}


@pytest.mark.parametrize(
    "document",
    [
        shares(responses={str(code): {"description": "x"} for code in range(2_000)}),
        shares(description="Pays. " * 10_000),
        shares(parameters=[{"name": "p", "in": "query"}] * 2_000),
        {**shares(), "security": [{f"key{n}": []} for n in range(2_000)]},
    ],
    ids=["responses", "text", "parameters", "security"],
)
def test_shared_parts_are_counted_for_each_operation(document: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(openapi, "_MOST_WORK", 2_500_000)
    *found, last = map_value(document, Source("x", namespace="a"))
    assert len(found) < 50
    assert "too much of what they share" in last.faults[0].message


def test_a_shared_parameter_of_swagger_is_converted_once(monkeypatch: pytest.MonkeyPatch):
    converted: list[Any] = []
    schema = openapi_document._schema
    monkeypatch.setattr(openapi_document, "_schema", lambda *a, **k: converted.append(a) or schema(*a, **k))
    operation = {"parameters": [{"$ref": "#/parameters/Query"}, {"$ref": "#/parameters/Form"}]}
    parameters = {
        "Query": {"name": "q", "in": "query", "type": "string"},
        "Form": {"name": "f", "in": "formData", "type": "string"},
    }
    paths = {f"/{n}": {"post": operation} for n in range(50)}
    found = list(map_value({"swagger": "2.0", "paths": paths, "parameters": parameters}, Source("x", namespace="a")))
    assert len(converted) == 2
    assert {tuple(m.registration.input_schema["properties"]) for m in found if m.registration} == {("q", "body")}


def test_of_thousands_of_media_types_fifty_are_kept():
    operation = {"parameters": [{"name": "b", "in": "body", "schema": {}}]}
    types = [f"application/{n}" for n in range(5_000)]
    document = {"swagger": "2.0", "host": "a.example.com", "consumes": types, "paths": {"/": {"post": operation}}}
    (found,) = map_value(document, Source("x", namespace="a"))
    assert found.registration
    assert len(found.registration.descriptor["requestMediaTypes"]) == 50


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, entry in inner for place in places(entry, (*path, key)))]


@st.composite
def spoiled(draw: st.DrawFn) -> Any:
    """A document in which some values are others, or gone."""
    value = {"document": copy.deepcopy(draw(st.sampled_from(SAMPLES)))}
    for _ in range(draw(st.integers(1, 3))):
        *path, key = draw(st.sampled_from(places(value)[1:]))
        holder: Any = value
        for step in path:
            holder = holder[step]
        holder[key] = draw(json_values | st.just({"$ref": "#/paths"}))
    return value["document"]


@given(json_values | spoiled(), st.sampled_from(FORMATS), st.sampled_from(["", "org.mine"]))
def test_any_format_maps_any_value(value: Any, format: Any, namespace: str):
    source = Source("x", namespace, "https://a.example/x", "folder")
    for mapped in [*format.registrations(value, source), *map_value(value, source)]:
        assert mapped.registration or mapped.faults or mapped.notes
        if mapped.registration:
            assert not mapped.faults
            assert Registration.parse(mapped.registration.item()) == mapped.registration
            outcome(mapped)


@pytest.mark.parametrize(
    ("url", "namespace"),
    [
        ("https://www.Example.com/about", "com.example"),
        ("https://api.example.co.uk:8443/v1?x=1", "uk.co.example.api"),
        ("https://github.com/Some-One/thing", "io.github.some-one"),
        ("https://github.com/", ""),
        ("https://raw.githubusercontent.com/Some-One/thing/main/openapi.json", "io.github.some-one"),
        ("https://bücher.example", "example.xn--bcher-kva"),
        ("http://localhost:3000", ""),
        ("http://printer.local", ""),
        ("http://127.0.0.1/x", ""),
        ("http://[::1]/x", ""),
        ("http://10.0/x", ""),
        ("file:///etc/passwd", ""),
        ("http://[", ""),
        ("https://user:secret@example.com", "com.example"),
    ],
)
def test_an_address_gives_the_namespace_of_its_host(url: str, namespace: str):
    assert namespace_of_url(url) == namespace
    assert namespace_of_url("http://localhost", "", url, "https://b.example") == (namespace or "example.b")


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_label_is_a_valid_namespace(one: str, two: str):
    joined = join_labels((to_label(one), to_label(two)))
    for made in (to_label(one), namespace_of_domain(one), joined, namespace_of_url(f"https://{one}/{two}")):
        if made:
            assert Registration.parse({"namespace": made, "name": "x", "kind": "tool"}).namespace == made


@pytest.mark.parametrize(
    ("title", "home", "label"),
    [
        ("GitHub's official OpenAPI spec + Octokit extension", "com.github.api", "octokit"),
        ("Claims API (v2)", "com.acme", "claims"),
        ("The Acme REST API", "com.acme.api", ""),
        ("Parcel Hub carrier performance reports", "com.example", "parcel-hub-carrier"),
        ("見積書", "jp.acme", to_label("見積書")),
    ],
)
def test_a_title_adds_to_a_namespace_what_its_home_lacks(title: str, home: str, label: str):
    assert label_of_title(title, home) == label


def test_texts_without_letters_get_distinct_labels():
    assert to_label("見積書") != to_label("請求書")
    assert to_label("") == ""
