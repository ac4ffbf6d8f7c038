"""The three models of the stand-in, and what must become of an answer and of a profile when one fails."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mats import bootstrap
from mats.adapters.bedrock.client import BedrockClient, prompt_request
from mats.adapters.bedrock.factory import TitanEncoder
from mats.adapters.llm import LlmReranker, LlmWriter, Meter
from mats.domain.errors import CapabilityError, DependencyFailed, ModelRefused, ReplyUnusable
from mats.domain.profile.profile import Cause, ChangeResult
from mats.domain.prompts.usage import Prices
from mats.domain.ranking.query import Filter, Query
from mats.domain.shortlist.rank import Shortlist
from mats.ports import Change, Encoder, Reranker, RerankResult, Stored, Writer
from mats.usecases.discover import Discover
from mats.usecases.drafts import ProfileMaker
from mats.usecases.enrich import Enrich
from tests.aws.bedrock import BedrockServer
from tests.bedrock.conftest import aws_settings
from tests.builders import a_discover, a_profile, a_registration
from tests.fakes import AtOnce, MemoryIndex, MemoryProfiles, MemoryRegistry, MemoryTrust

MICRO, LITE, TITAN = "amazon.nova-micro-v1:0", "amazon.nova-lite-v1:0", "amazon.titan-embed-text-v2:0"
PATIENCE_S, HASTE_S = 5, 0.2
DIMENSION = 256
SHOWN = [
    a_profile(name="refund", description="give money back to a customer", trust=20),
    a_profile(name="geocode", description="turn an address into coordinates"),
    a_profile(name="mail", description="send a message about money to a customer", trust=90),
]
QUERY = Query(query="money for a customer with an address")
REFUND = a_registration()


def outcome_of(call: Callable[[], Any]) -> Any:
    """The result of a call, or the error of ours that it raises; any other error fails the test."""
    try:
        return call()
    except CapabilityError as error:
        return error


@pytest.fixture(scope="module")
def running() -> Iterator[BedrockServer]:
    """A stand-in that clients made meanwhile reach."""
    with BedrockServer() as server, aws_settings(server.client_environment()):
        yield server


@pytest.fixture
def server(running: BedrockServer) -> Iterator[BedrockServer]:
    """The stand-in, having heard nothing yet; no test may make it play what Bedrock could not say."""
    running.play = None
    running.exchanges.clear()
    running.rejected.clear()
    yield running
    assert running.mistakes == []


class Bench:
    """The models as the stand-in plays them: one attempt each; little patience is for replies that never come."""

    def __init__(self, server: BedrockServer, *, patience_s: float = PATIENCE_S) -> None:
        with aws_settings(server.client_environment()):
            client = BedrockClient(Meter(Prices({})), timeout_s=patience_s)
        self.reranker = LlmReranker(
            ask=lambda question: client.converse(prompt_request(question)), name=MICRO, text=bootstrap.prompt("rerank")
        )
        self.writer = LlmWriter(
            ask=lambda question: client.converse(prompt_request(question)), name=LITE, text=bootstrap.prompt("enrich")
        )
        self.encoder = TitanEncoder(model=TITAN, dimension=DIMENSION, online=client, offline=client, concurrency=2)

    def rerank(self) -> RerankResult | CapabilityError:
        return outcome_of(lambda: self.reranker.rerank(QUERY.query, SHOWN))

    def describe(self) -> Any:
        return outcome_of(lambda: self.writer.describe(REFUND))

    def encode(self) -> Any:
        return outcome_of(lambda: self.encoder.encode_query("refund"))


def discover_with(**changes: Any) -> Discover:
    """The online path over an index of three, with a breaker of its own."""
    index = MemoryIndex()
    index.put([Stored(profile.model_copy(update={"rev": 1})) for profile in SHOWN])
    return a_discover(index, **changes)


def ranking(shortlist: Shortlist) -> list[Any]:
    """All that the order of an answer tells."""
    return [(result.id, result.score, result.signals) for result in shortlist.ranked]


UNJUDGED = ranking(discover_with()(QUERY))


def assert_the_answer_comes_without(reranker: Reranker) -> Shortlist:
    """The other signals rank it exactly as if there were no reranker, and it says so."""
    shortlist = discover_with(reranker=reranker)(QUERY)
    assert (shortlist.degraded, shortlist.without) == (("llm",), ("neural",))
    assert ranking(shortlist) == UNJUDGED
    assert len(shortlist.trace.faults) == 1
    assert shortlist.intent is None
    return shortlist


def assert_words_find_without(encoder: Encoder, error: CapabilityError) -> None:
    """A query that has no vector is answered by its words, a document that has none is found by its own."""
    shortlist = discover_with(encoder=encoder)(QUERY)
    assert (shortlist.degraded, shortlist.without) == (("neural",), ("llm",))
    assert ranking(shortlist) == UNJUDGED
    outcome, profiles, index = enriched_by(None, encoder)
    assert outcome is outcome_after(error)
    assert profiles.kept[REFUND.id].vector is None
    assert [refusal.role for refusal in profiles.kept[REFUND.id].profile.refused] == refused_roles(error, "encoder")
    assert [hit.id for hit in index.lexical(["money"], Filter(), depth=5)] == [REFUND.id]


def outcome_after(error: CapabilityError) -> ChangeResult:
    """Whether the change waits for another delivery, or for an operator."""
    return ChangeResult.REFUSED if isinstance(error, ModelRefused) else ChangeResult.DEGRADED


def refused_roles(error: CapabilityError, role: str) -> list[str]:
    """The roles that a profile is marked with after an error."""
    return [role] if isinstance(error, ModelRefused) else []


def enriched_by(writer: Writer | None, encoder: Encoder | None) -> tuple[ChangeResult, MemoryProfiles, MemoryIndex]:
    """The outcome of one new registration on the offline path."""
    registry, profiles, index = MemoryRegistry(), MemoryProfiles(), MemoryIndex()
    enrich = Enrich(
        registry=registry, trust=MemoryTrust(), profiles=profiles, index=index,
        maker=ProfileMaker(encoder=encoder, writer=writer),
            writer_threads=AtOnce(),
    )  # fmt: skip
    registry.put([REFUND])
    change = Change(REFUND.id, Cause(event_id="e1", time="2026-01-01T00:00:00+00:00"))
    return enrich([change])[REFUND.id], profiles, index


def assert_the_raw_profile_stays(writer: Writer, error: CapabilityError) -> None:
    """Findable as its owner wrote it: with the reason if a reply was useless, to be tried again if there was none."""
    outcome, profiles, index = enriched_by(writer, None)
    profile = profiles.kept[REFUND.id].profile
    assert not profile.enriched
    assert profile.enrichment == a_profile().enrichment
    assert profile.indexed_rev == profile.rev
    assert [hit.id for hit in index.lexical(["money"], Filter(), depth=5)] == [REFUND.id]
    if isinstance(error, ReplyUnusable):
        assert outcome is ChangeResult.INDEXED
        assert profile.notes == (f"not enriched: {error}",)
    else:
        assert isinstance(error, DependencyFailed)
        assert outcome is outcome_after(error)
        assert profile.notes == ()
        assert [refusal.role for refusal in profile.refused] == refused_roles(error, "writer")


def assert_nothing_comes_of_it(bench: Bench, allowed: tuple[type[CapabilityError], ...] = (DependencyFailed,)) -> None:
    """What the server plays leaves all three models without a result, in one of these ways, and both paths go on."""
    result, written, vector = bench.rerank(), bench.describe(), bench.encode()
    if isinstance(result, RerankResult):
        assert ReplyUnusable in allowed
        assert result.void
        assert result.scores == ()
    else:
        assert type(result) in allowed
    assert type(written) in allowed
    assert type(vector) in allowed
    assert type(vector) is not ReplyUnusable
    assert_the_answer_comes_without(bench.reranker)
    assert_the_raw_profile_stays(bench.writer, written)
    assert_words_find_without(bench.encoder, vector)
