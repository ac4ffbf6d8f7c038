"""Agent Skills: a `SKILL.md`, front matter in YAML and instructions in Markdown, in a folder of its own: one skill."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from mats.domain.capability.capability import Kind, quote_id
from mats.domain.capability.registration import Registration
from mats.domain.protocols.descriptors import FILES, INSTRUCTIONS
from mats.domain.protocols.namespaces import namespace_of_url
from mats.domain.protocols.protocol import Call, Facts, Format, ItemDraft, MappedValue, Protocol, Source, rejection
from mats.domain.protocols.values import Json, mapping_at, text_at, texts, value_at
from mats.domain.text.redaction import is_plain, redact_url

FILE = "SKILL.md"
MAX_INSTRUCTIONS_BYTES = 64_000
"""Longer instructions are truncated when they are served: they would fill a model's context."""
_MAX_FILES = 200
_LONGEST_BODY = 100_000
_SKILL = "agent-skill"
_FRONT, _WRONG = "frontMatter", "unreadable"
_OF_MODELS = frozenset({"pipeline_tag", "library_name", "base_model", "model-index"})
"""Front matter of the cards of models."""
_SEPARATOR = re.compile(r"[ _-]")
_SEARCHED = {
    **dict.fromkeys(("tags", "keywords", "triggerkeywords"), "tags"),
    **dict.fromkeys(("triggers", "triggerphrases"), "examples"),
    **dict.fromkeys(("whentouse", "usewhen"), "description"),
}
"""The attributes of a registration that hold what loaders of skills search, in the front matter or its `metadata`."""
_FENCE = re.compile(r"\A\ufeff?\s*---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?(.*)\Z", re.DOTALL | re.MULTILINE)


class SkillReading(Call):
    """A skill: the request for its instructions, the files beside them, and where its owner keeps it."""

    protocol: Literal["skill"] = "skill"
    instructions: str = ""
    files: tuple[str, ...] = ()
    url: str = ""

    def facts(self) -> Facts:
        return (("protocol", "a skill: an agent reads its instructions and follows them"), ("endpoint", self.url))


def split(text: str) -> tuple[str, str] | None:
    """Front matter and body of a SKILL.md; None for a text without front matter."""
    found = _FENCE.match(text)
    return (found[1], found[2]) if found else None


def to_value(front: Json, body: str, *, wrong: str = "") -> Json:
    """A SKILL.md as one value, for `registrations`."""
    return {_FRONT: front, INSTRUCTIONS: body.strip(), **({_WRONG: wrong} if wrong else {})}


def _words(value: object) -> Iterator[str]:
    """The texts of a list, at any depth, or those between the commas of one text."""
    if isinstance(value, str):
        yield from filter(str.strip, value.split(","))
    for entry in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from [text] if (text := text_at({"": entry}, "")) else _words(entry)


def is_skill(value: Json) -> bool:
    """True if `to_value` made this value."""
    return isinstance(value, Mapping) and {_FRONT, INSTRUCTIONS} <= value.keys()


def registrations(value: Json, source: Source) -> Iterator[MappedValue]:
    front = mapping_at(value, _FRONT)
    if not _OF_MODELS.isdisjoint(front):
        yield rejection("", "is the card of a model, which is not read: register the model by `mats add --kind model`")
        return
    keys = ("homepage", "repository", "url", "source")
    owners = [text_at(level, key) for level in (front, front.get("metadata")) for key in keys]
    namespace = source.namespace or namespace_of_url(*owners, source.url)
    draft = ItemDraft.create("", "skill", namespace, front, format=_SKILL)
    if wrong := text_at(value, _WRONG):
        draft.add_note("front matter", f"{wrong}; each key was parsed by itself")
    name = draft.move_text("name")
    if not name and source.folder:
        draft.set_text("name", source.folder)
        draft.add_note("name", "is missing; the folder's name is used")
    elif name and source.folder and name != source.folder:
        draft.add_note("name", f"differs from the folder's name ({source.folder[:60]!r}), against the specification")
    draft.move_text("description")
    if not draft.move_text("version"):
        draft.set_text("version", text_at(front, "metadata", "version"))
    author = value_at(front, "metadata", "author") or front.get("author")
    draft.set_text("provider", author.strip() if isinstance(author, str) else "")
    said: dict[str, list[str]] = {"tags": [], "examples": [], "description": [draft.item.get("description", "")]}
    for key, given in (*front.items(), *mapping_at(front, "metadata").items()):
        if attribute := _SEARCHED.get(_SEPARATOR.sub("", key.lower())):
            said[attribute] += _words([given] if attribute == "description" else given)
    draft.set_words("tags", said["tags"])
    draft.set_words("examples", said["examples"])
    draft.set_text("description", "\n\n".join(filter(None, said["description"])))
    draft.set_endpoint(source.url)
    body = text_at(value, INSTRUCTIONS)
    if len(body) > _LONGEST_BODY:
        draft.add_note("descriptor", f"the instructions are truncated to {_LONGEST_BODY:,} of {len(body):,} characters")
    if body:
        draft.rest[INSTRUCTIONS] = body[:_LONGEST_BODY]
    draft.rest.pop(FILES, None)
    if source.files:
        draft.rest[FILES] = list(source.files)
    yield draft.finish()


def invocation(registration: Registration, descriptor: Mapping[str, Any]) -> SkillReading | None:
    has_instructions = isinstance(text := descriptor.get(INSTRUCTIONS), str) and bool(text.strip())
    url = redact_url(registration.endpoint) or ""
    if not has_instructions and not url:
        return None
    return SkillReading(
        instructions=f"GET /capabilities/{quote_id(registration.id)}/instructions" if has_instructions else "",
        files=tuple(file for file in texts(descriptor.get(FILES)) if is_plain(file) and len(file) <= 500)[:_MAX_FILES],
        url=url,
    )


def instructions_of(registration: Registration) -> str:
    """A skill's instructions, cut off after MAX_INSTRUCTIONS_BYTES with a line that says so."""
    text = (registration.descriptor or {}).get(INSTRUCTIONS)
    if not isinstance(text, str):
        return ""
    whole = text.strip()
    kept = whole.encode()[:MAX_INSTRUCTIONS_BYTES].decode(errors="ignore")
    return whole if kept == whole else f"{kept}\n\n[truncated: {len(kept):,} of {len(whole):,} characters]"


PROTOCOL = Protocol(
    formats=(Format(_SKILL, f"a skill ({FILE} with front matter)", 20, is_skill, registrations),),
    searched={_SKILL: frozenset({"compatibility"})},
    invocation=invocation,
    kind=Kind.SKILL,
)
