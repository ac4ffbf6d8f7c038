"""A writer whose calls are observed."""

from dataclasses import dataclass

from mats.domain.capability.registration import Registration
from mats.domain.errors import CapabilityError
from mats.domain.prompts.usage import Usage
from mats.ports import NO_LABELS, Clock, Labels, Observer, Writer, WriterCalled, Written


def observe_writer(writer: Writer | None, observe: Observer, clock: Clock) -> Writer | None:
    """The writer, observed, if there is one."""
    return ObservedWriter(writer, observe, clock) if writer else None


@dataclass(frozen=True, slots=True)
class ObservedWriter:
    """The port `Writer`; tells each call to an observer."""

    writer: Writer
    observe: Observer
    clock: Clock

    @property
    def name(self) -> str:
        return self.writer.name

    @property
    def prompt(self) -> str:
        return self.writer.prompt

    def describe(self, registration: Registration, labels: Labels = NO_LABELS) -> Written:
        began = self.clock.elapsed_ms()
        try:
            written = self.writer.describe(registration, labels)
        except CapabilityError as error:
            self._tell(began, Usage(), str(error))
            raise
        self._tell(began, written.usage)
        return written

    def _tell(self, began_ms: float, usage: Usage, fault: str = "") -> None:
        took_ms = self.clock.elapsed_ms() - began_ms
        self.observe(WriterCalled(model=self.name, began_ms=began_ms, took_ms=took_ms, usage=usage, fault=fault))
