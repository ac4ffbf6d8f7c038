"""Models that refuse every request: how a run over many capabilities stops asking them."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, ModelRefused
from mats.ports import NO_LABELS, Encoder, Labels, Vector, Writer, Written

T = TypeVar("T")


class Probe:
    """Lets the first call of a run through alone; once a model has refused one, refuses the rest without a call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._settled = False
        self._refusal: ModelRefused | None = None

    @property
    def is_settled(self) -> bool:
        """Whether a call of this run has ended."""
        return self._settled

    def call(self, work: Callable[[], T]) -> T:
        """The result of a call. The others wait until the first has ended.

        Raises:
            ModelRefused: the model refuses, or has refused an earlier call of this run.
            Exception: any exception of the call.
        """
        with self._lock:
            if self._refusal:
                raise ModelRefused(str(self._refusal), model=self._refusal.model, cause=self._refusal.cause)
            if not self._settled:
                return self._try(work)
        return self._try(work)

    def _try(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except ModelRefused as error:
            self._refusal = error
            raise
        finally:
            self._settled = True


@dataclass(frozen=True, slots=True)
class ProbedWriter:
    """The port `Writer`, with one probe for a run."""

    writer: Writer
    probe: Probe = field(default_factory=Probe)

    @property
    def name(self) -> str:
        return self.writer.name

    @property
    def prompt(self) -> str:
        return self.writer.prompt

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        return self.probe.call(lambda: self.writer.describe(registration, labels))


@dataclass(frozen=True, slots=True)
class ProbedEncoder:
    """The port `Encoder`, with one probe for a run: the first document, which is encoded once more with the others."""

    encoder: Encoder
    probe: Probe = field(default_factory=Probe)

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_query(self, text: str) -> Vector:
        return self.encoder.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        if len(texts) > 1 and not self.probe.is_settled:
            self._probe(texts[:1])
        return self.probe.call(lambda: self.encoder.encode_documents(texts))

    def _probe(self, texts: Sequence[str]) -> None:
        """Only a refusal matters here; the call that follows shows any other failure."""
        try:
            self.probe.call(lambda: self.encoder.encode_documents(texts))
        except ModelRefused:
            raise
        except DependencyFailed:
            return
