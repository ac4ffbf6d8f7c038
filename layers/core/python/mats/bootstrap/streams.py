"""The streams function: the bus alone, which it needs within a second of a change in an idle registry."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mats.adapters.eventbridge import EventBus
from mats.settings import Settings


def open_streams(settings: Settings) -> Callable[[Sequence[Mapping[str, Any]]], str | None]:
    """From the records of streams to events on the bus: `EventBus.forward`."""
    return EventBus(settings.event_bus, region=settings.region).forward
