"""The reliability of a capability in answers of the API."""

from typing import Self

from pydantic import BaseModel, Field

from mats.domain.learning.reliability import Reliability


class ReliabilityAnswer(BaseModel, extra="forbid"):
    """The trust of a capability after what callers reported, each 0 to 1, with the outcomes that count."""

    mean: float
    low: float = Field(description="Lower end of the 95 % interval.")
    high: float
    successes: float = Field(description="Decayed with a half-life of 30 days.")
    failures: float

    @classmethod
    def of(cls, reliability: Reliability) -> Self:
        return cls(**reliability.to_json())
