"""Answers of the MCP tools: as little as a model needs to choose and to call, because it reads all of it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Self

from pydantic import BaseModel

from mats.domain.capability.capability import Kind, Lifecycle
from mats.domain.learning.reliability import Reliability
from mats.domain.profile.profile import Profile, Status
from mats.domain.ranking.blend import Verdict
from mats.domain.shortlist.rank import Result, Shortlist
from mats.domain.text.fence import remove_hidden, spell_out, truncate_json
from mats.domain.text.words import clip
from mats.edge.answers import Capability, RankedCapability

Json = dict[str, Any]

_SUMMARIES, _MIN_SUMMARY, _MAX_SUMMARY = 900, 100, 240
"""Bytes of all summaries of an answer, which they share, and of one: docs/decisions/0045."""
_MAX_TEXT, _MAX_ENTRY, _MAX_ENTRIES = 10_000, 300, 20
"""Limits of what a model reads of a capability: characters of a text and of a list entry, entries of a list."""
_VERBATIM = frozenset({"id", "endpoint", "input_schema", "invocation"})
"""Fields that only work complete."""
_DEFAULTS: Mapping[str, Any] = {"lifecycle": Lifecycle.ACTIVE, "status": Status.ACTIVE}
_SAID_BY_ID = ("name", "namespace")
_INTERNAL = ("rev", "enriched")


class FoundCapability(BaseModel):
    """One result; `get_capability` has the rest. Only a provider that operators verified is named."""

    id: str
    kind: Kind
    relevance: float
    summary: str
    provider: str
    lifecycle: Lifecycle
    suspicious: list[str]

    @classmethod
    def of(cls, result: Result, room: int) -> Self:
        """A result whose summary has at most `room` bytes."""
        ranked = RankedCapability.of(result)
        return cls(
            id=ranked.id,
            kind=ranked.kind,
            relevance=round(ranked.relevance, 2),
            summary=truncate_json(ranked.summary, room),
            provider=ranked.provider if ranked.provider_verified else "",
            lifecycle=ranked.lifecycle,
            suspicious=ranked.suspicious,
        )


class FoundPart(BaseModel):
    """One step of the request with the ids of the results that serve it; a verdict of null: it was not searched."""

    text: str
    verdict: Verdict | None
    results: list[str]


class SearchResults(BaseModel):
    """The shortlist, best first."""

    query_id: str
    verdict: Verdict
    degraded: list[str]
    without: list[str]
    notes: list[str]
    parts: list[FoundPart]
    results: list[FoundCapability]

    @classmethod
    def of(cls, shortlist: Shortlist) -> Self:
        share = _SUMMARIES // max(1, len(shortlist.results))
        room = min(max(share, _MIN_SUMMARY), _MAX_SUMMARY)
        return cls(
            query_id=shortlist.query_id,
            verdict=shortlist.verdict,
            degraded=list(shortlist.degraded),
            without=list(shortlist.without),
            notes=list(shortlist.notes),
            parts=[FoundPart(text=p.text, verdict=p.verdict, results=list(p.results)) for p in shortlist.parts],
            results=[FoundCapability.of(result, room) for result in shortlist.results],
        )

    def to_structured(self) -> Json:
        """Without empty fields and defaults; `results` is always there."""
        found = [_without_defaults(each) for each in self.model_dump(mode="json")["results"]]
        return {**_without_defaults(self.model_dump(mode="json", exclude={"results"})), "results": found}


class CapabilityDetails(Capability):
    """One capability, its long fields truncated; `shortened` names them."""

    invocation: Json | None = None  # type: ignore[assignment]  # as it was serialised
    instructions: str = ""
    shortened: list[str]

    @classmethod
    def of(
        cls,
        profile: Profile,
        *,
        internal_details: bool = False,
        reliability: Reliability | None = None,
        instructions: bool = False,
    ) -> Self:
        """A profile with long fields truncated, except those that only work complete."""
        whole = Capability.of(profile, internal_details=internal_details, reliability=reliability).model_dump()
        fields = {name: value if name in _VERBATIM else _truncate(value) for name, value in whole.items()}
        shortened = [name for name, value in whole.items() if fields[name] != value]
        return cls(**fields, instructions=profile.instructions if instructions else "", shortened=shortened)

    def to_structured(self) -> Json:
        """Without empty fields, defaults and what other fields say; `invocation` is always there, if only as null."""
        fields = _without_defaults(self.model_dump(mode="json", exclude={*_SAID_BY_ID, *_INTERNAL}))
        if self.provider:
            fields["provider_verified"] = self.provider_verified
        for name in ("summary", "action"):
            if fields.get(name, "") in self.description:
                fields.pop(name, None)
        return {**fields, "invocation": self.invocation}


def _truncate(value: Any) -> Any:
    match value:
        case str():
            return clip(value, _MAX_TEXT)
        case list():
            return [clip(entry, _MAX_ENTRY) if isinstance(entry, str) else entry for entry in value[:_MAX_ENTRIES]]
        case _:
            return value


def _without_defaults(fields: Json) -> Json:
    return {
        name: value
        for name, value in fields.items()
        if value not in (None, "", [], {}, _DEFAULTS.get(name)) and value is not False
    }


def readable(structured: Json) -> Json:
    """The answer without hidden characters; in ids they are spelled out: without them, one could be another's.

    Only capabilities registered before such names were refused have them.
    """
    cleaned: Json = remove_hidden(_with_readable_ids(structured))
    return cleaned


def _with_readable_ids(answer: Json) -> Json:
    results = [_with_readable_ids(result) for result in answer.get("results", [])]
    ids = {"id": spell_out(answer["id"])} if "id" in answer else {}
    parts = [{**part, "results": list(map(spell_out, part["results"]))} for part in answer.get("parts", [])]
    return {
        **answer, **ids, **({"results": results} if "results" in answer else {}), **({"parts": parts} if parts else {})
    }  # fmt: skip


def to_json(structured: Json) -> str:
    return json.dumps(structured, ensure_ascii=False, separators=(",", ":"))


def to_lines(structured: Json) -> str:
    """Search results as text: all that is in them in half the tokens of JSON, one line for each result.

    No owner's text can add a line.
    """
    return "\n".join([*_head(structured), *map(_line, structured["results"])])


def _head(structured: Json) -> Iterator[str]:
    parts = [structured["verdict"]]
    parts += [f"{name} {', '.join(structured[name])}" for name in ("degraded", "without") if name in structured]
    yield "; ".join([*parts, f"query_id {structured['query_id']}"])
    yield from (_one_line(f"note: {note}") for note in structured.get("notes", ()))
    for part in structured.get("parts", ()):
        served = f": {', '.join(part['results'])}" if part["results"] else ""
        yield _one_line(
            f"part {json.dumps(part['text'], ensure_ascii=False)} {part['verdict'] or 'not searched'}{served}"
        )


def _line(result: Json) -> str:
    provider = f"by {result['provider']}" if "provider" in result else ""
    facts = [result["kind"], f"{result['relevance']:.2f}", result.get("lifecycle", ""), provider]
    suspicious = f" [suspicious: {'; '.join(result['suspicious'])}]" if "suspicious" in result else ""
    summary = f": {result['summary']}" if "summary" in result else ""
    return _one_line(f"{result['id']} ({', '.join(filter(None, facts))}){suspicious}{summary}")


def _one_line(text: str) -> str:
    return " ".join(text.split())
