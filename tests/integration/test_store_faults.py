"""Faults between the adapters and their stores, the same for every store in AWS: one table, one suite.

A new store is one more value in STORES. What only one store can do is in test_dynamodb_faults and
test_opensearch_faults.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from mats.adapters.dynamodb.profiles import DynamoProfiles, DynamoTargets
from mats.adapters.dynamodb.registry import DynamoCallers, DynamoRegistry, DynamoTrust
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.opensearch.domain import Domain, Missing
from mats.adapters.opensearch.index import ALIAS, OpenSearchIndex
from mats.adapters.opensearch.memory import OpenSearchMemory
from mats.domain.errors import DependencyFailed, NotPermitted
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Assigned
from mats.domain.search.query import Filter
from mats.ports import Stored, Target
from tests.aws.recorder import Cut, Refuse, Stall, every
from tests.aws.tables import credentials
from tests.builders import a_profile, a_registration
from tests.fakes import FakeClock, FakeEncoder
from tests.servers.canned import JSON, CannedResponse

SECRET = "the-owner-wrote-this"
ENCODER = FakeEncoder()
VECTOR = ENCODER.encode_query("words")
PAY = a_registration(name="pay", description=SECRET)
TARGET = Target("capabilities-1", ENCODER.name)

Asking = Callable[[Any], object]


def stored() -> Stored:
    profile = a_profile(name="pay", description=f"words {SECRET}")
    return Stored(profile.model_copy(update={"rev": 1, "encoder": ENCODER.name}), VECTOR)


def an_index(domain: Domain) -> OpenSearchIndex:
    return OpenSearchIndex(domain, lambda: [TARGET], encoder=ENCODER.name, refresh="true")


def a_memory(domain: Domain) -> OpenSearchMemory:
    return OpenSearchMemory(domain=domain, encoder=ENCODER.name, dimension=ENCODER.dimension)


@dataclass(frozen=True)
class Store:
    """How a store is opened, everything that it is asked, and how it refuses."""

    service: str
    open: Callable[[str, float], Any]  # A client of an address, with a timeout in seconds
    named: tuple[str, ...]  # What each error names: one of these
    asked: Mapping[str, Asking]
    needs: frozenset[str]  # Of these questions, an answer without content is an error
    refusals: Mapping[str, bool]  # Codes, or statuses, and whether an operator has to act

    def refusal(self, code: str) -> Refuse:
        """How the service says it."""
        if self.service == "opensearch":
            return Refuse(int(code), "some_exception")
        return Refuse(500 if "Internal" in code else 400, code)


STORES = {
    "dynamodb": Store(
        service="dynamodb",
        open=lambda url, timeout_s: Tables(timeout_s=timeout_s, attempts=1),
        named=("table",),
        asked={
            "registry.get": lambda t: DynamoRegistry(t, "table").get([PAY.id]),
            "registry.put": lambda t: DynamoRegistry(t, "table").put([PAY]),
            "registry.remove": lambda t: DynamoRegistry(t, "table").remove(PAY.id),
            "registry.ids": lambda t: list(DynamoRegistry(t, "table").ids()),
            "trust.get": lambda t: DynamoTrust(t, "table").get([PAY.id]),
            "trust.put": lambda t: DynamoTrust(t, "table").put(PAY.id, Assigned(trust=50)),
            "trust.take back": lambda t: DynamoTrust(t, "table").put(PAY.id, NOTHING_ASSIGNED),
            "profiles.get": lambda t: DynamoProfiles(t, "table").get([PAY.id]),
            "profiles.save": lambda t: DynamoProfiles(t, "table").save([stored()]),
            "profiles.mark": lambda t: DynamoProfiles(t, "table").mark_indexed({PAY.id: 1}),
            "profiles.versions": lambda t: DynamoProfiles(t, "table").versions(PAY.id),
            "profiles.ids": lambda t: list(DynamoProfiles(t, "table").ids()),
            "targets": lambda t: DynamoTargets(t, "table")(),
            "targets.change": lambda t: DynamoTargets(t, "table").change(lambda there: [*there, Target("x", "")]),
            "callers": lambda t: DynamoCallers(t, "table", FakeClock().elapsed_ms).audiences("arn:aws:iam::1:role/x"),
        },
        needs=frozenset({"registry.get", "registry.ids", "profiles.get", "profiles.ids", "trust.get"}),
        refusals={
            **dict.fromkeys(
                ("InternalServerError", "ThrottlingException", "ValidationException", "SomethingNew"), False
            ),
            **dict.fromkeys(("AccessDeniedException", "ResourceNotFoundException", "ExpiredTokenException"), True),
            **dict.fromkeys(("UnrecognizedClientException", "InvalidSignatureException", "IncompleteSignature"), True),
            "MissingAuthenticationTokenException": True,
        },
    ),
    "opensearch": Store(
        service="opensearch",
        open=lambda url, timeout_s: Domain(url, read_s=timeout_s),
        named=("OpenSearch", TARGET.name),
        asked={
            "lexical": lambda d: an_index(d).lexical([SECRET], Filter(), depth=5),
            "neural": lambda d: an_index(d).neural(VECTOR, Filter(), depth=5),
            "bm25_of": lambda d: an_index(d).bm25_of([SECRET], [PAY.id]),
            "cosine_of": lambda d: an_index(d).cosine_of(VECTOR, [PAY.id]),
            "fetch": lambda d: an_index(d).fetch([PAY.id]),
            "revisions": lambda d: an_index(d).revisions([PAY.id]),
            "ids": lambda d: list(an_index(d).ids()),
            "nearest": lambda d: a_memory(d).nearest(VECTOR, depth=5),
            "with_outcomes": lambda d: a_memory(d).with_outcomes([PAY.id], "a"),
            "put": lambda d: an_index(d).put([stored()]),
            "purge": lambda d: an_index(d).purge([PAY.id]),
            "behind": lambda d: d.behind(ALIAS),
            "point": lambda d: d.point(ALIAS, "capabilities-2"),
            "create": lambda d: d.create("capabilities-2", {}),
            "drop": lambda d: d.drop("capabilities-2"),
            "merge": lambda d: d.merge("capabilities-2"),
        },
        needs=frozenset(
            {"lexical", "neural", "bm25_of", "cosine_of", "fetch", "revisions", "nearest", "with_outcomes", "put"}
        ),
        refusals={
            **dict.fromkeys(("400", "413", "429", "500", "502", "503", "504"), False),
            **dict.fromkeys(("401", "403"), True),
        },
    ),
}


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest) -> Store:
    return STORES[request.param]


def failure_of(store: Store, asked: str, client: object) -> DependencyFailed:
    """Its error, which is ours, names the store and gives nothing away."""
    with pytest.raises(DependencyFailed) as failed:
        store.asked[asked](client)
    message = str(failed.value)
    assert any(name in message for name in store.named)
    assert SECRET not in message
    assert len(message) < 700
    return failed.value


def test_every_refusal_is_an_error_with_its_code_whatever_was_asked(store, recorder, caplog):
    client = store.open(recorder.url(store.service), 5)
    for code, by_an_operator in store.refusals.items():
        recorder.play = every(store.refusal(code))
        for asked in store.asked:
            error = failure_of(store, asked, client)
            assert code in str(error), asked
            assert isinstance(error, NotPermitted) is by_an_operator, (code, asked)
            assert not isinstance(error, Missing), (code, asked)
    assert SECRET not in caplog.text


@pytest.mark.parametrize(("act", "timeout_s"), [(Stall(60), 0.05), (Cut(), 5)], ids=["stalled", "cut"])
def test_no_answer_is_an_error_whatever_was_asked(store, recorder, act, timeout_s, monkeypatch):
    for longer in ("domain.WRITE_S", "index._PATIENT_S"):
        monkeypatch.setattr(f"mats.adapters.opensearch.{longer}", timeout_s)
    recorder.play = every(act)
    client = store.open(recorder.url(store.service), timeout_s)
    for asked in store.asked:
        failure_of(store, asked, client)


def test_a_refused_connection_is_an_error(store, monkeypatch):
    credentials(monkeypatch, dynamodb="http://127.0.0.1:1")
    failure_of(store, next(iter(store.asked)), store.open("http://127.0.0.1:1", 5))


@pytest.mark.parametrize(
    "response",
    [
        CannedResponse(b"<html>Sign in to the network</html>", 200, "text/html"),
        CannedResponse(b"", 200),
        CannedResponse(b"[]", 200),
        CannedResponse(b"{}", 200),
        CannedResponse(b'{"Responses": {"table": [3]}, "Items": [3], "Item": 3, "Attributes": 3}', 200),
        CannedResponse(b'{"hits": {"hits": 3}, "docs": null, "items": [3]}', 200),
        CannedResponse(b"\xff\xfe", 200),
        CannedResponse(b'{"Items": [', 200, JSON, 4_000),
        CannedResponse(b"<html>no</html>", 502, "text/html"),
        CannedResponse(b'{"__type": 3, "message": {}, "error": ["x"]}', 400),
    ],
    ids=str,
)
def test_a_response_of_another_shape_is_an_error_or_ignored(store, canned, response):
    client = store.open(canned.url, 5)
    for asked, asking in store.asked.items():
        canned.respond(response)
        if response.status != 200 or (asked in store.needs and b"3" not in response.content):
            failure_of(store, asked, client)
        else:
            with suppress(DependencyFailed):
                asking(client)


def test_a_long_explanation_is_clipped(store, canned):
    said = json.dumps({"__type": "ValidationException", "message": "word " * 50_000, "error": {"reason": "x" * 9_000}})
    canned.respond(CannedResponse(said.encode(), 400, "application/x-amz-json-1.0"))
    failure_of(store, next(iter(store.asked)), store.open(canned.url, 5))
