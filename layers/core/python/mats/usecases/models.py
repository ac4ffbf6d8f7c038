"""Models of a run: how their calls are observed and cached, and how a run stops asking one that refuses."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TypeVar

from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, ModelRefused
from mats.domain.prompts.prompt import Written
from mats.domain.search.lookups import Vector
from mats.ports import NO_LABELS, Clock, Encoder, Labels, Observer, Writer, WriterCalled


@dataclass(frozen=True, slots=True)
class WrappedWriter:
    """The port `Writer`; `around` makes each call."""

    writer: Writer
    around: Callable[[Callable[[], Written]], Written]

    @property
    def name(self) -> str:
        return self.writer.name

    @property
    def prompt(self) -> str:
        return self.writer.prompt

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        return self.around(lambda: self.writer.describe(registration, labels))


def observe_writer(writer: Writer | None, observe: Observer, clock: Clock) -> Writer | None:
    """The writer, if there is one; each of its calls is told to an observer."""
    if writer is None:
        return None

    def observe_call(call: Callable[[], Written]) -> Written:
        began, failed = clock.elapsed_ms(), True
        try:
            written = call()
            failed = False
            return written
        finally:
            observe(WriterCalled(took_ms=clock.elapsed_ms() - began, failed=failed))

    return WrappedWriter(writer, observe_call)


T = TypeVar("T")


class Probe:
    """Lets the first call of a run through alone; once a model has refused one, refuses the rest without a call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refusal: ModelRefused | None = None
        self.is_settled = False  # True if a call of this run has ended

    def call(self, work: Callable[[], T]) -> T:
        """The result of a call. The others wait until the first has ended.

        Raises ModelRefused: the model refuses, or has refused an earlier call of this run; Exception: any exception of
        the call.
        """
        with self._lock:
            if self._refusal:
                raise ModelRefused(str(self._refusal), model=self._refusal.model, cause=self._refusal.cause)
            if not self.is_settled:
                return self._try(work)
        return self._try(work)

    def _try(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except ModelRefused as error:
            self._refusal = error
            raise
        finally:
            self.is_settled = True


@dataclass(frozen=True, slots=True)
class WrappedEncoder:
    """The port `Encoder` over another one; what a subclass does not override is the other's."""

    encoder: Encoder

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_query(self, text: str) -> Vector:
        return self.encoder.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        return self.encoder.encode_documents(texts)


@dataclass(frozen=True, slots=True)
class ProbedEncoder(WrappedEncoder):
    """An encoder with one probe for a run: the first document, which is encoded once more with the others."""

    probe: Probe = field(default_factory=Probe)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        if len(texts) > 1 and not self.probe.is_settled:
            try:
                self.probe.call(lambda: self.encoder.encode_documents(texts[:1]))
            except DependencyFailed as error:
                if isinstance(error, ModelRefused):
                    raise  # the call that follows shows any other failure
        return self.probe.call(lambda: self.encoder.encode_documents(texts))


_RECENT = 1_024  # Vectors of 1,024 components take some 4 MB


@dataclass(frozen=True)
class RecentVectors(WrappedEncoder):
    """An encoder that keeps the vectors of the latest queries. Safe to share between threads."""

    recent = cached_property(lambda self: lru_cache(maxsize=_RECENT)(self.encoder.encode_query))

    def encode_query(self, text: str) -> Vector:
        vector: Vector = self.recent(text)
        return vector
