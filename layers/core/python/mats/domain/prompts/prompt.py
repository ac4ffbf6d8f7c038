"""Prompts, the writer's request for a registration, and the parser of its reply.

A prompt is reviewed text in `prompts/`; its hash is recorded with every result made with it.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration
from mats.domain.errors import ReplyUnusable
from mats.domain.profile.profile import Enrichment, Risk, SourceText
from mats.domain.prompts.usage import Usage
from mats.domain.text.fence import encode_json, size, truncate_json, visible
from mats.domain.text.redaction import redact_prose
from mats.domain.text.words import clean, objects_in

_LONGEST_TEXT = 800
_LONGEST_ENTRY = 300
_TEXTS = ("summary", "action")
_MOST = {"keywords": 12, "positive_examples": 7}
"""Limits of a reply in characters and entries; the prompt asks for as many entries, and a quarter of the characters."""
_READ_TIMES = 4  # How many times as much is read, for entries and characters that do not count
_ASKED = "positive_examples"  # The field without which an object is no answer
_BETWEEN_KEYWORDS = re.compile(r"[,;\n]")
_LARGEST_KEYWORD = 1e15
_SAYS_NOTHING = re.compile(
    r"(?:n/?a|none|null|unknown|string|tbd|(?:not|no|none) (?:specified|available|applicable|provided|known|given))?"
    r"[-–—.…\s]*",
    re.IGNORECASE,
)
"""Texts that models write where a field should be empty."""


def brief(registration: Registration) -> str:
    """The owner's text for the writer, as JSON; each part is truncated to its limit in bytes, and without secrets.

    The parameters of a model are the keys of its card, which all models share; their values are facts about it.
    """
    source, is_model = SourceText.of(registration), registration.kind is Kind.MODEL
    said_before = clean(" ".join((registration.provider, *registration.type_tags)))
    parts: dict[str, tuple[str, int]] = {
        "name": (registration.name, 400),
        "title": (source.title, 400),
        "provider": (registration.provider, 200),
        "description": (source.description, 6_000),
        "type_tags": (", ".join(registration.type_tags), 400),
        "tags": (", ".join(registration.tags), 400),
        "examples": ("\n".join(registration.examples[:10]), 1_500),
        "negative_examples": ("\n".join(registration.negative_examples[:10]), 800),
        "parameters": ("" if is_model else source.parameter_names, 1_000),
        "facts" if is_model else "about_parameters": (source.parameter_text, 3_000),
        "other": (source.other.removeprefix(said_before).strip(), 1_000),
    }
    redacted = {key: (redact_prose(visible(text)), room) for key, (text, room) in parts.items() if text}
    return encode_json({"kind": registration.kind, **{k: truncate_json(*text) for k, text in redacted.items()}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A writer's enrichment of a registration, with notes on faults and repairs."""

    enrichment: Enrichment
    risk: Risk | None = None
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()


def parse_reply(reply: object, quoted: Collection[str] = (), shown: str = "{}") -> Written:
    """The fields of a reply, cleaned, without empty and duplicate entries and what a prompt `quoted`, in lower case.

    `shown` is the registration as its writer read it, of which a risk must quote the words.

    Faults that leave no doubt about the content are repaired: an object in a text, in a list or in another object; a
    field that is missing or null; a string for a list; too many entries. Negative examples are not asked for: a writer
    does not know the neighbours.

    Raises ReplyUnusable: the message quotes nothing of the reply, so it can go into a second prompt.
    """
    answers = _answers_in(reply)
    if not answers:
        raise ReplyUnusable(f"it is not an object with the fields asked for, at least {_ASKED}")
    fields = answers[-1]
    texts = {field: _text(field, fields.get(field)) for field in _TEXTS}
    texts = {field: "" if _says_nothing(text, quoted) else text for field, text in texts.items()}
    lists, notes = dict[str, tuple[str, ...]](), list[str]()
    for field, most in _MOST.items():
        entries = _to_list(field, fields.get(field))[: _READ_TIMES * most]
        usable = [text for entry in entries if (text := _entry(field, entry)) is not None]
        if lost := len(entries) - len(usable):
            notes.append(f"dropped from {field}: {lost} without a usable value")
        telling = {text.casefold(): text for text in reversed(usable) if not _says_nothing(text, quoted)}
        lists[field] = tuple(reversed(telling.values()))[:most]
    read = Enrichment.model_validate({**texts, **lists})
    if read == Enrichment():
        notes.append("the writer found nothing to say")
    risks = (_risk(answer, shown) for answer in answers)  # all of them: one may be an echo of the registration
    gravest = max(risks, key=lambda risk: _RISKS.index(risk.level if risk else _NO_RISK))
    return Written(enrichment=read, risk=gravest, notes=tuple(notes))


_NO_RISK, _UNCLEAR = "none", "unclear"
_RISKS = (_NO_RISK, _UNCLEAR, "steers", "steals")
_SHORTEST_SPAN, _LONGEST_SPAN = 12, 300  # Bytes, as few words of Chinese are telling, and characters


def _risk(fields: Mapping[str, Any], shown: str) -> Risk | None:
    """The risk that an answer states; it is unclear if it is no known one, or quotes nothing of what was `shown`.

    None for no risk, and for an answer without one, as those of earlier prompts are.
    """
    stated = fields.get("risk")
    inner = list(stated.values()) if isinstance(stated, Mapping) else stated if isinstance(stated, list) else [stated]
    said = [visible(text) for text in (*inner, fields.get("span")) if isinstance(text, str)]
    level = next((text.casefold() for text in said if text.casefold() in _RISKS), _UNCLEAR)
    if not stated or level == _NO_RISK:
        return None
    span = max((text for text in said if text.casefold() != level), key=len, default="")[:_LONGEST_SPAN].strip("\"'…. ")
    parts = {key: text for key, text in json.loads(shown).items() if span in text or span in encode_json(text)}
    if level == _UNCLEAR or not parts or size(span) < _SHORTEST_SPAN:
        return Risk(level="unclear")
    return Risk.model_validate({"level": level, "span": span, "where": next(iter(parts))})


def _answers_in(reply: object) -> list[Mapping[str, Any]]:
    """The objects of a reply, or one level below, that have the field without which none is an answer."""
    found = list(objects_in(reply)) if isinstance(reply, str) else reply if isinstance(reply, list) else [reply]
    outer = [one for one in found if isinstance(one, dict)]
    inner = [value for one in outer for value in one.values()]
    inner += [one for text in inner if isinstance(text, str) for one in objects_in(text)]
    return [one for one in (*inner, *outer) if isinstance(one, dict) and _ASKED in one]


def close_risk(reply: str) -> str | None:
    """A reply that was cut off in its risk, which comes last, with an end; None if more is missing."""
    head, found, rest = reply.rpartition('"risk"')
    if not found or _ASKED not in head:
        return None
    return reply.rstrip("\\") + '"}' if '"span"' in rest else f'{head}"risk": "{_UNCLEAR}"}}'


def _says_nothing(text: str, quoted: Collection[str]) -> bool:
    return _SAYS_NOTHING.fullmatch(text) is not None or text.rstrip(".").lower() in quoted


def _text(field: str, value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ReplyUnusable(f"{field} is not text")
    text = visible(value[: _READ_TIMES * _LONGEST_TEXT])  # hidden characters included
    if len(text) > _LONGEST_TEXT or len(value) > _READ_TIMES * _LONGEST_TEXT:
        raise ReplyUnusable(f"{field} is far too long")
    return text


def _to_list(field: str, value: Any) -> list[Any]:
    """The entries of a list without nulls, or of a string: one to a line, keywords also between commas."""
    if isinstance(value, str):
        text = value[: _READ_TIMES * _MOST[field] * _LONGEST_ENTRY]
        return _BETWEEN_KEYWORDS.split(text) if field == "keywords" else text.splitlines()
    if value is not None and not isinstance(value, list):
        raise ReplyUnusable(f"{field} is not a list")
    return [entry for entry in value or () if entry is not None]


def _entry(field: str, entry: Any) -> str | None:
    """An entry as text; None for what cannot be one: no text, over 300 characters, a number that is no keyword."""
    is_number = isinstance(entry, int | float) and not isinstance(entry, bool)
    if field == "keywords" and is_number and abs(entry) < _LARGEST_KEYWORD:
        return f"{entry:.15g}"
    if not isinstance(entry, str) or len(entry) > _READ_TIMES * _LONGEST_ENTRY:
        return None
    text = visible(entry)
    return text if len(text) <= _LONGEST_ENTRY else None


_SECTION = re.compile(r"^## (\w+)\n", re.MULTILINE)
_QUOTED = re.compile(r'"([^"]*)"')
_SENTENCE_WORDS = 3
_PLACE = re.compile(r"\{(\w+)\}")
_SECTIONS = {"system", "request", "tool"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """System prompt, request template and the one tool that the model must answer with."""

    system: str
    request: str
    tool: Mapping[str, Any]
    """`name`, `description` and `schema`, whose top level has only `type`, `properties` and `required`."""
    parts: Mapping[str, str]  # The further texts of the file by section name
    hash: str

    @property
    def example_requests(self) -> frozenset[str]:
        """The examples of at least three words in the system prompt, in lower case: a reply may repeat them."""
        texts = (text.removesuffix(" ...").lower() for text in _QUOTED.findall(self.system))
        return frozenset(text for text in texts if len(text.split()) >= _SENTENCE_WORDS)

    @classmethod
    def parse(cls, text: str) -> Self:
        """The prompt in a Markdown file of sections `## system`, `## request`, `## tool` (JSON) and others.

        Raises ValueError: a section is missing or the tool is not JSON.
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

        Raises ValueError: the tool is not JSON; KeyError: a section is missing.
        """
        tool, plain = (self.parts[f"{section}_{name}"] for section in ("tool", "plain"))
        return replace(self, tool=_parse_tool(tool), parts={**self.parts, "plain": plain})


def _parse_tool(section: str) -> Mapping[str, Any]:
    tool: Mapping[str, Any] = json.loads(section.removeprefix("```json").removesuffix("```"))
    return tool


def fill_template(template: str, places: Mapping[str, str]) -> str:
    """The template with each `{name}` replaced in one pass: values are never expanded again."""
    return _PLACE.sub(lambda place: places[place[1]], template)
