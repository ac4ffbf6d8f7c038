"""The models of one process: each with the client that its waiting time asks for."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from boto3.session import Session
from botocore.exceptions import BotoCoreError

from mats.adapters import aws
from mats.adapters.bedrock.reranker import BedrockReranker
from mats.adapters.bedrock.runtime import Meter, Runtime
from mats.adapters.bedrock.titan import TitanEncoder
from mats.domain.prompt import Prompt
from mats.domain.usage import Prices
from mats.ports import Replies

if TYPE_CHECKING:
    from mats.adapters.bedrock.chat import BedrockChat
    from mats.adapters.bedrock.writer import BedrockWriter

_CONNECTIONS = 256
"""As many as requests are answered at once."""
_WRITING_S = 60


class Bedrock:
    """Makes writer, reranker and encoder, and counts what they spend. No call is made before one is used."""

    def __init__(
        self,
        prices: Prices,
        *,
        region: str,
        rerank_ms: float,
        encode_ms: float,
        concurrency: int,
        attempts: int = 1,
        replies: Replies | None = None,
        session: Session | None = None,
    ) -> None:
        """Make no call yet.

        Args:
            prices: By which usage is counted.
            region: Empty: AWS's own configuration names it.
            rerank_ms: How long to wait for a judgement or a turn of a chat.
            encode_ms: How long to wait for the vector of a query.
            concurrency: How many documents go at once.
            attempts: How often a judgement, a turn or a query's vector is asked for before it counts as failed.
            replies: Where replies of writer, reranker and chat are kept; default: nowhere.
            session: Shared with clients of other services; default: a new one.
        """
        self.meter = Meter(prices)
        self._attempts, self._replies = attempts, replies
        self._given_session = session
        self._region = region
        self._rerank_ms, self._encode_ms, self._concurrency = rerank_ms, encode_ms, concurrency

    def has_credentials(self) -> bool:
        """Whether AWS's own configuration has any; whether they are good, only a call can tell."""
        try:
            return Session().get_credentials() is not None
        except BotoCoreError:
            return False

    @cached_property
    def _session(self) -> Session:
        return self._given_session or aws.session("Bedrock")

    def _runtime(self, **options: Any) -> Runtime:
        return Runtime(self.meter, region=self._region, session=self._session, replies=self._replies, **options)

    @cached_property
    def _offline(self) -> Runtime:
        """Waits long and tries twice; whoever delivers the event again does the rest of the waiting."""
        attempts = max(2, self._attempts)
        return self._runtime(timeout_s=_WRITING_S, attempts=attempts, connections=self._concurrency)

    @cached_property
    def _judging(self) -> Runtime:
        return self._runtime(timeout_s=self._rerank_ms / 1000, attempts=self._attempts, connections=_CONNECTIONS)

    def writer(self, model: str, prompt: Prompt) -> "BedrockWriter":
        """The enrichment LLM."""
        from mats.adapters.bedrock.writer import BedrockWriter  # noqa: PLC0415 - not for discovery, whose start counts

        return BedrockWriter(runtime=self._offline, name=model, text=prompt)

    def reranker(self, model: str, prompt: Prompt) -> BedrockReranker:
        """The discovery LLM: in production one attempt, within its budget."""
        return BedrockReranker(runtime=self._judging, name=model, text=prompt)

    def chat(self, model: str) -> "BedrockChat":
        """A model that converses, with the reranker's patience."""
        from mats.adapters.bedrock.chat import BedrockChat  # noqa: PLC0415 - not for discovery, whose start counts

        return BedrockChat(runtime=self._judging, name=model)

    def encoder(self, model: str, *, dimension: int = 1024) -> TitanEncoder:
        """Titan: in production one attempt within its budget for a query, more for documents."""
        online = self._runtime(timeout_s=self._encode_ms / 1000, attempts=self._attempts, connections=_CONNECTIONS)
        return TitanEncoder(
            model=model, dimension=dimension, online=online, offline=self._offline, concurrency=self._concurrency
        )
