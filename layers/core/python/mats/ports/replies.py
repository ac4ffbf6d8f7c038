"""What models have answered before."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Kept:
    """A reply as JSON, and how long the model took for it when it was asked."""

    reply: Mapping[str, Any]
    took_ms: float


class Replies(Protocol):
    """Keeps replies by the whole request, which names the model. Safe to use from several threads and processes."""

    def get(self, request: Mapping[str, Any]) -> Kept | None:
        """What was answered to exactly this request, if it was ever kept."""
        ...

    def keep(self, request: Mapping[str, Any], kept: Kept) -> None:
        """Once this returns the reply is there for good; of two to one request the first stays."""
        ...
