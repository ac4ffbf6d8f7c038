"""The parts of an answer to a request for several things."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.ranking.ranking import Verdict
from mats.domain.shortlist.shortlist import Result, Shortlist


class ServingCapability(BaseModel):
    """A result that serves a part; the rest of it is among the results."""

    model_config = ConfigDict(extra="forbid")

    id: str
    score: float
    relevance: float

    @classmethod
    def of(cls, result: Result) -> Self:
        return cls(id=result.candidate.profile.id, score=round(result.score, 4), relevance=round(result.relevance, 4))


class PartAnswer(BaseModel):
    """One step of a request for several things."""

    model_config = ConfigDict(extra="forbid")

    text: str
    verdict: Verdict | None = Field(description="Null if this step could not be searched; see `degraded`.")
    results: list[ServingCapability] = Field(
        description="The results that serve this step rather than another, best first; each is among `results`."
    )


def part_answers(shortlist: Shortlist) -> list[PartAnswer]:
    """The parts, in the order of the request."""
    shown = {result.candidate.profile.id: ServingCapability.of(result) for result in shortlist.results}
    return [
        PartAnswer(text=part.text, verdict=part.verdict, results=[shown[id] for id in part.results])
        for part in shortlist.parts
    ]
