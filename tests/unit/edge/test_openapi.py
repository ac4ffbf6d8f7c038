"""The document at /openapi.json, and answers that conform to it."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mats.domain.capability.capability import Id, Lifecycle
from mats.domain.errors import RequestInvalid
from mats.domain.profile.index_fields import MatchedWords
from mats.domain.profile.profile import Enrichment, Profile
from mats.domain.prompts.usage import Usage
from mats.domain.search.candidate import Candidate, Result
from mats.domain.search.query import Query
from mats.domain.search.shortlist import Part, Shortlist
from mats.domain.search.signals import Signal
from mats.domain.search.trace import Trace
from mats.domain.search.verdict import Thresholds, Verdict
from mats.edge import http, openapi
from mats.edge.route import load
from mats.edge.routes import ROUTES
from mats.edge.schema import (
    Answer,
    Capability,
    CapabilityParameters,
    DiscoverParameters,
    DiscoverRequest,
    ListParameters,
    Parameters,
    RankedCapability,
)
from mats.local.console import api
from mats.local.places import OPEN
from tests.builders import a_profile

DOCUMENT = json.loads(json.dumps(openapi.document(), allow_nan=False))
SCHEMAS = DOCUMENT["components"]["schemas"]


def _conforms(value: Any, schema: dict[str, Any]) -> bool:
    return Draft202012Validator({**schema, "components": DOCUMENT["components"]}).is_valid(value)


def _refs(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from _refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from _refs(value)


def _result(profile: Profile, **overrides: Any) -> Result:
    values = {
        "candidate": Candidate(profile=profile, bm25=12.5, cosine=0.43),
        "score": 0.841_764_7,
        "signals": {Signal.LLM: 0.95, Signal.BM25: 0.384_615, Signal.QUALITY: 0.7},
        "weights": {Signal.LLM: 10 / 17, Signal.BM25: 1 / 17, Signal.QUALITY: 6 / 17},
        "relevance": 0.95,
        "why": MatchedWords(("refund", "card"), ("name", "description"), ("refunds", "card")),
        "alternates": (Id("org.other/refund"),),
    }
    return Result(**{**values, **overrides})


def _shortlist(*ranked: Result, **overrides: Any) -> Shortlist:
    trace = {
        "took_ms": {"encode": 6.123_4, "total": 9.0},
        "usage": Usage(input_tokens=1_400, output_tokens=58, usd=0.00006),
        "index": "sqlite",
        "encoder": "minilm",
        "reranker": "nova",
        "prompt": "p1",
        "thresholds": Thresholds(match=0.6, weak=0.1),
    }
    values = {"query_id": "q-1", "query": Query(query="refund"), "verdict": Verdict.MATCH, "intent": "tool"}
    values |= {"ranked": ranked, "shown": len(ranked)}
    made = Trace(**{**trace, **{key: value for key, value in overrides.items() if key not in values}})
    return Shortlist(**{**values, **{key: overrides[key] for key in values if key in overrides}}, trace=made)


ENRICHMENT = Enrichment(summary="Returns money.", action="Reverse a charge.", keywords=("refund",))
FULL = _shortlist(
    _result(a_profile(enrichment=ENRICHMENT, version="3", endpoint="https://a.example", lifecycle="deprecated")),
    _result(a_profile(name="wire"), score=1.0, signals={}, weights={}, why=None, relevance=0.0),
)
BARE = _shortlist(
    verdict=Verdict.NONE, intent=None, degraded=["llm", "neural"], encoder=None, reranker=None, prompt=None, took_ms={},
    usage=Usage(),
)  # fmt: skip


PARTS = (
    Part(text="refund", verdict=Verdict.MATCH, results=(Id("com.acme.pay/refund_payment"),)),
    Part(text="sing", verdict=Verdict.NONE, results=()),
    Part(text="dance", verdict=None, results=()),
)


LOCAL = json.loads(json.dumps(openapi.document((*ROUTES, *api.ROUTES), open_paths=OPEN), allow_nan=False))
DOCUMENTS = pytest.mark.parametrize("document", [DOCUMENT, LOCAL], ids=["aws", "local"])


@DOCUMENTS
def test_schemas_are_those_referred_to(document):
    assert document["openapi"].startswith("3.1")
    assert {f"#/components/schemas/{name}" for name in document["components"]["schemas"]} == set(_refs(document))


@DOCUMENTS
def test_operations_have_unique_ids_and_described_responses(document):
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert all(response["description"] for o in operations for response in o["responses"].values())


@pytest.mark.parametrize(("body", "taken"), [
    ({"query": "refund"}, True),
    ({"query": "refund", "kinds": ["tool"], "namespaces": ["com.acme"], "tags": ["a"], "limit": 25}, True),
    ({"query": "refund", "limit": None, "explain": True}, True),
    ({"query": "refund", "format": "mcp_tools"}, True),
    ({"query": "refund", "format": None}, True),
    ({"query": "refund", "format": "gemini"}, False),
    ({"query": ""}, False),
    ({"query": "x" * 2_001}, False), ({"query": "refund", "limit": 0}, False),
    ({"query": "refund", "kinds": ["robot"]}, False), ({"query": "refund", "tags": [""]}, False),
    ({"query": "refund", "k": 3}, False), ({}, False), ({"query": None}, False),
    ({"query": "refund", "parts": True}, False),
    ({"queries": ["refund", "mail"]}, True), ({"queries": ["refund", "mail"], "query": None}, True),
    ({"queries": ["refund"]}, False), ({"queries": ["refund"] * 8}, False), ({"queries": ["refund", ""]}, False),
    ({"queries": ["refund", "x" * 2_001]}, False), ({"queries": ["refund", "mail"], "query": "refund"}, False),
])  # fmt: skip
def test_requests_are_accepted_exactly_as_documented(body, taken):
    assert _conforms(body, {"$ref": "#/components/schemas/DiscoverRequest"}) is taken
    if taken:
        assert DiscoverRequest.of(body, DiscoverParameters())
    else:
        with pytest.raises(RequestInvalid):
            DiscoverRequest.of(body, DiscoverParameters())


def test_the_registry_and_scopes_are_in_the_document_of_the_local_service_alone():
    assert not [path for path in DOCUMENT["paths"] if path.startswith("/registry")]
    for route in (*(route for route in ROUTES if route.operation_id), *api.ROUTES):
        operation = LOCAL["paths"][route.documented_path][route.method.lower()]
        needed = None if route.path in OPEN else [{"token": [route.scope]}]
        assert operation.get("security") == needed
    schemas = LOCAL["components"]["schemas"]
    assert schemas["Registration"]["required"] == ["namespace", "name", "kind"]
    assert schemas.keys() > SCHEMAS.keys()
    assert {name: schemas[name] for name in SCHEMAS} == SCHEMAS


@pytest.mark.parametrize("shortlist", [FULL, BARE, replace(FULL, parts=PARTS)], ids=["full", "bare", "parts"])
def test_answers_match_the_document(shortlist):
    response = http.json_response(Answer.of(shortlist))
    (promised,) = DOCUMENT["paths"]["/discover"]["post"]["responses"]["200"]["content"].values()
    assert _conforms(json.loads(response.body), promised["schema"])
    assert Answer.model_validate_json(response.body) == Answer.of(shortlist)
    assert bool(Answer.of(shortlist).versions.models) == (shortlist is not BARE)


def test_parts_refer_to_the_results_and_name_what_nothing_serves():
    answer = json.loads(http.json_response(Answer.of(replace(FULL, parts=PARTS))).body)
    serving = {"id": "com.acme.pay/refund_payment", "score": 0.8418, "relevance": 0.95}
    assert answer["parts"] == [
        {"text": "refund", "verdict": "match", "results": [serving]},
        {"text": "sing", "verdict": "none", "results": []},
        {"text": "dance", "verdict": None, "results": []},
    ]
    assert answer["uncovered"] == ["sing"]


def test_an_answer_says_what_the_contract_shows():
    answer = json.loads(http.json_response(Answer.of(FULL)).body)
    assert answer["verdict"] == "match"
    assert answer["took_ms"] == {"encode": 6.1, "total": 9.0}
    assert answer["cost"] == {"input_tokens": 1_400, "output_tokens": 58, "usd": 0.00006}
    models = {"rerank": "nova", "embed": "minilm"}
    assert answer["versions"] == {"index": "sqlite", "prompt": "p1", "models": models, "calibration": None}
    assert answer["results"][0] == {
        "id": "com.acme.pay/refund_payment",
        "kind": "tool",
        "name": "refund_payment",
        "namespace": "com.acme.pay",
        "version": "3",
        "score": 0.8418,
        "signals": {"llm": 0.95, "bm25": 0.3846, "quality": 0.7},
        "weights": {"llm": 0.5882, "bm25": 0.0588, "quality": 0.3529},
        "relevance": 0.95,
        "summary": "Returns money.",
        "endpoint": "https://a.example",
        "provider": "",
        "provider_verified": False,
        "lifecycle": Lifecycle.DEPRECATED,
        "suspicious": [],
        "effects": [],
        "unfit": "",
        "alternates": ["org.other/refund"],
        "enriched": True,
        "why": {
            "matched": ["refund", "card"],
            "fields": ["name", "description"],
            "spelled": ["refunds", "card"],
            "used_for": None,
        },
    }


def test_audiences_of_a_capability_are_never_shown():
    assert "ops" not in http.json_response(Capability.of(a_profile(visible_to=["ops"]))).body
    assert "ops" not in http.json_response(Answer.of(_shortlist(_result(a_profile(visible_to=["ops"]))))).body


def test_profile_without_content_is_never_shown():
    nothing = Profile(namespace="com.acme", name="x")
    with pytest.raises(ValueError, match=r"com\.acme/x"):
        Capability.of(nothing)
    with pytest.raises(ValueError, match=r"com\.acme/x"):
        RankedCapability.of(_result(nothing))


def test_a_path_has_one_method():
    """Dispatch looks for a path alone, and OpenAPI has an entry for each."""
    assert [path for path, count in Counter(route.documented_path for route in ROUTES).items() if count > 1] == []
    methods = {(route.path, route.method) for route in ROUTES}
    assert len(methods) == len({path for path, _ in methods})


def test_a_route_with_an_ending_comes_before_the_route_of_its_path():
    """Dispatch takes the first that matches."""
    places = {route.documented_path: place for place, route in enumerate(ROUTES)}
    for route in ROUTES:
        if route.ending:
            assert places[route.documented_path] < places[route.path.replace("+}", "}")]


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.documented_path)
def test_a_route_names_a_handler_and_a_model_of_parameters(route):
    assert callable(load(route.handler))
    assert not route.query or issubclass(load(route.query), Parameters)


@pytest.mark.parametrize(("model", "query", "faulty"), [
    (ListParameters, {"limit": ["2"], "kind": ["tool", "agent"]}, []),
    (ListParameters, {"limit": ["1", "2"]}, ["limit"]),
    (ListParameters, {"limit": [" 5"]}, ["limit"]), (ListParameters, {"kinds": ["tool"]}, ["kinds"]),
    (CapabilityParameters, {"snippets": ["true"], "x": ["1", "2"]}, []),
    (CapabilityParameters, {"snippets": ["yes"]}, ["snippets"]),
    (DiscoverParameters, {"x": [""], "a": [""]}, ["a", "x"]),
])  # fmt: skip
def test_a_query_string_is_parsed_as_its_model_says(model, query, faulty):
    try:
        assert model.of(query).model_fields_set <= query.keys()
        found = []
    except RequestInvalid as error:
        found = [fault.attribute for fault in error.faults]
    assert found == faulty
