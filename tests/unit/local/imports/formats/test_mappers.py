"""The mapping of each format; any value whatever ends in registrations, faults or notes."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import profile_of
from mats.domain.protocols import openapi, openapi_document
from mats.domain.protocols.catalogue import invocation_of
from mats.domain.protocols.openapi_document import References
from mats.domain.protocols.protocol import MappedValue, Source
from mats.edge.ard.entries import AGENT_CARD, SERVER_CARD, media_type
from mats.local.imports.decoding import decode
from mats.local.imports.formats import FORMATS, detect_format, map_value
from tests.unit.local.imports.formats import documents as d

FILE = Source("file.json")
OWNED = Source("file.json", namespace="com.acme")
SAMPLES = (
    d.CONFIG,
    d.FUNCTIONS,
    d.SWAGGER,
    d.CATALOG,
    d.SERVER,
    d.OLD_SERVER,
    d.TOOLS,
    d.CARD,
    d.CARD_1_0,
    d.OPENAPI,
    d.MODELS,
    decode(d.SKILL.encode()),
)


def one(value: Any, source: Source = FILE) -> Registration:
    (only,) = map_value(value, source)
    assert only.registration, only
    return only.registration


def faults(value: Any, source: Source = FILE) -> dict[str, list[str]]:
    return {m.where: [str(fault) for fault in m.faults] for m in map_value(value, source) if m.faults}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (d.SERVER, "mcp-server"),
        (d.OLD_SERVER, "mcp-server"),
        ({"servers": [{"server": d.SERVER, "_meta": {}}], "metadata": {"count": 1}}, "mcp-server"),
        ([d.SERVER, d.OLD_SERVER], "mcp-server"),
        (d.TOOLS, "mcp-tools"),
        (d.TOOLS["tools"], "mcp-tools"),
        ({"jsonrpc": "2.0", "id": 1, "result": d.TOOLS}, "mcp-tools"),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}, "mcp-tools"),
        (d.CARD, "a2a-agent-card"),
        (d.CARD_1_0, "a2a-agent-card"),
        ([d.CARD, d.CARD_1_0], "a2a-agent-card"),
        ({**d.CARD, "skills": None}, "a2a-agent-card"),
        (d.OPENAPI, "openapi"),
        ({"swagger": "2.0", "info": {}, "paths": {}}, "openapi"),
        (d.MODELS, "bedrock-models"),
        (decode(d.SKILL.encode()), "agent-skill"),
        ({"namespace": "a", "name": "b", "kind": "tool"}, "registrations"),
        ([{"_id": "1", "type": "tool", "name": "b"}], "registrations"),
    ],
)
def test_document_format_is_detected_by_content(value, name):
    format = detect_format(value)
    assert format
    assert name == format.name


@pytest.mark.parametrize(
    "value", [None, 1, "text", [], {}, {"name": "left-pad", "version": "1.0.0"}, {"tools": ["hammer"]}, [1, 2]]
)
def test_unknown_format_is_reported(value):
    assert detect_format(value) is None
    assert "is of no known format: expected" in faults(value)[""][0]


def test_a_server_is_one_tool_whose_namespace_is_that_of_its_name():
    server = one(d.SERVER)
    assert (server.id, server.kind, server.version) == ("io.github.example-org/tide-tables", "tool", "1.4.0")
    assert (server.endpoint, server.tags) == ("https://tides.example.org/mcp", ("mcp",))
    assert server.descriptor
    assert server.descriptor["packages"] == d.SERVER["packages"]
    assert server.descriptor["_meta"] == d.SERVER["_meta"]
    assert server.descriptor["title"] == "Tide tables"


def test_a_server_of_an_older_schema_is_read_too():
    server = one(d.OLD_SERVER)
    assert (server.id, server.version) == ("io.github.example-org/ferry-times", "0.3.1")
    assert server.descriptor
    assert server.descriptor["packages"] == d.OLD_SERVER["packages"]


def test_of_a_registrys_list_the_latest_versions_are_taken_and_the_others_are_named():
    official = "io.modelcontextprotocol.registry/official"
    listed = [
        {"server": d.SERVER, "_meta": {official: {"status": "active", "isLatest": True}}},
        {"server": {**d.SERVER, "version": "1.3.0"}, "_meta": {official: {"isLatest": False}}},
        {"server": {**d.SERVER, "name": "org.example/old"}, "_meta": {official: {"status": "deprecated"}}},
        {"server": {**d.SERVER, "name": "org.example/gone"}, "_meta": {official: {"status": "deleted"}}},
        "no server",
    ]
    found = list(map_value({"servers": listed}, FILE))
    assert [m.registration and m.registration.id for m in found] == [
        "io.github.example-org/tide-tables", None, "org.example/old", None, None,
    ]  # fmt: skip
    assert found[2].registration
    assert found[2].registration.lifecycle == "deprecated"
    assert [bool(m.notes) for m in found] == [False, True, False, True, False]
    assert found[4].faults


def test_page_of_a_registry_has_a_note_about_more_pages():
    *_, more = map_value({"servers": [{"server": d.SERVER}], "metadata": {"nextCursor": "x", "count": 1}}, FILE)
    assert "has more pages" in more.notes[0].message


def test_tools_of_a_list_need_a_namespace_unless_an_address_gives_one():
    assert set(faults(d.TOOLS)) == {"tools[0]", "tools[1]"}
    assert "--namespace" in faults(d.TOOLS)["tools[0]"][0]
    first, second = map_value(d.TOOLS, Source("x", namespace="org.tides"))
    assert first.registration
    assert second.registration
    assert first.registration.id == "org.tides/high_tide"
    assert first.registration.input_schema == d.TOOLS["tools"][0]["inputSchema"]
    assert first.registration.descriptor
    assert {"title", "outputSchema", "annotations", "x-team"} <= first.registration.descriptor.keys()
    assert second.registration.description == "The next low tide"
    live = next(map_value(d.TOOLS, Source("x", server="https://tides.example.org/mcp"))).registration
    assert live
    assert (live.namespace, live.endpoint) == ("org.example.tides", "https://tides.example.org/mcp")
    assert live.tags == ("mcp",)
    filed = next(map_value(d.TOOLS, Source("x", url="https://tides.example.org/tools.json"))).registration
    assert filed
    assert (filed.namespace, filed.endpoint) == ("org.example.tides", "")


@pytest.mark.parametrize(("document", "type"), [(d.SERVER, SERVER_CARD), (d.CARD, AGENT_CARD)])
def test_what_is_imported_is_found_by_ards_types(document, type):
    assert media_type(profile_of(one(document), origin="")) == type


def test_a_document_without_a_server_has_its_operations_where_it_lies():
    document = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "paths": {"/pets": {"get": {}}}}
    (pets,) = map_value(document, Source("x", url="https://pets.example.org/docs/openapi.json"))
    assert pets.registration
    assert pets.registration.endpoint == "https://pets.example.org/pets"


def test_page_of_tools_has_a_note_about_more_pages():
    *tools, more = map_value({**d.TOOLS, "nextCursor": "2"}, Source("x", namespace="a"))
    assert len(tools) == 2
    assert more.registration is None
    assert "has more pages" in more.notes[0].message


def test_an_error_of_a_server_is_a_fault():
    (refused,) = map_value([{"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}, {"error": {"message": "no"}}], FILE)
    assert "'no'" in refused.faults[0].message


@pytest.mark.parametrize(
    ("card", "endpoint"),
    [(d.CARD, "https://agents.example.com/travel/a2a"), (d.CARD_1_0, "https://agents.example.com/travel/v1")],
)
def test_agent_card_is_an_agent_with_examples_of_its_skills(card, endpoint):
    agent = one(card)
    assert (agent.id, agent.kind, agent.provider) == ("com.example/Travel desk", "agent", "Example Travel")
    assert agent.endpoint == endpoint
    assert agent.tags == ("a2a", "travel", "rail")
    assert agent.examples == ("book me a train to Lyon on Friday", "move my journey to Monday")
    assert agent.descriptor
    assert agent.descriptor["skills"] == card["skills"]
    assert agent.descriptor["x-review"] == "passed"


def test_an_operation_is_a_tool_with_a_property_for_each_parameter_and_for_the_body():
    read, lend = (m.registration for m in map_value(d.OPENAPI, FILE))
    assert lend
    assert read
    assert lend.id == "net.example.library.api.lending-desk/lendBook"
    assert lend.description == "Lend a book. To a member, for four weeks."
    assert lend.endpoint == "https://api.library.example.net/v1/books/{isbn}/loans"
    assert lend.input_schema == {
        "type": "object",
        "properties": {
            "isbn": {"type": "string"},
            "notify": {"description": "Send a mail", "type": "boolean"},
            "body": {
                "type": "object",
                "properties": {
                    "member": {
                        "type": "object",
                        "properties": {"name": {"type": "string"}, "guarantor": {"title": "Member"}},
                    }
                },
            },
        },
        "required": ["isbn", "body"],
    }
    assert lend.descriptor
    assert lend.descriptor["method"] == "POST"
    assert lend.descriptor["x-cost"] == 1
    assert lend.descriptor["parameters"] == [{"name": "isbn", "in": "path"}, {"name": "notify", "in": "query"}]
    assert lend.descriptor["x-desk"] == "ground floor"
    assert lend.descriptor["security"] == [{"key": []}]
    assert lend.descriptor["securitySchemes"] == {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
    assert (read.name, read.lifecycle) == ("GET /books/{isbn}/loans", "deprecated")


def test_parameters_of_one_name_in_two_places_are_both_mapped():
    parameters = [
        {"name": "id", "in": "path", "required": True},
        {"name": "id", "in": "query"},
        {"name": "body", "in": "query"},
    ]
    body = {"content": {"application/json": {"schema": {"type": "string"}}}}
    operation = {"operationId": "x", "parameters": parameters, "requestBody": body}
    document = {"openapi": "3.0.3", "info": {"title": "t"}, "paths": {"/{id}": {"put": operation}}}
    document["servers"] = [{"url": "https://x.example"}]
    registration = one(document, Source("x", namespace="a"))
    assert registration.input_schema
    assert set(registration.input_schema["properties"]) == {"id", "id_query", "body", "requestBody"}
    invocation = invocation_of(registration)
    assert invocation
    assert invocation.model_dump(mode="json") == {
        "protocol": "http",
        "method": "PUT",
        "url": "https://x.example/{id}",
        "parameters": [
            {"name": "id", "in": "path"}, {"name": "id", "in": "query", "property": "id_query"},
            {"name": "body", "in": "query"},
        ],
        "body": "application/json",
        "body_property": "requestBody",
    }  # fmt: skip


def test_a_parameter_written_as_json_says_so():
    filter = {"name": "filter", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}}
    document = {
        "openapi": "3.0.3", "info": {"title": "t"}, "paths": {"/x": {"get": {"parameters": [filter]}}},
    }  # fmt: skip
    registration = one(document, Source("x", namespace="a", url="https://x.example/openapi.json"))
    assert registration.descriptor
    assert registration.descriptor["parameters"] == [{"name": "filter", "in": "query", "content": "application/json"}]


def test_a_live_server_is_kept_with_each_tool():
    entry = {"command": "npx", "args": ["-y", "tides"], "env": ["TIDE_KEY"]}
    first, _ = map_value(d.TOOLS, Source("x", namespace="org.tides", server_entry=entry))
    assert first.registration
    assert first.registration.descriptor
    assert first.registration.descriptor["server"] == entry
    invocation = invocation_of(first.registration)
    assert invocation
    assert invocation.model_dump(mode="json") == {
        "protocol": "mcp", "transport": "stdio", **entry, "tool": "high_tide",
    }  # fmt: skip


def test_unbounded_or_outside_references_are_cut_and_noted():
    schemas: dict[str, Any] = {
        f"S{n}": {
            "type": "object",
            "properties": {f"p{k}": {"$ref": f"#/components/schemas/S{n + 1}"} for k in range(12)},
        }
        for n in range(14)
    }
    schemas["A"], schemas["B"] = {"$ref": "#/components/schemas/B"}, {"$ref": "#/components/schemas/A"}

    def asks(reference: str) -> dict[str, Any]:
        return {"post": {"requestBody": {"content": {"application/json": {"schema": {"$ref": reference}}}}}}

    references = ["#/components/schemas/S0", "#/components/schemas/A", "https://evil.example/x", "#/nowhere", "#/paths"]
    document = {
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": "https://a.example"}],
        "paths": {f"/{n}": asks(reference) for n, reference in enumerate(references)},
        "components": {"schemas": schemas},
    }
    found = list(map_value(document, FILE))
    assert all(m.registration for m in found)
    noted = [" ".join(note.message for note in m.notes) for m in found]
    assert "too large" in noted[0]
    assert noted[1] == ""
    assert "nothing is fetched" in noted[2]
    assert "not in the document" in noted[3]
    assert all(len(json.dumps(m.registration.item())) < 400_000 for m in found if m.registration)


def test_schema_of_many_operations_is_expanded_once(monkeypatch):
    schema = {"type": "object", "properties": {f"p{k}": {"type": "string"} for k in range(3_000)}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S"}}}}
    expanded = 0
    expand = References._expand

    def count(references: References, *arguments: Any) -> Any:
        nonlocal expanded
        expanded += 1
        return expand(references, *arguments)

    monkeypatch.setattr(References, "_expand", count)
    for operations in (1, 40):
        expanded = 0
        paths = {f"/{n}": {"post": {"requestBody": body}} for n in range(operations)}
        document = {
            "openapi": "3.0.0", "info": {"title": "t"}, "paths": paths, "components": {"schemas": {"S": schema}}
        }  # fmt: skip
        found = list(map_value(document, Source("x", namespace="a")))
        assert len(found) == operations
        assert len({json.dumps(m.registration.input_schema) for m in found if m.registration}) == 1
        assert all("too large" in m.notes[0].message for m in found)
        assert expanded < 4_000


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
def test_what_operations_share_is_counted_for_each(document: dict[str, Any], monkeypatch):
    monkeypatch.setattr(openapi, "_MOST_WORK", 2_500_000)
    *found, last = map_value(document, Source("x", namespace="a"))
    assert len(found) < 50
    assert "too much of what they share" in last.faults[0].message


def test_a_parameter_that_operations_of_swagger_share_is_converted_once(monkeypatch):
    converted: list[Any] = []
    schema = openapi_document._schema
    monkeypatch.setattr(
        openapi_document, "_schema", lambda *given, **how: converted.append(given) or schema(*given, **how)
    )
    asks = {"parameters": [{"$ref": "#/parameters/Query"}, {"$ref": "#/parameters/Form"}]}
    document = {
        "swagger": "2.0",
        "paths": {f"/{n}": {"post": asks} for n in range(50)},
        "parameters": {
            "Query": {"name": "q", "in": "query", "type": "string"},
            "Form": {"name": "f", "in": "formData", "type": "string"},
        },
    }
    found = list(map_value(document, Source("x", namespace="a")))
    assert len(converted) == 2
    assert {tuple(m.registration.input_schema["properties"]) for m in found if m.registration} == {("q", "body")}


def test_thousands_of_media_types_are_not_repeated_by_each_operation():
    asks = {"parameters": [{"name": "b", "in": "body", "schema": {}}]}
    types = [f"application/{n}" for n in range(5_000)]
    document = {"swagger": "2.0", "consumes": types, "paths": {"/": {"post": asks}}}
    (found,) = map_value(document, Source("x", namespace="a"))
    assert found.registration
    assert found.registration.descriptor
    assert len(found.registration.descriptor["requestMediaTypes"]) == 50


def test_empty_document_is_noted():
    for value in ({"tools": []}, {"openapi": "3.0.0", "info": {}, "paths": {}}):
        (nothing,) = map_value(value, FILE)
        assert nothing.registration is None
        assert nothing.notes


def test_other_openapi_versions_are_rejected():
    assert "convert it" in faults({"swagger": "1.2", "info": {}, "paths": {}})["openapi"][0]


def test_skill_descriptor_has_instructions_and_other_front_matter():
    skill = one(decode(d.SKILL.encode()), Source("x/SKILL.md", folder="tidy-minutes"))
    assert (skill.id, skill.kind) == ("org.example.office/tidy-minutes", "skill")
    assert (skill.version, skill.provider) == ("1.2", "Example Office")
    assert skill.tags == ("minutes", "meetings")
    assert skill.descriptor
    assert skill.descriptor["allowed-tools"] == "Read Write"
    assert skill.descriptor["instructions"].startswith("# Tidy minutes")


def test_a_skill_in_a_folder_of_another_name_is_noted():
    (only,) = map_value(decode(d.SKILL.encode()), Source("x", folder="minutes"))
    assert any(note.attribute == "name" for note in only.notes)


def test_invalid_front_matter_is_parsed_line_by_line():
    text = "---\nname: ask\ndescription: Use when: somebody asks\n  and waits\n---\nAnswer."
    (only,) = map_value(decode(text.encode()), Source("x", namespace="a"))
    assert only.registration
    assert only.registration.description == "Use when: somebody asks and waits"
    assert "line by line" in only.notes[0].message


def test_bedrock_models_are_in_their_region():
    model, profile = (m.registration for m in map_value(d.MODELS, FILE))
    assert model
    assert profile
    assert model.id == "com.amazon.bedrock.eu-north-1/example.small-v1:0"
    assert model.description == "Small by Example on Amazon Bedrock; reads text and image; writes text."
    assert model.lifecycle == "deprecated"
    assert model.descriptor
    assert model.descriptor["inferenceTypesSupported"] == ["ON_DEMAND"]
    assert profile.endpoint.endswith("inference-profile/eu.example.small-v1:0")
    assert profile.description.endswith("Runs in eu-north-1, eu-west-1.")


def test_all_faults_of_an_entry_are_reported():
    server = {**d.SERVER, "name": "a\nb", "repository": {}, "remotes": [], "websiteUrl": ""}
    (said,) = faults(server).values()
    assert len(said) == 2


def test_hidden_characters_leave_the_name_of_an_agent_and_reject_a_tool():
    (agent,) = map_value({**d.CARD, "name": "☀\ufe0f Travel\u200b desk"}, FILE)
    assert agent.registration
    assert agent.registration.name == "☀ Travel desk"
    assert [note.attribute for note in agent.notes] == ["name"]
    (rejected,) = faults({"tools": [{**d.TOOLS["tools"][0], "name": "ti\u200bde"}]}, OWNED).values()
    assert rejected == ["name: contains a hidden character (U+200B at position 3): remove it"]


def test_value_that_fits_no_attribute_stays_in_the_descriptor():
    card = {**d.CARD, "description": ["a", "list"], "version": "1" * 101, "skills": [{"tags": ["x" * 201, 5, "ok"]}]}
    (only,) = map_value(card, FILE)
    assert only.registration
    assert only.registration.tags == ("a2a", "ok")
    assert only.registration.descriptor
    assert only.registration.descriptor["description"] == ["a", "list"]
    assert {note.attribute for note in only.notes} == {"description", "version", "tags"}


def test_given_namespace_overrides_the_document():
    for sample in SAMPLES:
        ids = [m.registration.namespace for m in map_value(sample, Source("x", namespace="org.mine")) if m.registration]
        assert set(ids) == {"org.mine"}


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


def check(found: list[MappedValue]) -> None:
    for m in found:
        assert m.registration or m.faults or m.notes
        if m.registration:
            assert not m.faults
            assert Registration.parse(m.registration.item()) == m.registration


@given(json_values | spoiled(), st.sampled_from(FORMATS), st.sampled_from(["", "org.mine"]))
def test_any_mapper_maps_any_value(value, format, namespace):
    source = Source("x", namespace, "https://a.example/x", "folder")
    check(list(format.registrations(value, source)))
    check(list(map_value(value, source)))


def test_an_openapi_summary_is_kept_as_the_title():
    operation = {"operationId": "fileClaim", "summary": "File a claim", "description": "Asks a carrier for money."}
    document = {"openapi": "3.1.0", "info": {"title": "t"}, "paths": {"/claims": {"post": operation}}}
    (item,) = map_value(document, Source("x", namespace="com.acme"))
    assert item.registration.description == "File a claim. Asks a carrier for money."
    assert item.registration.descriptor["summary"] == "File a claim"


def test_sentences_that_operations_share_leave_their_descriptions():
    def operation(number: int) -> dict:
        return {"get": {"description": f"Gets thing number {number}. Tokens need the `scope{number}` scope."}}

    document = {"openapi": "3.1.0", "info": {"title": "t"}, "paths": {f"/{n}": operation(n) for n in range(5)}}
    mapped = [one.registration for one in map_value(document, Source("x", namespace="com.acme"))]
    assert [one.description for one in mapped] == [f"Gets thing number {n}." for n in range(5)]
    assert mapped[3].descriptor["remarks"] == ["Tokens need the `scope3` scope."]
