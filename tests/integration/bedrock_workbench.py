"""The three models of the stand-in for Bedrock, and what they give when one fails."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mats.adapters.bedrock.client import BedrockClient, prompt_request
from mats.adapters.bedrock.factory import TitanEncoder
from mats.adapters.llm import LlmReranker, LlmWriter, Meter
from mats.bootstrap import models as bootstrap
from mats.domain.errors import CapabilityError, DependencyFailed, ReplyUnusable
from mats.domain.prompts.usage import Prices
from mats.domain.search.query import Query
from mats.domain.search.shortlist import Shortlist
from mats.ports import RerankResult, Stored
from mats.usecases.discover import Discover
from tests.aws.bedrock import BedrockServer
from tests.bedrock.conftest import aws_settings
from tests.builders import a_discover, a_profile, a_registration
from tests.fakes import MemoryIndex

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
FIVE = {
    "summary": "Gives money back.",
    "action": "Refunds a card payment.",
    "keywords": ["refund", "card"],
    "positive_examples": ["pay the customer back"],
    "negative_examples": ["list past payments: a reporting tool"],
}


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


@pytest.fixture(scope="module")
def bench(running: BedrockServer) -> "Bench":
    return Bench(running)


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
        self.encoder = TitanEncoder(
            model=TITAN, dimension=DIMENSION, online=client, offline=client, threads=ThreadPoolExecutor(2)
        )

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


UNJUDGED = ranking(discover_with().answer(QUERY))


def assert_nothing_comes_of_it(bench: Bench, allowed: tuple[type[CapabilityError], ...] = (DependencyFailed,)) -> None:
    """Assert that all three models fail in one of these ways with the reply that the server plays."""
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
