"""Prompts, the writer's request for a registration, and the parser of its reply.

A prompt is reviewed text in `prompts/`; its hash is recorded with every result made with it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from mats.domain.capability.registration import Registration
from mats.domain.errors import ReplyUnusable
from mats.domain.profile.profile import Enrichment, SourceText
from mats.domain.text.fence import encode_json, truncate_json, visible

_LONGEST_TEXT = 800
_LONGEST_ENTRY = 300
_MOST_ENTRIES = 20
"""Limits of a reply in characters and entries; the prompt asks for a quarter of them."""
_TEXTS = ("summary", "action")
_LISTS = ("keywords", "positive_examples", "negative_examples")
_OPTIONAL = "negative_examples"
_BETWEEN_KEYWORDS = re.compile(r"[,;\n]")
_LARGEST_KEYWORD = 1e15


def brief(registration: Registration) -> str:
    """The owner's text for the writer, as JSON; each part is truncated to its limit in bytes."""
    source = SourceText.of(registration)
    parts: dict[str, tuple[str, int]] = {
        "name": (registration.name, 400),
        "title": (source.title, 400),
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


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """The five fields of a reply, and a note for each entry that could not be kept."""

    enrichment: Enrichment
    notes: tuple[str, ...] = ()


def parse_reply(reply: object) -> ParsedReply:
    """The five fields of a reply, cleaned, without empty and duplicate entries.

    Faults that leave no doubt about the content are repaired: a string for a list, a number or null among the entries,
    no negative examples.

    Raises:
        ReplyUnusable: the message quotes nothing of the reply, so it can go into a second prompt.
    """
    if not isinstance(reply, dict):
        raise ReplyUnusable("it is not an object with the five fields")
    if missing := [field for field in (*_TEXTS, *_LISTS) if field not in reply and field != _OPTIONAL]:
        raise ReplyUnusable(f"it lacks {', '.join(missing)}")
    texts = {field: _text(field, reply[field]) for field in _TEXTS}
    lists, notes = dict[str, tuple[str, ...]](), list[str]()
    for field in _LISTS:
        value = reply.get(field)
        entries = _to_list(field, [] if value is None and field == _OPTIONAL else value)
        usable = [entry for entry in entries if not _is_lost(field, entry)]
        if lost := len(entries) - len(usable):
            notes.append(f"dropped from {field}: {lost} without a usable value")
        lists[field] = _entries(field, usable)
    read = Enrichment.model_validate({**texts, **lists})
    if read == Enrichment():
        raise ReplyUnusable("all five fields are empty")
    return ParsedReply(read, tuple(notes))


def _text(field: str, value: Any, longest: int = _LONGEST_TEXT) -> str:
    if not isinstance(value, str):
        raise ReplyUnusable(f"{field} is not text")
    text = visible(value[: 4 * longest])  # hidden characters included
    if len(text) > longest or len(value) > 4 * longest:
        raise ReplyUnusable(f"{field} is far too long")
    return text


def _to_list(field: str, value: Any) -> list[Any]:
    """The entries of a list without nulls, or of a string: one to a line, keywords also between commas."""
    if isinstance(value, str):
        if len(value) > _MOST_ENTRIES * _LONGEST_ENTRY:
            raise ReplyUnusable(f"{field} is far too long")
        return _BETWEEN_KEYWORDS.split(value) if field == "keywords" else value.splitlines()
    if not isinstance(value, list):
        raise ReplyUnusable(f"{field} is not a list")
    return [entry for entry in value if entry is not None]


def _is_lost(field: str, entry: Any) -> bool:
    """Whether an entry is a number that cannot be a keyword: infinite, or with more digits than any keyword has."""
    return field == "keywords" and _is_number(entry) and not abs(entry) < _LARGEST_KEYWORD


def _entries(field: str, values: list[Any]) -> tuple[str, ...]:
    texts = [f"{entry:.15g}" if field == "keywords" and _is_number(entry) else entry for entry in values]
    texts = [_text(field, text, _LONGEST_ENTRY) for text in texts if text != ""]
    if len(texts) > _MOST_ENTRIES:
        raise ReplyUnusable(f"{field} has far too many entries")
    return tuple(dict.fromkeys(text for text in texts if text))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_SECTION = re.compile(r"^## (\w+)\n", re.MULTILINE)
_PLACE = re.compile(r"\{(\w+)\}")
_SECTIONS = {"system", "request", "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """System prompt, request template and the one tool that the model must answer with.

    `tool` has `name`, `description` and `schema`, whose top level has only `type`, `properties` and `required`.
    `parts` are the further texts of the file by section name.
    """

    system: str
    request: str
    tool: Mapping[str, Any]
    parts: Mapping[str, str]
    hash: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """The prompt in a Markdown file of sections `## system`, `## request`, `## tool` (JSON) and others.

        Raises:
            ValueError: a section is missing or the tool is not JSON.
        """
        _, *found = _SECTION.split(text)
        sections = {name: body.strip() for name, body in zip(found[::2], found[1::2], strict=True)}
        if missing := _SECTIONS - sections.keys():
            raise ValueError(f"a prompt needs the sections {', '.join(sorted(missing))}")
        return cls(
            system=sections["system"],
            request=sections["request"],
            tool=_parse_tool(sections["tool"]),
            parts={name: body for name, body in sections.items() if name not in _SECTIONS},
            hash=hashlib.sha256(text.encode()).hexdigest()[:12],
        )

    def variant(self, name: str) -> Self:
        """The prompt with the sections `tool_NAME` and `plain_NAME` for its tool and its plain form; same hash.

        Raises:
            ValueError: the tool is not JSON; KeyError: a section is missing.
        """
        tool, plain = (self.parts[f"{section}_{name}"] for section in ("tool", "plain"))
        return replace(self, tool=_parse_tool(tool), parts={**self.parts, "plain": plain})


def _parse_tool(section: str) -> Mapping[str, Any]:
    tool: Mapping[str, Any] = json.loads(section.removeprefix("```json").removesuffix("```"))
    return tool


def fill_template(template: str, places: Mapping[str, str]) -> str:
    """The template with each `{name}` replaced in one pass: values are never expanded again."""
    return _PLACE.sub(lambda place: places[place[1]], template)
