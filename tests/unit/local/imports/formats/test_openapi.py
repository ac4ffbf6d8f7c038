"""OpenAPI documents as people publish them become tools that can be handed over and called."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mats.client import Caller
from mats.domain.errors import CapabilityError
from mats.domain.profile.profile import profile_of
from mats.domain.protocols.catalogue import from_text
from mats.domain.protocols.descriptors import MAX_SCHEMA_BYTES, SCHEMA_CUT
from mats.domain.protocols.protocol import EMPTY, MappedValue, Source
from mats.edge.tools.formats import _TARGETS, tool_of
from mats.local.imports.files import Skipped
from mats.local.imports.formats import map_value
from mats.local.imports.sources import open_sources

HARBOUR = "https://api.harbour.example/v1"


def document(paths: Mapping[str, Any], version: str = "3.0.3", **more: Any) -> dict[str, Any]:
    named = {"openapi": version, "info": {"title": "Harbour"}, "servers": [{"url": HARBOUR}]}
    return {**named, "paths": paths, **more}


def berth(**operation: Any) -> dict[str, Any]:
    """The paths of one operation."""
    return {"/berths": {"post": {"operationId": "berth", "summary": "Book a berth.", **operation}}}


def takes(schema: Any, media_type: str = "application/json", **media: Any) -> dict[str, Any]:
    return berth(requestBody={"required": True, "content": {media_type: {"schema": schema, **media}}})


def mapped(value: Any, **source: Any) -> list[MappedValue]:
    return list(map_value(value, Source("file", **{"namespace": "org.harbour", **source})))


def only(value: Any, **source: Any) -> dict[str, Any]:
    (found,) = mapped(value, **source)
    assert found.registration, found.faults
    return found.registration.item()


def body_of(value: Any) -> Any:
    return only(value)["input_schema"]["properties"]["body"]


def read_folder(folder: Path) -> list[MappedValue]:
    return [
        one
        for source, values in open_sources(str(folder), "org.harbour")
        for _, value in values
        if not isinstance(value, Skipped)
        for one in map_value(value, source)
    ]


@pytest.mark.parametrize(
    ("stated", "base", "endpoint", "namespace"),
    [
        ([], "https://port.example/v2/", "https://port.example/v2/berths", "example.port.harbour"),
        ([{"url": "/v1"}], "https://port.example", "https://port.example/v1/berths", "example.port.harbour"),
        ([{"url": HARBOUR}], "https://port.example/v2", "https://port.example/v2/berths", "example.port.harbour"),
        ([{"url": "https://{x}.com/v1"}], "http://localhost:80/v2", "http://localhost:80/v2/berths", ""),
    ],
)
def test_the_address_of_the_api_can_be_given(stated, base, endpoint, namespace):
    told = document(berth(), servers=stated)
    assert only(told, base=base)["endpoint"] == endpoint
    (found,) = mapped(told, base=base, namespace="")
    assert (found.registration.namespace if found.registration else "") == namespace


# References to files

SHIP = {"type": "object", "properties": {"draught": {"type": "number"}}, "required": ["draught"]}
BOOKS = {"operationId": "berth", "summary": "Book a berth.", "requestBody": {"$ref": "bodies.yaml#/ship"}}
FILES: dict[str, Any] = {
    "bodies.yaml": {"ship": {"content": {"application/json": {"schema": {"$ref": "models/ship.json"}}}}},
    "models/ship.json": SHIP,
    "models/more.yaml": {"$defs": {"a/b {c}": {"$ref": "ship.json#"}}, "list": [{"$ref": "#/$defs/a~1b%20%7Bc%7D"}]},
    "operations/book.yaml": {**BOOKS, "requestBody": {"$ref": "../bodies.yaml#/ship"}},
    "path.yaml": {"post": BOOKS},
    "paths.yaml": {"/berths": {"$ref": "path.yaml"}},
    "parts/index.yaml": {"schemas": {"Ship": {"$ref": "../models/ship.json"}}},
}


def asks(schema: Any) -> dict[str, Any]:
    return document(takes(schema))


@pytest.mark.parametrize(
    "main",
    [
        asks({"$ref": "models/ship.json"}),
        asks({"$ref": "./models/more.yaml#/list/0"}),
        asks({"$ref": "models/../models/ship.json#/"[:-1]}),
        document({"/berths": {"post": {"$ref": "operations/book.yaml"}}}),
        document({"/berths": {"$ref": "path.yaml"}}),
        document({"/berths": {"$ref": "paths.yaml#/~1berths"}}),
        {**document({}), "paths": {"$ref": "paths.yaml"}},
        document(berth(requestBody={"$ref": "bodies.yaml#/ship"})),
        document(takes({"$ref": "#/components/schemas/Ship"}), components={"$ref": "parts/index.yaml"}),
        document(
            takes({"$ref": "#/components/schemas/Ship"}), components={"schemas": {"$ref": "parts/index.yaml#/schemas"}}
        ),
        {
            "swagger": "2.0",
            "host": "api.harbour.example",
            "paths": berth(parameters=[{"name": "b", "in": "body", "schema": {"$ref": "models/ship.json"}}]),
        },
    ],
)
@pytest.mark.parametrize("within", ["", "deep/er"])
def test_references_lead_to_files_of_the_folder(main: Any, within: str, tmp_path: Path):
    for name, value in {**FILES, "openapi.json": main}.items():
        path = tmp_path / within / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    for given in (tmp_path, tmp_path / within / "openapi.json"):
        (found,) = read_folder(given)
        assert found.registration, found.faults
        assert not found.notes
        schema = found.registration.input_schema
        assert schema
        assert schema["properties"]["body"] == SHIP


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("../outside.json", "in the folder"),
        ("link.json", "in the folder"),
        ("way/outside.json", "in the folder"),
        (".hidden.yaml", "in the folder"),
        ("notes.txt", "in the folder"),
        ("/etc/hosts.yaml", "nothing is fetched"),
        ("https://harbour.example/ship.json", "nothing is fetched"),
        ("file:///etc/hosts.yaml", "nothing is fetched"),
        ("missing.yaml", "No such file"),
        ("broken.yaml", "is not YAML"),
        ("openapi.json#/nowhere", "not in the file"),
        ("#ship", "only pointers"),
        ("circle.yaml#/a", "in a circle"),
        ("circle.yaml#/c/x", "in a circle"),
    ],
)
def test_no_reference_leads_out_of_the_folder_or_in_a_circle(reference: str, said: str, tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    for name in ("outside.json", "home/.hidden.yaml", "home/notes.txt"):
        (tmp_path / name).write_text(json.dumps(SHIP))
    (home / "broken.yaml").write_text("a: [")
    (home / "link.json").symlink_to("../outside.json")
    (home / "way").symlink_to("..")
    circle = {"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}, "c": {"$ref": "#/c/x"}}
    (home / "circle.yaml").write_text(json.dumps(circle))
    (home / "openapi.json").write_text(json.dumps(document(berth(parameters=[{"$ref": reference}]))))
    (found,) = read_folder(home / "openapi.json")
    assert said in " ".join(note.message for note in found.notes)
    assert "draught" not in json.dumps(found.registration and found.registration.item())


def test_what_is_empty_is_marked():
    (full,) = mapped(document({"/a": {"get": {"responses": {"409": {"$ref": "#/components/responses/Late"}}}}}))
    (bare,) = mapped(document({"/a": {"get": {"operationId": "a", "responses": {}}}}))
    (lost,) = mapped(document({"/a": {"get": {"$ref": "a.yaml"}}}))
    assert [EMPTY in one.notes for one in (full, bare)] == [False, True]
    assert "nothing is fetched" in lost.faults[0].message


# Schemas


def level(depth: int, width: int, leaf: Mapping[str, Any]) -> dict[str, Any]:
    inner = level(depth - 1, width, leaf) if depth else dict(leaf)
    return {"type": "object", "required": ["p0"], "properties": {f"p{n}": inner for n in range(width)}}


CHOICE = {"type": "string", "enum": ["ebb", "flood"]}
OPTIONS = [{"type": "object", "required": [f"k{n}"], "properties": {f"k{n}": level(1, 30, CHOICE)}} for n in range(30)]
LONG = {"type": "string", "description": "Tide " * 2_000}


@pytest.mark.parametrize(
    "schema",
    [
        level(28, 1, CHOICE),
        level(2, 40, CHOICE),
        level(0, 300, LONG),
        level(1, 30, LONG),
        level(0, 5_000, CHOICE),
        {**level(0, 2, CHOICE), "oneOf": OPTIONS, "not": level(2, 20, CHOICE), "unevaluatedProperties": False},
        {"type": "object", "required": ["p0"], "properties": {"p0": {"enum": [f"mooring {n}" for n in range(9_000)]}}},
        {
            "type": "object",
            "required": ["p0"],
            "properties": {name: {**LONG, "description": "Ebb " * 9_000} for name in ("title", "p0", "enum", "type")},
        },
        {"allOf": [level(1, 60, LONG), level(2, 20, CHOICE)], "required": ["p0"]},
    ],
    ids=["deep", "wide", "long", "longer", "many", "options", "values", "named as keywords", "all of"],
)
def test_a_schema_that_is_too_large_is_cut_and_accepts_what_it_did(schema: Any):
    (found,) = mapped(document(takes(schema), version="3.1.0"))
    assert found.registration
    profile = profile_of(found.registration, origin="")
    text = profile.input_schema
    assert len(text.encode()) <= MAX_SCHEMA_BYTES
    assert (SCHEMA_CUT in profile.notes) or found.notes
    cut = json.loads(text)["properties"]["body"]
    Draft202012Validator.check_schema(cut)
    assert '"enum":[]' not in text
    assert '"required":[]' not in text
    assert cut["required"] == schema["required"]
    assert cut.get("properties", {}).keys() <= schema.get("properties", {}).keys()
    value: Any = {"p0": "ebb"}
    for _ in range(30):
        if Draft202012Validator(schema).is_valid(value):
            assert Draft202012Validator(cut).is_valid(value)
        value = {"p0": value, "k0": {"p0": "flood"}, "p1": "ebb"}
    assert all(f'"{name}":' in text for name in [*schema.get("properties", {})][:300])


REFERENCE = {"id": {"readOnly": True}, "type": {"readOnly": True}}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "string", "x-nullable": True}, {"type": ["string", "null"]}),
        ({"type": "string", "nullable": False}, {"type": "string"}),
        ({"$ref": "#/components/schemas/Tide", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"allOf": [{"$ref": "#/components/schemas/Tide"}], "nullable": True, "description": "High."},
            {"description": "High.", "anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]},
        ),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, {"type": "number", "exclusiveMinimum": 0}),
        ({"type": "number", "maximum": 9, "exclusiveMaximum": False}, {"type": "number", "maximum": 9}),
        ({"type": "number", "exclusiveMinimum": True}, {"type": "number"}),
        ({"type": "string", "format": "date", "minimum": "2024-01-01"}, {"type": "string", "format": "date"}),
        ({"type": "string", "pattern": "(a", "maxLength": "9"}, {"type": "string"}),
        ({"type": "string", "x-go-name": "Tide", "xml": {"name": "t"}, "discriminator": {}}, {"type": "string"}),
        (
            {"$ref": "#/components/schemas/Tide", "type": "number", "description": "High."},
            {"type": "string", "description": "High."},
        ),
        (
            {"type": "array", "items": {"$ref": "#/components/schemas/Log"}},
            {
                "type": "array",
                "items": {"type": "object", "required": ["note"], "properties": {"note": {"type": "string"}}},
            },
        ),
        (
            {
                "allOf": [
                    {"properties": {"id": {"allOf": [{"$ref": "#/components/schemas/Id"}]}, "a": {}}},
                    {"required": ["id", "a"]},
                ],
                "required": ["id"],
            },
            {"allOf": [{"properties": {"a": {}}}, {"required": ["a"]}], "required": []},
        ),
        (
            {
                "allOf": [
                    {"properties": {"id": {"readOnly": True}}},
                    {"required": ["id"], "properties": {"id": {}, "a": {}}},
                ]
            },
            {
                "allOf": [
                    {"properties": {"id": {"readOnly": True}}},
                    {"required": ["id"], "properties": {"id": {}, "a": {}}},
                ]
            },
        ),
        (
            {"allOf": [{"properties": REFERENCE}, {"required": ["id", "type"], "properties": {"type": {}}}]},
            {"allOf": [{"properties": REFERENCE}, {"required": ["id", "type"], "properties": {"type": {}}}]},
        ),
        ({"nullable": True, "type": "string", "enum": []}, {"type": ["string", "null"]}),
        (
            {"required": ["id"], "properties": {"id": {"$ref": "#/components/schemas/Id"}}},
            {"required": ["id"], "properties": {"id": {"type": "integer", "readOnly": True}}},
        ),
    ],
)
def test_a_schema_of_openapi_becomes_one_of_2020_12(written: Any, read: Any):
    schemas = {
        "Tide": {"type": "string"},
        "Id": {"type": "integer", "readOnly": True},
        "Log": {
            "type": "object",
            "required": ["id", "note"],
            "properties": {"id": {"$ref": "#/components/schemas/Id"}, "note": {"type": "string"}},
        },
    }
    made = body_of(document(takes(written), components={"schemas": schemas}))
    assert made == read
    Draft202012Validator.check_schema(made)


# Names, tags, servers


NAMED = [  # operationId, name, and whether a note says why they differ
    ("tides", "tides", False),
    ("tides", "GET /1", True),
    ("a\tb", "GET /2", True),
    ("a\u200bb", "GET /3", True),
    ("x" * 201, "GET /4", True),
    (7, "7", False),
    (None, "GET /6", False),
    ("GET /6", "GET /7", True),
    ("GET /8", "GET /8", False),
]


def test_an_operation_whose_id_is_taken_or_no_name_is_named_after_its_path():
    paths: dict[str, Any] = {f"/{n}": {"get": {"operationId": id, "summary": "s"}} for n, (id, *_) in enumerate(NAMED)}
    copy = {"query": {"operationId": "q", "summary": "s"}, "additionalOperations": {"COPY": {"summary": "s"}}}
    found = mapped(document({**paths, "/copy": copy}, version="3.2.0"))
    named = [(one.registration.name, bool(one.notes)) for one in found if one.registration]
    assert named == [*((name, noted) for _, name, noted in NAMED), ("q", False), ("COPY /copy", False)]


@pytest.mark.parametrize(
    ("tags", "held", "is_noted"),
    [
        ([2024, "tides", 1.5, "tides"], ["2024", "tides", "1.5"], False),
        (["tides", None, {"name": "x"}, True], ["tides"], True),
        ([f"tide {n}" for n in range(101)], [f"tide {n}" for n in range(100)], True),
        ("tides", None, True),
        (None, None, False),
        ([], None, False),
    ],
)
def test_tags_that_cannot_be_held_are_noted(tags: Any, held: Any, is_noted: bool):
    (found,) = mapped(document(berth(tags=tags)))
    assert found.registration
    assert (found.registration.item().get("tags"), bool(found.notes)) == (held, is_noted)


def server(url: str, **defaults: str) -> dict[str, Any]:
    return {"url": url, "variables": {name: {"default": default} for name, default in defaults.items()}}


HTTP, HTTPS = "http://api.harbour.example", "https://api.harbour.example"


@pytest.mark.parametrize(
    ("servers", "endpoint", "namespace"),
    [
        ([server("http://localhost:8000"), server(HARBOUR)], HARBOUR, "example.harbour.api"),
        ([server("wss://api.harbour.example"), server(HARBOUR)], HARBOUR, "example.harbour.api"),
        ([server("http://10.0.0.1/"), server("/v1"), server(HARBOUR)], HARBOUR, "example.harbour.api"),
        ([server("//api.harbour.example/v1")], HARBOUR, "example.harbour.api"),
        ([server("{scheme}://api.harbour.example/v1", scheme="https")], HARBOUR, "example.harbour.api"),
        ([server("https://{own}", own="you.harbour.example")], "https://you.harbour.example", "example.harbour"),
        ([server("https://{own}.harbour.example/v1", own="you")], "https://you.harbour.example/v1", "example.harbour"),
        ([server("https://{at}.api.port.co.uk:8443", at="eu")], "https://eu.api.port.co.uk:8443", "uk.co.port.api"),
        ([server("https://{own}", own="you.port.co.uk")], "https://you.port.co.uk", "uk.co.port"),
        ([server("https://{own}/v1", own="HOSTNAME")], "https://HOSTNAME/v1", ""),
        ([server("https://{own}/v1")], "https://{own}/v1", ""),
        ([server("https://{own}api.harbour.example", own="")], HTTPS, "example.harbour.api"),
        ([server("https://{own}/v1", own="")], "https://{own}/v1", ""),
        ([server("http://localhost:8000")], "http://localhost:8000", ""),
        ([server(HTTP), server(HTTPS)], HTTPS, "example.harbour.api"),
        ([server(HTTP), server("https://api.port.example")], HTTP, "example.harbour.api"),
    ],
)
def test_the_first_public_server_is_called_and_no_placeholder_is_a_namespace(
    servers: Any, endpoint: str, namespace: str
):
    paths = {"/tides": {"get": {"summary": "Tides."}}}
    *notes, found = mapped(document(paths, servers=servers, info={}), namespace="")
    if not namespace:
        assert "give --namespace" in found.faults[0].message
        *notes, found = mapped(document(paths, servers=servers, info={}))
    assert found.registration
    assert found.registration.endpoint == f"{endpoint}/tides"
    assert found.registration.namespace == (namespace or "org.harbour")
    is_noted = (
        not servers[0]["url"].startswith(("https://{own}.", "https://{at}", "{", "//", HTTP))
        and "own" not in servers[0]["variables"]
    )
    assert bool(notes) == (is_noted or not namespace)


QUERIED = [{"url": f"{HARBOUR}/?v=2"}]
TIDES, ROOT = {"summary": "Tides."}, [{"url": "/v2"}]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (document({"/tides": {"get": TIDES}, "/x": {"get": TIDES}}, servers=[]), "names no server"),
        ({"swagger": "2.0", "paths": {"/tides": {"get": TIDES}}}, "names no server"),
        (document({"/tides": {"get": {**TIDES, "servers": [{"url": HARBOUR}]}}}, servers=[]), ""),
        (document({"/tides": {"get": {**TIDES, "servers": ROOT}}}), "'/v2/tides', which is no address"),
        (document({"/tides": {"servers": ROOT, "get": TIDES}}, servers=[]), "'/v2/tides', which is no address"),
        (document({"/tides": {"get": TIDES}}, servers=ROOT), "has no public host"),
        (document({"/tides": {"get": TIDES}}), ""),
    ],
)
def test_what_cannot_be_called_for_its_address_has_one_note(value: Any, said: str):
    notes = [note.message for found in mapped(value) for note in found.notes]
    assert len(notes) == bool(said)
    assert said in "".join(notes)


# Calls


def call(value: Any, arguments: Mapping[str, Any], **options: Any) -> Mapping[str, Any]:
    item = only(value)
    found = mapped(value)[0].registration
    assert found, item
    return (
        Caller(environment={}, **options).prepare(from_text(profile_of(found, origin="").invocation), arguments).shown
    )


def at(path: str, *parameters: Mapping[str, Any], **operation: Any) -> dict[str, Any]:
    return document({path: {"get": {"summary": "s", "parameters": list(parameters), **operation}}}, version="3.2.0")


def placed(name: str, place: str = "path", **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, **({"required": True} if place == "path" else {}), "schema": {}, **more}


@pytest.mark.parametrize(
    ("value", "arguments", "url"),
    [
        (at("/h?mode=full&raw"), {}, "/h?mode=full&raw"),
        (at("/h?mode=full", placed("q", "query")), {"q": "a b"}, "/h?mode=full&q=a%20b"),
        (at("/h?id={id}&mode=full", placed("id", "query")), {"id": 7}, "/h?mode=full&id=7"),
        (at("/h?id={id}", placed("id")), {"id": 7}, "/h?id=7"),
        (at("/h{?limit,after}", placed("limit", "query")), {"limit": 2}, "/h?limit=2"),
        (at("/i/{id:[0-9]{1,3}}", placed("id")), {"id": "a/b"}, "/i/a%2Fb"),
        (at("/b/{key+}", placed("key")), {"key": "x/y z"}, "/b/x/y%20z"),
        (at("/b/{proxy+}", placed("proxy+")), {"proxy+": "x/y"}, "/b/x/y"),
        (at("/b/{key*}", placed("key")), {"key": "x/y"}, "/b/x/y"),
        (at("/b/{*key}", placed("key")), {"key": "x/y"}, "/b/x/y"),
        (at("/b/{key:path}", placed("key")), {"key": "x/y"}, "/b/x/y"),
        (at("/{name=quays/*}:close", placed("name")), {"name": "quays/1"}, "/quays/1:close"),
        (at("/q/:id/x", placed("id")), {"id": "7"}, "/q/7/x"),
        (at("/q/:close"), {}, "/q/:close"),
        (at("/{undeclared}/x"), {"undeclared": "7"}, "/7/x"),
        (at("/q#Action=Ebb", placed("Action", "query")), {"Action": "Ebb"}, "/q?Action=Ebb"),
        (at("/q#other_form"), {}, "/q"),
        ({**at("/q?raw", placed("f", "query")), "servers": QUERIED}, {"f": 1}, "/q?v=2&raw&f=1"),
        ({"swagger": "2.0", "host": "api.harbour.example", "basePath": "v1", "paths": {"/q": {"get": {}}}}, {}, "/q"),
        (at("/a b/café%20x/{id}", placed("id")), {"id": "7"}, "/a%20b/caf%C3%A9%20x/7"),
        (at("/q", placed("f", "query", style="deepObject", explode=True)), {"f": {"a": {"b": 1}}}, "/q?f[a][b]=1"),
        (at("/q", placed("f", "query", style="spaceDelimited", explode=False)), {"f": ["a", "b"]}, "/q?f=a%20b"),
        (at("/q", placed("f", "query", allowReserved=True)), {"f": "a/b:c&d"}, "/q?f=a/b:c%26d"),
        (
            at(
                "/q",
                {"name": "all", "in": "querystring", "content": {"application/x-www-form-urlencoded": {"schema": {}}}},
            ),
            {"all": {"a": 1, "b": "x"}},
            "/q?a=1&b=x",
        ),
    ],
)
def test_the_address_of_a_call_is_that_of_the_document(value: Any, arguments: Mapping[str, Any], url: str):
    assert call(value, arguments)["url"] == HARBOUR + url


def test_what_a_path_does_not_send_is_not_called_and_a_secret_in_it_is_not_shown():
    (found,) = mapped(at("/q#Action=Ebb"))
    assert found.registration
    assert "cannot be called" in found.notes[0].message
    assert not profile_of(found.registration, origin="").invocation
    keyed = {**at("/q"), "servers": [{"url": f"{HARBOUR}?v=2&token=abc"}]}
    assert only(keyed)["descriptor"]["serverQuery"] == "v=2"
    with pytest.raises(CapabilityError, match="token: needs a value"):
        call(keyed, {})
    secret = at("/q?token=abc&trace=0a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d")
    with pytest.raises(CapabilityError, match="token: needs a value"):
        call(secret, {})


FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data"
CARD = {
    "type": "object",
    "properties": {"card": {"type": "object"}, "tags": {"type": "array", "items": {"type": "string"}}},
}
JSON, MERGE = "application/json", "application/merge-patch+json"


@pytest.mark.parametrize(
    ("content", "body", "media_type", "sent"),
    [
        (
            {FORM: {"encoding": {"card": {"style": "deepObject", "explode": True}}}},
            {"card": {"n": {"m": "4"}}},
            FORM,
            "card[n][m]=4",
        ),
        (
            {FORM: {"encoding": {"tags": {"style": "deepObject"}, "dues": {"style": "deepObject"}}}},
            {"tags": ["a", "b"], "dues": [{"sum": 1}, {"sum": 2, "for": ["c"]}]},
            FORM,
            "tags[]=a&tags[]=b&dues[0][sum]=1&dues[1][sum]=2&dues[1][for][]=c",
        ),
        ({FORM: {}}, {"card": {"n": 4}, "tags": ["a", "b"]}, FORM, "card=%7B%22n%22%3A%204%7D&tags=a&tags=b"),
        (
            {FORM: {"encoding": {"tags": {"style": "spaceDelimited", "explode": False}}}},
            {"tags": ["a", "b"]},
            FORM,
            "tags=a%20b",
        ),
        ({FORM: {"encoding": {"tags": {"style": "form", "explode": False}}}}, {"tags": ["a", "b"]}, FORM, "tags=a,b"),
        (
            {FORM: {"encoding": {"tags": {"contentType": JSON}}}},
            {"tags": ["a", None]},
            FORM,
            "tags=%5B%22a%22%2C%20null%5D",
        ),
        ({"": {}}, {"a": 1}, JSON, '{"a": 1}'),
        ({"*/*": {}}, {"a": 1}, JSON, '{"a": 1}'),
        ({"application/*": {}}, [1], JSON, "[1]"),
        ({"text/*": {}}, "ebb", "text/plain", "ebb"),
        ({"application/json-patch+json": {}, JSON: {}}, {"a": 1}, JSON, '{"a": 1}'),
        ({"application/json-patch+json": {}, MERGE: {}}, {"a": 1}, MERGE, '{"a": 1}'),
        (
            {"application/merge-patch+json": {}, "application/vnd.tide+json": {}},
            {"a": 1},
            "application/vnd.tide+json",
            '{"a": 1}',
        ),
        ({"application/xml": {}, "text/json; charset=utf-8": {}}, {}, "text/json; charset=utf-8", "{}"),
        ({"application/x-ndjson": {}, JSON: {}}, {}, JSON, "{}"),
        ({"application/xml": {}}, "<a/>", "application/xml", "<a/>"),
        ({"application/xml": {}}, {"a": 1}, None, "must be text"),
        ({"application/octet-stream": {}}, {"filename": "x", "base64": "YWI="}, "application/octet-stream", "ab"),
    ],
)
def test_a_body_is_sent_as_the_document_has_it(content: Any, body: Any, media_type: Any, sent: str):
    with_schema = {name: {"schema": CARD, **media} for name, media in content.items()}
    value = document(berth(requestBody={"content": with_schema}))
    if media_type is None:
        with pytest.raises(CapabilityError, match=sent):
            call(value, {"body": body})
        return
    shown = call(value, {"body": body})
    assert (shown["headers"]["content-type"], shown["body"]) == (media_type, sent)


def test_parts_of_a_form_have_the_media_types_of_their_encoding():
    encoding = {
        "card": {"contentType": "application/vnd.card+json"},
        "photo": {"contentType": "image/png, image/jpeg"},
        "dues": {"contentType": "application/xml"},
    }
    value = document(takes(CARD, PARTS, encoding=encoding))
    body = {"card": {"n": 1}, "tags": ["a", "b"], "photo": {"filename": "p.png", "base64": "YWI="}}
    sent = call(value, {"body": body})["body"]
    assert 'name="card"\r\nContent-Type: application/vnd.card+json\r\n\r\n{"n": 1}' in sent
    assert "Content-Type: image/png\r\n\r\nab" in sent
    assert sent.count('name="tags"') == 2
    for value_sent, spelled in ((4, "4"), (True, "true")):
        written = call(value, {"body": {"tags": value_sent}})["body"]
        assert f'name="tags"\r\nContent-Type: text/plain\r\n\r\n{spelled}\r\n' in written
    assert "<a/>" in call(value, {"body": {"dues": "<a/>"}})["body"]
    with pytest.raises(CapabilityError, match="is sent as application/xml"):
        call(value, {"body": {"dues": {"sum": 1}}})
    lists = {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}}
    swagger = {"swagger": "2.0", "host": "api.harbour.example", "paths": berth(parameters=[lists])}
    assert call(swagger, {"body": {"tags": ["a", "b"]}})["body"] == "tags=a,b"
    tabs = {**swagger, "paths": berth(parameters=[{**lists, "collectionFormat": "tsv"}])}
    assert call(tabs, {"body": {"tags": ["a", "b"]}})["body"] == "tags=a%09b"


@pytest.mark.parametrize(
    ("file", "value"),
    [
        ({"type": "string", "contentMediaType": "image/png"}, {"filename": "p.png", "base64": "YWI="}),
        ({"type": "string", "format": "binary"}, {"filename": "p.png", "content": "ab"}),
        ({"type": "array", "items": {"type": "string", "contentMediaType": "image/png"}}, [{"filename": "p.png"}]),
        ({"anyOf": [{"type": "string", "contentMediaType": "image/png"}, {"type": "null"}]}, {"filename": "p.png"}),
    ],
)
def test_a_file_is_taken_as_its_schema_says_that_is_handed_over(file: Any, value: Any):
    (found,) = mapped(document(takes({"type": "object", "properties": {"photo": file}}, PARTS), version="3.1.0"))
    assert found.registration
    profile = profile_of(found.registration, origin="")
    tool, arguments = tool_of(profile), {"body": {"photo": value}}
    for schema in (tool.valid_schema, json.loads(profile.input_schema)):
        shown = Caller(environment={}).prepare(tool.invocation, arguments, schema=schema).shown
        assert 'name="photo"; filename="p.png"' in shown["body"]
    Draft202012Validator(tool.valid_schema).validate(arguments)
    assert not Draft202012Validator(tool.valid_schema).is_valid({"body": {"photo": "text"}})


def test_a_body_of_bytes_is_a_file_and_encoded_text_is_none():
    bytes_of = {"type": "string", "contentMediaType": "image/png"}
    assert body_of(document(takes(bytes_of, "image/png"))) == {**bytes_of, "format": "binary"}
    for schema, media_type in (({**bytes_of, "contentEncoding": "base64"}, "image/png"), (bytes_of, JSON)):
        assert body_of(document(takes(schema, media_type))) == schema


def test_an_operation_that_is_too_large_for_its_responses_is_taken_without_them():
    large = {"200": {"description": "Booked.", "content": {JSON: {"example": "x" * 400_000}}}}
    (found,) = mapped(document(berth(responses=large)))
    assert found.registration
    assert "responses" not in (found.registration.descriptor or {})
    assert "`responses` are left out" in found.notes[0].message
    (found,) = mapped(document(berth(responses=large, remarks="x" * 400_000)))
    assert "the maximum is" in found.faults[0].message


# All of it at once

LINER = {
    "type": "object",
    "required": ["id", "name", "length"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "name": {"type": "string", "nullable": True},
        "length": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        "flag": {"$ref": "#/components/schemas/Flag"},
    },
}
QUERY = [
    placed("limit", "query", required=True, schema={"type": "integer", "maximum": 9}),
    placed("tags", "query", schema={"type": "array", "items": {"type": "string"}}),
    placed("trace", "header", required=True, schema={"type": "string"}),
]
OPERATIONS: dict[tuple[str, str], tuple[dict[str, Any], Any, str, dict[str, str], str]] = {
    # path, method: operation, input, and the address, the headers and the body that it makes
    ("/liners", "post"): (
        {"requestBody": {"required": True, "content": {JSON: {"schema": LINER}}}},
        {"body": {"name": None, "length": 2, "flag": "nl"}},
        "/liners", {"content-type": JSON}, '{"name": null, "length": 2, "flag": "nl"}',
    ),
    ("/liners", "get"): (
        {"parameters": QUERY}, {"limit": 3, "tags": ["a", "b"], "trace": "t"},
        "/liners?limit=3&tags=a&tags=b", {"trace": "t"}, "",
    ),
    ("/liners/{id:[0-9]+}", "delete"): (
        {"parameters": [placed("id", schema={"type": "integer"})]}, {"id": 4}, "/liners/4", {}, "",
    ),
    ("/quays/{name+}?deep=true", "get"): (
        {"parameters": [placed("name", schema={"type": "string"})]}, {"name": "a/b"}, "/quays/a/b?deep=true", {}, "",
    ),
    ("/dues", "post"): (
        {"requestBody": {"content": {FORM: {"schema": CARD, "encoding": {"card": {"style": "deepObject"}}}}}},
        {"body": {"card": {"n": 1}, "tags": ["a", "b"]}},
        "/dues", {"content-type": FORM}, "card[n]=1&tags=a&tags=b",
    ),
    ("/notes", "put"): (
        {"requestBody": {"content": {"*/*": {"schema": {"type": "array", "items": LINER}}}}},
        {"body": [{"name": "x", "length": 1}]},
        "/notes", {"content-type": JSON}, '[{"name": "x", "length": 1}]',
    ),
}  # fmt: skip


def whole() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    for (path, method), (operation, *_) in OPERATIONS.items():
        paths.setdefault(path, {})[method] = {"summary": "s", **operation}
    return document(paths, components={"schemas": {"Flag": {"enum": ["nl", "no"], "nullable": True}}})


def test_every_operation_is_handed_over_in_every_format_and_called_as_documented():
    for one in mapped(whole()):
        assert one.registration
        profile = profile_of(one.registration, origin="")
        tool = tool_of(profile)
        for format, target in _TARGETS.items():
            written = json.dumps(target.define(tool))
            assert "nullable" not in written, format
            for schema in (tool.valid_schema, tool.flat_schema, tool.plain_schema):
                assert schema
                Draft202012Validator.check_schema(schema)
        descriptor = one.registration.descriptor
        assert descriptor
        path, method = str(descriptor["path"]), str(descriptor["method"])
        _, arguments, address, headers, body = OPERATIONS[path, method.lower()]
        Draft202012Validator(tool.valid_schema).validate(arguments)
        shown = Caller(environment={}).prepare(from_text(profile.invocation), arguments).shown
        assert (shown["method"], shown["url"]) == (method.upper(), f"{HARBOUR}{address}")
        assert shown["headers"].items() >= headers.items()
        assert shown.get("body", "") == body
