"""Faults between the adapters and DynamoDB, and the bus of rejections."""

import itertools
import json
import os
import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from mats.adapters.clock import Retention
from mats.adapters.dynamodb import tables as tables_module
from mats.adapters.dynamodb.profiles import DynamoProfiles, DynamoTargets
from mats.adapters.dynamodb.registry import DynamoCallers, DynamoRegistry, DynamoTrust
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.eventbridge import ATTEMPTS, EventBus
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, NotPermitted, RegistrationInvalid
from mats.domain.profile.assignment import Assigned
from mats.domain.profile.origin import Placed
from mats.domain.profile.profile import ChangeResult, Enrichment, Profile, Status
from mats.ports import Stored, Target, Written
from tests.aws.recorder import Cut, Recorder, Refuse, RefuseEntries, every, nth
from tests.aws.tables import a_table, credentials
from tests.builders import a_profile, a_registration, an_item
from tests.fakes import FakeClock, FakeEncoder, ScriptedWriter
from tests.servers.canned import CannedResponse, in_json
from tests.world import World

SECRET = "the-owner-wrote-this"
PAY = a_registration(name="pay", description=SECRET)


def stored(name: str = "pay", *, rev: int = 1, **about: object) -> Stored:
    profile = a_profile(name=name, description=SECRET, **about).model_copy(update={"rev": rev})
    return Stored(profile, array("f", [0.6, 0.8]))


def asking_once() -> Tables:
    """A client for wherever the environment says the service is; making one takes longer than asking."""
    return _made(os.environ["AWS_ENDPOINT_URL_DYNAMODB"], os.environ.get("AWS_ACCESS_KEY_ID"))


@cache
def _made(url: str, key: str | None) -> Tables:
    return Tables(timeout_s=5, attempts=1)


@pytest.mark.parametrize(
    ("code", "to_do"),
    [("ExpiredTokenException", "renew them"), ("AccessDeniedException", "policies of the caller and the stacks")],
)
def test_a_refusal_says_what_to_do(recorder, code, to_do):
    recorder.play = every(Refuse(400, code))
    with pytest.raises(NotPermitted, match=to_do):
        DynamoRegistry(asking_once(), "table").get([PAY.id])


KEY = {"namespace": {"S": "com.acme.pay"}, "name": {"S": "pay"}}


class TestManyRows:
    @pytest.fixture(autouse=True)
    def at_once(self, monkeypatch):
        monkeypatch.setattr(tables_module, "FIRST_WAIT_S", 0.0)

    def said(self, *rows: object, left: bool) -> CannedResponse:
        waiting = {"table": {"Keys": [KEY], "ConsistentRead": True}} if left else {}
        return in_json({"Responses": {"table": list(rows)}, "UnprocessedKeys": waiting})

    def test_keys_that_were_not_got_round_to_are_asked_for_again(self, canned):
        canned.respond(self.said(left=True), self.said(left=True), self.said({**KEY, "trust": {"N": "7"}}, left=False))
        assert DynamoTrust(asking_once(), "table").get([PAY.id]) == {PAY.id: Assigned(trust=7)}
        assert len(canned.asked) == 3

    def test_keys_that_are_never_got_round_to_are_given_up_readably(self, canned):
        canned.respond(self.said(left=True))
        with pytest.raises(DependencyFailed, match="table is over its capacity; try again"):
            DynamoTrust(asking_once(), "table").get([PAY.id])
        assert 3 <= len(canned.asked) <= 10

    def test_interrupted_listing_fails_without_a_partial_list(self, canned):
        first = {"Items": [KEY], "Count": 1, "LastEvaluatedKey": KEY}
        canned.respond(in_json(first), CannedResponse(b"", 503))
        with pytest.raises(DependencyFailed):
            list(DynamoRegistry(asking_once(), "table").ids())


def cancelled(*codes: str) -> CannedResponse:
    """A transaction that was not carried out, for these reasons."""
    said = {
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message": f"Transaction cancelled for specific reasons [{', '.join(codes)}]",
        "CancellationReasons": [{"Code": code} for code in codes],
    }
    return in_json(said, 400, type="application/x-amz-json-1.0")


class TestTwoAtOnce:
    @pytest.mark.parametrize(
        "reasons", [("None", "TransactionConflict"), ("ConditionalCheckFailed", "ThrottlingError")]
    )
    def test_a_revision_that_meets_another_is_late_and_no_error(self, canned, reasons):
        canned.respond(cancelled(*reasons))
        assert list(DynamoProfiles(asking_once(), "table").save([stored()])) == [PAY.id]

    def test_cancelled_transaction_is_an_error_with_its_reason(self, canned):
        canned.respond(cancelled("ThrottlingError", "None"))
        with pytest.raises(DependencyFailed, match="ThrottlingError"):
            DynamoProfiles(asking_once(), "table").save([stored()])

    def test_a_note_that_meets_another_write_is_left_out(self, recorder):
        recorder.play = every(Refuse(400, "TransactionConflictException"))
        DynamoProfiles(asking_once(), "table").mark_indexed({PAY.id: 1})

    def test_a_registration_that_meets_another_is_not_taken_for_one_of_another_kind(self, recorder):
        recorder.play = every(Refuse(400, "TransactionConflictException"))
        with pytest.raises(DependencyFailed, match="is being written by someone else"):
            DynamoRegistry(asking_once(), "table").put([PAY])

    def test_constantly_changing_list_of_indices_fails_with_a_readable_error(self, canned):
        empty = CannedResponse(b"{}")
        late = in_json({"__type": "ConditionalCheckFailedException", "message": "no"}, 400)
        canned.respond(*[empty, late] * 20)
        with pytest.raises(DependencyFailed, match="check whether another reindex is running"):
            DynamoTargets(asking_once(), "table").change(lambda there: [*there, Target("x", "")])
        assert len(canned.asked) <= 20


class TestCallers:
    ROLE = "arn:aws:iam::111122223333:role/agent"

    def holding(self, value: object) -> CannedResponse:
        return in_json({"Item": {"caller": {"S": self.ROLE}, "audiences": value}})

    def callers(self, clock: FakeClock) -> DynamoCallers:
        return DynamoCallers(asking_once(), "table", clock.elapsed_ms)

    def test_a_caller_is_looked_up_once_a_minute_and_a_failing_table_matters_only_then(self, canned):
        clock = FakeClock()
        callers = self.callers(clock)
        rows = (self.holding({"SS": audiences}) for audiences in (["ops"], ["ops", "board"]))
        canned.respond(*rows, CannedResponse(b"", 503))
        for minute, audiences in enumerate(({"ops"}, {"ops", "board"})):
            for ms in (0, 1, 59_999):
                clock.ms = minute * 60_000 + ms
                assert callers.audiences(self.ROLE) == audiences
            assert len(canned.asked) == minute + 1
        clock.ms = 120_000
        with pytest.raises(DependencyFailed, match="table"):
            callers.audiences(self.ROLE)

    @pytest.mark.parametrize(
        ("value", "audiences"),
        [
            ({"L": [{"S": "ops"}, {"N": "3"}, {"L": []}]}, {"ops"}),
            ({"SS": ["ops", "dev"]}, {"ops", "dev"}),
            ({"S": "ops"}, set()),
            ({"M": {"ops": {"BOOL": True}}}, set()),
        ],
    )
    def test_what_an_operator_mistyped_opens_nothing(self, canned, value, audiences):
        canned.respond(self.holding(value))
        assert self.callers(FakeClock()).audiences(self.ROLE) == audiences


def stream_records(count: int) -> list[dict[str, Any]]:
    """Records of the stream of Registry, as Lambda hands them to a function."""
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/mats-registry/stream/2026-01-01T00:00:00.000"
    keys = [{"namespace": {"S": "com.acme"}, "name": {"S": f"tool-{n}"}} for n in range(count)]
    return [
        {"eventSourceARN": arn, "eventName": "MODIFY", "dynamodb": {"Keys": each, "SequenceNumber": str(1_000 + n)}}
        for n, each in enumerate(keys)
    ]


def rejected(n: int = 1) -> Profile:
    return Profile(namespace="com.acme", name=f"tool-{n}", status=Status.REJECTED, error="tags: must be a list")


class TestTheBus:
    def bus(self) -> EventBus:
        return EventBus("mats")

    def test_every_rejection_is_announced_with_id_and_error(self, recorder):
        self.bus().announce_rejections([rejected(n) for n in range(23)])
        told = [json.loads(entry["Detail"]) for entry in recorder.entries]
        assert told == [{"id": f"com.acme/tool-{n}", "error": "tags: must be a list"} for n in range(23)]
        assert [len(call.content["Entries"]) for call in recorder.calls] == [10, 10, 3]
        assert {(e["Source"], e["DetailType"], e["EventBusName"]) for e in recorder.entries} == {
            ("mats.enrichment", "CapabilityRejected", "mats")
        }

    def test_one_that_was_not_taken_is_an_error_though_the_call_was_none(self, canned):
        refused = {"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"}
        answers = ([{"EventId": "1"}, refused], [refused])
        canned.respond(*(in_json({"FailedEntryCount": 1, "Entries": each}) for each in answers))
        with pytest.raises(DependencyFailed, match="bus mats refused 1 of 2 events: ThrottlingException"):
            self.bus().announce_rejections([rejected(1), rejected(2)])
        assert len(canned.asked) == ATTEMPTS

    def test_of_a_hundred_only_the_refused_event_is_sent_again(self, recorder):
        recorder.play = nth(5, RefuseEntries(("tool-43",)), operation="PutEvents")
        assert self.bus().forward(stream_records(100)) is None
        assert [len(call.content["Entries"]) for call in recorder.calls] == [*[10] * 5, 1, *[10] * 5]
        assert len(recorder.entries) == 100

    @pytest.mark.parametrize(
        ("act", "after"),
        [(RefuseEntries(("tool-40", "tool-43")), 40), (RefuseEntries(("tool-43",)), 43), (Cut(), 40)],
        ids=str,
    )
    def test_records_come_again_from_the_first_one_that_was_not_taken(self, recorder, caplog, act, after):
        begun = itertools.count()
        recorder.play = lambda call: act if next(begun) >= 4 else None
        records = stream_records(100)
        with caplog.at_level("INFO", "mats"):
            assert self.bus().forward(records) == records[after]["dynamodb"]["SequenceNumber"]
        assert len(recorder.entries) == 40 + (0 if isinstance(act, Cut) else 10 - len(act.names))
        assert [record.sent for record in caplog.records if record.message == "forwarded"] == [after]

    def test_a_batch_of_which_nothing_was_taken_fails_visibly(self, recorder):
        recorder.play = every(RefuseEntries(("tool-0",)))
        with pytest.raises(DependencyFailed, match="ThrottlingException"):
            self.bus().forward(stream_records(3))

    @pytest.mark.parametrize("content", [b"", b"{}"])
    def test_empty_response_is_not_a_success(self, canned, content):
        canned.respond(CannedResponse(content))
        with pytest.raises(DependencyFailed, match="bus mats"):
            self.bus().announce_rejections([rejected()])

    def test_unacknowledged_events_are_sent_again(self, recorder):
        recorder.play = nth(1, Cut())
        self.bus().announce_rejections([rejected()])
        assert len(recorder.entries) == 1


@pytest.fixture
def real(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """A recorder before DynamoDB Local."""
    with Recorder(dynamodb=request.getfixturevalue("dynamodb_url")) as recorder:
        credentials(monkeypatch, dynamodb=recorder.url("dynamodb"))
        yield recorder


@pytest.mark.server
class TestARealTable:
    @pytest.fixture
    def tables(self, real: Recorder) -> Tables:
        return Tables()

    @pytest.fixture
    def table(self, tables: Tables) -> str:
        return a_table(tables)

    @pytest.mark.parametrize("act", [Cut(), Cut(after=True), Refuse(500, "InternalServerError")], ids=str)
    def test_a_revision_whose_answer_was_lost_is_saved_once_and_not_late(self, real, tables, table, act):
        profiles = DynamoProfiles(tables, table)
        real.play = nth(1, act, operation="TransactWriteItems")
        assert list(profiles.save([stored()])) == []
        assert list(profiles.save([stored(rev=2)])) == []
        assert [version.rev for version in profiles.versions(PAY.id)] == [1]

    def test_a_revision_that_another_overtakes_between_reading_and_writing_is_late(self, tables, table, monkeypatch):
        profiles, get = DynamoProfiles(tables, table), DynamoProfiles.get
        profiles.save([stored()])

        def overtaken(self: DynamoProfiles, ids: Any) -> Any:
            monkeypatch.setattr(DynamoProfiles, "get", get)
            found = self.get(ids)
            assert list(self.save([stored(rev=2)])) == []
            return found

        monkeypatch.setattr(DynamoProfiles, "get", overtaken)
        assert list(profiles.save([stored(rev=2)])) == [PAY.id]

    def test_the_row_of_a_superseded_version_alone_has_the_attribute_that_dynamodb_deletes_by(self, tables, table):
        profiles = DynamoProfiles(tables, table, Retention(1, FakeClock()))
        for rev in (1, 2):
            profiles.save([stored(rev=rev)])
        rows = {row["row"]["S"]: row for row in tables.all_rows(table, "scan")}
        assert rows["version"]["expires_at"] == {"N": "1767312000"}
        assert "expires_at" not in rows["profile"]

    @pytest.mark.parametrize("act", [Cut(), Cut(after=True)], ids=str)
    def test_a_list_of_indices_whose_answer_was_lost_is_changed(self, real, tables, table, act):
        targets = DynamoTargets(tables, table)
        real.play = nth(1, act, operation="PutItem")
        new = Target("capabilities-1", "fake")
        targets.change(lambda there: there if new in there else [*there, new])
        assert targets() == [new]

    def test_two_that_change_the_list_of_indices_at_once_both_do(self, tables, table):
        targets, both_have_read = DynamoTargets(tables, table), threading.Barrier(2, timeout=30)

        def adding(name: str) -> None:
            waited = []

            def change(there):
                if not waited:
                    waited.append(both_have_read.wait())
                return [*there, Target(name, "fake")]

            targets.change(change)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(adding, ["a", "b"]))
        assert sorted(target.name for target in targets()) == ["a", "b"]

    def test_what_is_our_own_is_no_profile_and_no_profile_is_our_own(self, tables, table):
        profiles, targets = DynamoProfiles(tables, table), DynamoTargets(tables, table)
        targets.change(lambda there: [Target("capabilities-1", "fake")])
        strange = Stored(Profile(namespace="~system", name="targets", status=Status.REJECTED, rev=1))
        versions = Stored(Profile(namespace="versions#abc", name="0000000001", status=Status.REJECTED, rev=1))
        assert list(profiles.save([strange, versions, stored()])) == []
        assert targets() == [Target("capabilities-1", "fake")]
        assert set(profiles.ids()) == {strange.profile.id, versions.profile.id, PAY.id}
        assert profiles.get([strange.profile.id])[strange.profile.id].profile == strange.profile

    def test_what_the_service_cannot_keep_is_the_owners_mistake_and_nothing_is_written(self, real, tables, table):
        registry = DynamoRegistry(tables, table)
        for schema in ({"maximum": 10**40 + 1}, {"maximum": 1e126}, {"maximum": 1e-140}, {"": 1}, {"a": [{"": 1}]}):
            with pytest.raises(RegistrationInvalid, match="which DynamoDB cannot store"):
                registry.put([a_registration(input_schema=schema)])
        assert list(registry.ids()) == []

    @pytest.mark.parametrize(
        "descriptor",
        [{"a": [[], {}, None, True, "", 1e-130, 10**38 - 1, 0.1, -0.0]}, {"é\U0001f4b8": "\x00\u2028"}],
        ids=str,
    )
    def test_whatever_json_an_owner_may_write_comes_back(self, tables, table, descriptor):
        registry = DynamoRegistry(tables, table)
        registration = a_registration(descriptor=descriptor)
        assert list(registry.put([registration]).values()) == [Placed.NEW]
        assert Registration.parse(registry.get([registration.id])[registration.id]) == registration


MONEY = "\U0001f4b8"
MOST_WRITTEN = Written(
    enrichment=Enrichment(
        summary=MONEY * 800,
        action=MONEY * 800,
        keywords=tuple(f"{n:02}{MONEY * 298}" for n in range(20)),
        positive_examples=tuple(f"{n:02}{MONEY * 298}" for n in range(20)),
        negative_examples=tuple(f"{n:02}{MONEY * 298}" for n in range(20)),
    ),
    notes=("x" * 2_000,),
)


class Offline(World):
    """Enrichment over real profiles, or over those in memory: what is written there is as large as it gets."""

    def __init__(self, tables: Tables | None, *, writer: bool) -> None:
        written = ScriptedWriter(lambda registration: MOST_WRITTEN) if writer else None
        super().__init__(encoder=FakeEncoder(dimension=1024), writer=written)
        self.clock.time = "2026-01-01T00:00:00.000000+00:00"
        self.kept = DynamoProfiles(tables, a_table(tables)) if tables else self.profiles
        self.events = itertools.count()
        self.enrich = replace(self.enrich, profiles=self.kept)

    def brings(self, item: dict[str, Any]) -> Profile:
        id = Id(f"{item['namespace']}/{item['name']}")
        self.registry.items[id] = item
        outcome = self.deliver(id, event=f"{next(self.events)}".rjust(36, "0"))[id]
        assert outcome in (ChangeResult.INDEXED, ChangeResult.REJECTED, ChangeResult.UNCHANGED)
        return self.kept.get([id])[id].profile


def with_examples(count: int, **more: Any) -> dict[str, Any]:
    said = [f"{n:03}{'x' * 1_990}" for n in range(count)]
    return an_item(name="full", examples=said[:100], negative_examples=said[100:], **more)


@cache
def a_full_item(**more: Any) -> dict[str, Any]:
    """The largest item of its kind that is taken, by any store and with any writer."""
    offline = Offline(None, writer=False)
    counts = range(200)
    refused = bisect_left(
        counts, True, key=lambda count: offline.brings(with_examples(count, **more)).status is Status.REJECTED
    )
    return with_examples(counts[refused - 1], **more)


@pytest.mark.server
class TestTheLargestRows:
    @pytest.mark.parametrize("letter", ["a", MONEY, '"', "\x01"])
    def test_whatever_an_owner_writes_fits_a_row_or_is_rejected_readably(self, real, letter):
        long, short = [f"{n:03}{letter * 1_990}" for n in range(100)], [f"{n:03}{letter * 190}" for n in range(100)]
        largest = {
            "name": letter * 200 if letter == MONEY else "x", "description": f"x{letter * 99_990}y", "examples": long,
            "negative_examples": long, "visible_to": short, "tags": short, "type_tags": short,
            "endpoint": f"x{letter * 2_000}y", "descriptor": {f"p{n}": letter * 9_000 for n in range(9)},
        }  # fmt: skip
        offline = Offline(Tables(), writer=letter == MONEY)
        for chosen in ([*largest], *([key] for key in largest), [key for key in largest if largest[key] is not long]):
            profile = offline.brings(an_item(**{key: largest[key] for key in chosen}))
            if profile.status is Status.REJECTED:
                assert profile.error
                assert "DynamoDB" not in profile.error

    def test_an_enrichment_too_large_for_a_row_is_dropped_with_a_note(self, real):
        offline = Offline(Tables(), writer=True)
        profile = offline.brings(a_full_item(description=MONEY * 20_000))
        assert profile.status is Status.ACTIVE
        assert not profile.enriched
        assert "is too long: its profile would be" in profile.notes[0]
