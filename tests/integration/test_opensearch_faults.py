"""Faults between the adapters and OpenSearch."""

import threading
from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
from botocore.exceptions import TokenRetrievalError

from mats.adapters.dynamodb.profiles import DynamoTargets
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.opensearch.domain import Domain
from mats.adapters.opensearch.generations import OpenSearchGenerations
from mats.adapters.opensearch.index import ALIAS, OpenSearchIndex
from mats.adapters.opensearch.mapping import write_alias
from mats.adapters.opensearch.memory import OpenSearchMemory, memory_body
from mats.domain.errors import DependencyFailed, NotPermitted, OutOfTime
from mats.domain.profile.index_keys import index_keys
from mats.domain.profile.profile import Status
from mats.domain.search.query import Filter
from mats.ports import Stored
from tests.aws.recorder import Cut, Recorder, Refuse, Stall, every, nth
from tests.aws.tables import a_table, credentials
from tests.builders import a_profile
from tests.integration.test_store_faults import ENCODER, SECRET, STORES, TARGET, VECTOR, an_index
from tests.servers.canned import CannedResponse, CannedServer, in_json

PAY = a_profile(name="pay").id
PATIENCE_S = 5


def entry(name: str = "pay", *, rev: int = 1, vector: array | None = VECTOR, text: str = SECRET) -> Stored:
    profile = a_profile(name=name, description=f"words {text}")
    return Stored(profile.model_copy(update={"rev": rev, "encoder": ENCODER.name}), vector)


@pytest.fixture
def domain(recorder: Recorder) -> Domain:
    return Domain(recorder.url("opensearch"), read_s=PATIENCE_S)


@pytest.fixture
def hasty(recorder: Recorder) -> Domain:
    return Domain(recorder.url("opensearch"), read_s=0.2)


@pytest.fixture
def echoing(canned: CannedServer) -> Domain:
    return Domain(canned.url, read_s=PATIENCE_S)


@pytest.mark.parametrize(
    ("status", "code", "kind", "to_do"),
    [
        (503, "some_exception", DependencyFailed, "some_exception"),
        (403, "security_exception", NotPermitted, "access policy"),
        (429, "cluster_block_exception", DependencyFailed, "try again"),
    ],
)
def test_a_refused_search_is_asked_once_and_says_what_to_do(recorder, domain, status, code, kind, to_do):
    recorder.play = every(Refuse(status, code))
    with pytest.raises(kind, match=to_do):
        an_index(domain).lexical(["x"], Filter(), depth=5)
    assert len(recorder.calls) == 1


def test_credentials_that_cannot_be_renewed_need_an_operator(recorder, domain, monkeypatch):
    def expired(*args, **kwargs):
        raise TokenRetrievalError(provider="sso", error_msg="Token has expired and refresh failed")

    monkeypatch.setattr("opensearchpy.helpers.signer.AWSV4Signer.sign", expired)
    with pytest.raises(NotPermitted, match="Token has expired"):
        an_index(domain).lexical(["x"], Filter(), depth=5)
    assert recorder.calls == []


class TestTheNetwork:
    def test_slow_search_times_out_without_a_retry(self, recorder, hasty):
        recorder.play = every(Stall(60))
        with pytest.raises(OutOfTime):
            an_index(hasty).lexical(["x"], Filter(), depth=5)
        assert len(recorder.calls) == 1

    def test_a_page_that_breaks_off_gives_no_half_list(self, canned, echoing, monkeypatch):
        monkeypatch.setattr("mats.adapters.opensearch.index._PAGE", 1)
        hit = {"fields": {"id": ["a/b"]}, "sort": ["a/b"]}
        canned.respond(in_json({"hits": {"hits": [hit]}}), CannedResponse(b"", 503))
        with pytest.raises(DependencyFailed):
            list(an_index(echoing).ids())


class TestHalfAnswers:
    def test_documents_that_a_shard_does_not_give_are_not_taken_for_missing(self, canned, echoing):
        lost = {"_index": "x", "_id": "1", "error": {"type": "no_shard_available_action_exception", "reason": SECRET}}
        canned.respond(in_json({"docs": [{"_id": "2", "found": False}, lost]}))
        with pytest.raises(DependencyFailed, match="no_shard_available_action_exception") as failed:
            an_index(echoing).fetch([PAY])
        assert SECRET not in str(failed.value)

    def test_searches_ask_for_all_shards_or_none(self, canned, echoing):
        canned.respond(in_json({"hits": {"hits": []}}))
        an_index(echoing).exact(["x"], Filter(), most=5)
        assert "allow_partial_search_results=false" in canned.asked[0]


def results(*said: tuple[int, str]) -> CannedResponse:
    """The outcome of each action of a bulk request."""
    errors = [{"error": {"type": what, "reason": f"because {what}"}} if what else {} for _, what in said]
    items = [{"index": {"status": status, **error}} for (status, _), error in zip(said, errors, strict=True)]
    return in_json({"errors": True, "items": items})


QUOTED = f"failed to parse field [rev]. Preview of field's value: '{SECRET}'"


class TestBulk:
    def test_a_request_is_no_larger_than_small_nodes_take(self, canned, echoing):
        canned.respond(in_json({"errors": False, "items": []}))
        an_index(echoing).put([entry(str(number), text="word " * 18_000) for number in range(100)])
        assert len(canned.asked) == 2

    def test_a_later_revision_that_is_there_already_is_fine(self, canned, echoing):
        canned.respond(results((201, ""), (409, "version_conflict_engine_exception")))
        an_index(echoing).put([entry("a"), entry("b")])

    def test_every_other_error_of_an_entry_is_named_with_its_reason_once(self, canned, echoing):
        canned.respond(
            results((200, ""), (429, "rejected_execution"), (429, "rejected_execution"), (400, "mapper_parsing"))
        )
        with pytest.raises(DependencyFailed) as failed:
            an_index(echoing).put([entry(name) for name in "abcd"])
        message = str(failed.value)
        assert "rejected 3 of 4 entries" in message
        assert message.count("429 rejected_execution: because rejected_execution") == 1
        assert "400 mapper_parsing: because mapper_parsing" in message

    @pytest.mark.parametrize(
        ("error", "said"), [({"type": "mapper", "reason": QUOTED}, r"failed to parse field \[rev\]"), (None, "500")]
    )
    def test_an_error_is_one_without_a_reason_too_and_quotes_no_owner(self, canned, echoing, error, said):
        canned.respond(in_json({"items": [{"index": {"status": 500, **({"error": error} if error else {})}}]}))
        with pytest.raises(DependencyFailed, match=said) as failed:
            an_index(echoing).put([entry()])
        assert SECRET not in str(failed.value)

    def test_many_long_reasons_are_clipped(self, canned, echoing):
        canned.respond(results(*[(500, f"{n}{'x' * 400}") for n in range(50)]))
        with pytest.raises(DependencyFailed) as failed:
            an_index(echoing).put([entry(str(n)) for n in range(50)])
        assert len(str(failed.value)) < 700


@pytest.mark.server
class TestARealNode:
    @pytest.fixture
    def before(self, opensearch_url: str, recorder: Recorder) -> Iterator[Recorder]:
        with Recorder(opensearch=opensearch_url) as real:
            yield real

    @pytest.fixture
    def node(self, before: Recorder) -> Iterator[Domain]:
        domain = Domain(before.url("opensearch"), read_s=20)
        domain.drop(f"{ALIAS}-*")
        yield domain
        before.play = None
        domain.drop(f"{ALIAS}-*")

    @pytest.fixture
    def targets(self, dynamodb_url: str, monkeypatch: pytest.MonkeyPatch) -> DynamoTargets:
        credentials(monkeypatch, dynamodb=dynamodb_url)
        tables = Tables()
        return DynamoTargets(tables, a_table(tables))

    @pytest.fixture
    def generations(self, node: Domain, targets: DynamoTargets) -> OpenSearchGenerations:
        return OpenSearchGenerations(
            domain=node, targets=targets, encoder=ENCODER.name, dimension=ENCODER.dimension,
            replicas="0-1", refresh="-1", under_way_s=0,
        )  # fmt: skip

    @pytest.fixture
    def index(self, node: Domain, generations: OpenSearchGenerations) -> OpenSearchIndex:
        return OpenSearchIndex(node, generations.writable, generations.restore, encoder=ENCODER.name, refresh="true")

    def found(self, index: OpenSearchIndex) -> list[str]:
        return [id.rpartition("/")[2] for id in index.lexical(["words"], Filter(), depth=20)]

    @pytest.mark.parametrize("asked", sorted(STORES["opensearch"].needs - {"put"}))
    def test_where_nothing_was_ever_indexed_nothing_is_found(self, node, asked):
        assert not STORES["opensearch"].asked[asked](node)

    def test_target_that_cannot_be_restored_fails(self, node):
        index = an_index(node)
        with pytest.raises(DependencyFailed, match=r"no such index|there is no index"):
            index.put([entry()])
        with pytest.raises(DependencyFailed, match="no such index"):
            OpenSearchGenerations(
                domain=node, targets=lambda: [TARGET], encoder=ENCODER.name, dimension=ENCODER.dimension
            ).revisions(TARGET, [entry().profile.id])

    def test_the_memory_of_vectors_of_another_length_is_read_once_it_is_there(self, node):
        alias = "memory-of-lengths"
        short, long = (
            OpenSearchMemory(domain=node, encoder="any", dimension=length, alias=alias, replicas="0-1")
            for length in (2, 3)
        )
        long.follow()
        assert node.behind(alias) == []

        def make(memory: OpenSearchMemory, *aliases: str) -> None:
            name = f"{alias}-{memory.dimension}"
            body = memory_body(memory.dimension, aliases=[write_alias(name), *aliases], replicas="0-1", refresh="1s")
            node.create(name, body)

        make(short, alias)
        long.follow()
        assert node.behind(alias) == [f"{alias}-2"]
        make(long)
        short.follow()
        assert node.behind(alias) == [f"{alias}-2"]
        long.follow()
        assert node.behind(alias) == [f"{alias}-3"]
        short.follow()
        assert node.behind(alias) == [f"{alias}-2"]
        node.drop(f"{alias}-*")

    def test_vector_of_another_length_is_named_and_other_writes_remain(self, index):
        with pytest.raises(DependencyFailed) as failed:
            index.put([entry("good"), entry("bad", vector=array("f", [1.0, 0.0]))])
        assert "rejected 1 of 2 entries" in str(failed.value)
        assert "dimension" in str(failed.value)
        assert SECRET not in str(failed.value)
        assert self.found(index) == ["good"]

    def test_of_equal_trust_the_first_by_id_are_exact(self, index):
        for name in "cab":
            index.put([entry(name)])
        shared = [key for key in index_keys(entry("a").profile) if key.startswith("@")]
        found = index.exact(shared, Filter(), most=2)
        assert [id.rpartition("/")[2] for id in found] == ["a", "b"]

    def test_vectors_of_another_encoder_are_not_compared(self, index):
        index.put([entry()])
        other = replace(index, encoder="another")
        assert (other.neural(VECTOR, Filter(), depth=5), other.cosine_of(VECTOR, [PAY])) == ({}, {})
        assert list(index.neural(VECTOR, Filter(), depth=5)) == [PAY]

    def test_a_tombstone_that_no_search_sees_yet_is_purged(self, index):
        index.put([entry()])
        gone = Stored(a_profile(name="pay").model_copy(update={"status": Status.DELETED, "source": None, "rev": 2}))
        replace(index, refresh="false").put([gone])
        index.purge([PAY])
        assert index.revisions([PAY]) == {}

    @pytest.mark.parametrize("act", [Cut(), Cut(after=True)], ids=str)
    def test_a_write_whose_answer_was_lost_is_written_once(self, before, index, act):
        index.put([entry("first")])
        before.play = nth(1, act, operation="_bulk")
        index.put([entry("second")])
        assert sorted(self.found(index)) == ["first", "second"]

    @pytest.mark.parametrize("act", [Cut(), Cut(after=True)], ids=str)
    @pytest.mark.parametrize("number", range(1, 7))
    def test_making_the_first_index_survives_a_lost_answer_of_any_call(self, before, index, act, number):
        before.play = nth(number, act)
        index.put([entry()])
        assert self.found(index) == ["pay"]

    @pytest.mark.parametrize("number", range(1, 6))
    def test_creating_the_first_index_continues_after_a_failure(self, before, index, generations, number):
        before.play = nth(number, Refuse(503, "some_exception"))
        with suppress(DependencyFailed):
            index.put([entry()])
        before.play = None
        index.put([entry()])
        assert self.found(index) == ["pay"]
        assert [target.name for target in generations.record()] == [f"{ALIAS}-1"]

    @pytest.mark.parametrize("number", range(1, 8))
    def test_creating_a_new_index_continues_after_a_failure(self, before, index, generations, number):
        index.put([entry("a")])
        before.play = nth(number, Refuse(503, "some_exception"))
        target = None
        while target is None:
            with suppress(DependencyFailed):
                begun = generations.begin()
                generations.fill(begun, [entry("a")])
                generations.promote(begun)
                target = begun
        before.play = None
        assert generations.current() == target.name
        assert [each.name for each in generations.targets()] == [f"{ALIAS}-1", target.name]
        assert not any(each.filling for each in generations.targets())

    def test_two_that_begin_a_new_index_at_once_agree_on_one(self, index, generations):
        index.put([entry("a")])
        with ThreadPoolExecutor(2) as pool:
            both = list(pool.map(lambda _: generations.begin(), range(2)))
        assert both[0] == both[1]
        assert [target.name for target in generations.targets()] == [f"{ALIAS}-1", f"{ALIAS}-2"]
        index.put([entry("b")])
        assert generations.revisions(both[0], [entry(name).profile.id for name in "ab"]) == {entry("b").profile.id: 1}

    def test_while_a_new_index_is_retired_writes_reach_the_one_that_stays(self, index, generations):
        index.put([entry("a")])
        target = generations.begin()
        generations.fill(target, [entry("a")])
        generations.promote(target)
        stop, failed = threading.Event(), []

        def write() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                try:
                    index.put([entry("late", rev=n)])
                except DependencyFailed as error:
                    failed.append(error)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            assert list(generations.retire()) == [f"{ALIAS}-1"]
        finally:
            stop.set()
            writer.join()
        index.put([entry("last")])
        assert not failed
        assert sorted(self.found(index)) == ["a", "last", "late"]
        assert generations.current() == target.name
