"""Answers of the MCP tools: as little as a model needs to choose and to call, because it reads all of it."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.capability.capability import Lifecycle
from mats.domain.learning.reliability import Reliability
from mats.domain.profile.profile import Profile, Status
from mats.domain.shortlist.rank import Result, Shortlist
from mats.domain.text.fence import remove_hidden, spell_out, truncate_json
from mats.domain.text.words import clip
from mats.edge.answers import Capability

Json = dict[str, Any]

_SUMMARIES, _MIN_SUMMARY, _MAX_SUMMARY = 900, 100, 240
"""Bytes of all summaries of an answer, which they share, and of one: docs/decisions/0045."""
_MAX_TEXT, _MAX_ENTRY, _MAX_ENTRIES = 10_000, 300, 20
"""Limits of what a model reads of a capability: characters of a text and of a list entry, entries of a list."""
_VERBATIM = frozenset({"id", "endpoint", "input_schema", "invocation"})
"""Fields that only work complete."""
_DEFAULTS: Mapping[str, Any] = {"lifecycle": Lifecycle.ACTIVE, "status": Status.ACTIVE}
_LEFT_OUT = ("name", "namespace", "rev", "enriched")
"""Fields that the id says, or that are internal."""


def search_results(shortlist: Shortlist) -> Json:
    """The shortlist, best first, without empty fields and defaults; `results` is always there."""
    room = min(max(_SUMMARIES // max(1, len(shortlist.results)), _MIN_SUMMARY), _MAX_SUMMARY)
    answer = {
        "query_id": shortlist.query_id,
        "verdict": shortlist.verdict.value,
        "degraded": list(shortlist.degraded),
        "without": list(shortlist.without),
        "notes": list(shortlist.notes),
        "parts": [
            {"text": part.text, "verdict": part.verdict and part.verdict.value, "results": list(part.results)}
            for part in shortlist.parts
        ],
    }
    return {**_without_defaults(answer), "results": [_result(result, room) for result in shortlist.results]}


def _result(result: Result, room: int) -> Json:
    """One result, its summary in at most `room` bytes. Only a provider that operators verified is named."""
    profile = result.candidate.profile
    return _without_defaults({
        "id": profile.id,
        "kind": profile.indexed_kind.value,
        "relevance": round(round(result.relevance, 4), 2),
        "summary": truncate_json(profile.enrichment.summary, room),
        "provider": profile.provider if profile.provider_verified else "",
        "lifecycle": profile.lifecycle.value,
        "suspicious": list(result.suspicious),
    })  # fmt: skip


def capability_details(profile: Profile, reliability: Reliability | None, *, instructions: bool = False) -> Json:
    """One capability, without empty fields, defaults and what other fields say; `invocation` may be null.

    Long fields are truncated, except those that only work complete; `shortened` names them.
    """
    whole = Capability.of(profile, reliability=reliability).model_dump(mode="json")
    fields = {name: value if name in _VERBATIM else _truncate(value) for name, value in whole.items()}
    shown = {name: value for name, value in fields.items() if name not in _LEFT_OUT}
    shown["instructions"] = profile.instructions if instructions else ""
    shown["shortened"] = [name for name, value in whole.items() if fields[name] != value]
    shown = _without_defaults(shown)
    if profile.provider:
        shown["provider_verified"] = profile.provider_verified
    for name in ("summary", "action"):
        if shown.get(name, "") in fields["description"]:
            shown.pop(name, None)
    return {**shown, "invocation": fields["invocation"]}


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
