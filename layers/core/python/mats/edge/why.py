"""Why a result was found, in the API."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.learning import voting
from mats.domain.shortlist import explain


class PastRequests(BaseModel):
    """Similar past requests that this capability served."""

    model_config = ConfigDict(extra="forbid")

    requests: int = Field(description="How many of the most similar ones vote for it.")
    callers: int = Field(description="Of how many callers these are.")
    similarity: float = Field(description="The best cosine of one of them with the query.")
    texts: list[str] = Field(default=[], description="Up to three of them that the caller may read, best first.")

    @classmethod
    def of(cls, used_for: voting.UsedFor) -> Self:
        return cls(
            requests=used_for.requests,
            callers=used_for.callers,
            similarity=round(used_for.similarity, 4),
            texts=list(used_for.texts),
        )


class Why(BaseModel):
    """The words of the query that match, the fields they match in, and similar past requests."""

    model_config = ConfigDict(extra="forbid")

    matched: list[str]
    fields: list[str]
    spelled: list[str] = Field(
        default=[], description="The matched words as the capability spells them, in lower case."
    )
    used_for: PastRequests | None = None

    @classmethod
    def of(cls, why: explain.MatchedWords, used_for: voting.UsedFor | None = None) -> Self:
        return cls(
            matched=list(why.matched),
            fields=list(why.fields),
            spelled=list(why.spelled),
            used_for=PastRequests.of(used_for) if used_for else None,
        )
