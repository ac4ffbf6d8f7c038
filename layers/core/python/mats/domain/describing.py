"""The writer's request for a registration, and the parser of its reply."""

from typing import Any

from mats.domain.errors import ReplyUnusable
from mats.domain.fence import encode_json, truncate_json, visible
from mats.domain.profile import Enrichment, SourceText
from mats.domain.registration import Registration

_LONGEST_TEXT = 800
_LONGEST_ENTRY = 300
_MOST_ENTRIES = 20
"""Limits of a reply in characters and entries; the prompt asks for a quarter of them."""
_TEXTS = ("summary", "action")
_LISTS = ("keywords", "positive_examples", "negative_examples")


def brief(registration: Registration) -> str:
    """The owner's text for the writer, as JSON; each part is truncated to its limit in bytes."""
    source = SourceText.of(registration)
    parts: dict[str, tuple[str, int]] = {
        "name": (registration.name, 400),
        "provider": (registration.provider, 200),
        "description": (source.description, 6_000),
        "type_tags": (", ".join(registration.type_tags), 400),
        "tags": (", ".join(registration.tags), 400),
        "examples": ("\n".join(registration.examples[:10]), 1_500),
        "negative_examples": ("\n".join(registration.negative_examples[:10]), 800),
        "parameters": (source.parameter_names, 1_000),
        "about_parameters": (source.parameter_text, 3_000),
        "other": (source.other, 1_000),
    }
    shown = {key: truncate_json(visible(text), room) for key, (text, room) in parts.items() if text}
    return encode_json({"kind": registration.kind, **shown})


def enrichment(reply: object) -> Enrichment:
    """The five fields of a reply, cleaned, without empty and duplicate entries.

    Raises:
        ReplyUnusable: the message quotes nothing of the reply, so it can go into a second prompt.
    """
    if not isinstance(reply, dict):
        raise ReplyUnusable("it is not an object with the five fields")
    if missing := [field for field in (*_TEXTS, *_LISTS) if field not in reply]:
        raise ReplyUnusable(f"it lacks {', '.join(missing)}")
    texts = {field: _text(field, reply[field]) for field in _TEXTS}
    lists = {field: _entries(field, reply[field]) for field in _LISTS}
    read = Enrichment.model_validate({**texts, **lists})
    if read == Enrichment():
        raise ReplyUnusable("all five fields are empty")
    return read


def _text(field: str, value: Any, longest: int = _LONGEST_TEXT) -> str:
    if not isinstance(value, str):
        raise ReplyUnusable(f"{field} is not text")
    text = visible(value[: 4 * longest])  # hidden characters included
    if len(text) > longest or len(value) > 4 * longest:
        raise ReplyUnusable(f"{field} is far too long")
    return text


def _entries(field: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ReplyUnusable(f"{field} is not a list")
    if len(value) > _MOST_ENTRIES:
        raise ReplyUnusable(f"{field} has far too many entries")
    texts = [_text(field, entry, _LONGEST_ENTRY) for entry in value]
    return tuple(dict.fromkeys(text for text in texts if text))
