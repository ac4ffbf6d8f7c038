"""Agent Skills: a `SKILL.md`, front matter in YAML and instructions in Markdown, in a folder of its own: one skill.

Front matter that YAML does not accept (a colon in a description that is not quoted is common) is read line by line.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.protocols.descriptors import FILES
from mats.local.imports.formats import naming
from mats.local.imports.formats.mapping import MAX_ENDPOINT, ItemDraft, MappedValue, Source, rejection
from mats.local.imports.formats.values import Json, text_at, value_at

NAME = "agent-skill"
FILE = "SKILL.md"

_FRONT = "frontMatter"
_BODY = "instructions"
_WRONG = "unreadable"
_FENCE = re.compile(r"\A\ufeff?\s*---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?(.*)\Z", re.DOTALL | re.MULTILINE)
_LINE = re.compile(r"([A-Za-z][\w-]*):[ \t]*(.*)")
_LONGEST_BODY = 100_000


def split(text: str) -> tuple[str, str] | None:
    """Front matter and body of a SKILL.md; None for a text without front matter."""
    found = _FENCE.match(text)
    return (found[1], found[2]) if found else None


def to_value(front: Json, body: str, *, wrong: str = "") -> Json:
    """A SKILL.md as one value, for the mapper."""
    return {_FRONT: front, _BODY: body.strip(), **({_WRONG: wrong} if wrong else {})}


def parse_by_line(front: str) -> dict[str, str]:
    """Parse front matter line by line: `key: text` and its indented lines, no other YAML."""
    texts: dict[str, str] = {}
    key = ""
    for line in front.splitlines():
        found = _LINE.match(line)
        if found:
            key = found[1]
            texts[key] = found[2].strip().strip("\"'")
        elif key and line[:1] in (" ", "\t"):
            joined = f"{texts[key].removeprefix('|').removeprefix('>').strip()} {line.strip()}"
            texts[key] = joined.strip()
    return texts


def detect(value: Json) -> bool:
    """A value that `to_value` made."""
    return isinstance(value, Mapping) and {_FRONT, _BODY} <= value.keys()


def map_value(value: Json, source: Source) -> Iterator[MappedValue]:
    front = value.get(_FRONT) if isinstance(value, Mapping) else None
    if not isinstance(front, Mapping):
        yield rejection("front matter", "must be `key: value` lines between two lines of `---`")
        return
    yield _skill(front, text_at(value, _BODY), text_at(value, _WRONG), source)


def _skill(front: Mapping[str, Any], body: str, wrong: str, source: Source) -> MappedValue:
    namespace = source.namespace or naming.namespace_of_url(*_owner_urls(front), source.url)
    draft = ItemDraft.create("", "skill", namespace, front, format=NAME)
    if wrong:
        draft.add_note("front matter", f"{wrong}; it was parsed line by line")
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
    for key in ("tags", "keywords"):
        given = front.get(key)
        if given and "tags" not in draft.item:
            draft.set_words("tags", given.split(",") if isinstance(given, str) else given)
    draft.set("endpoint", source.url if len(source.url) <= MAX_ENDPOINT else "")
    if len(body) > _LONGEST_BODY:
        draft.add_note("descriptor", f"the instructions are truncated to {_LONGEST_BODY:,} of {len(body):,} characters")
    if body:
        draft.rest[_BODY] = body[:_LONGEST_BODY]
    draft.rest.pop(FILES, None)
    if source.files:
        draft.rest[FILES] = list(source.files)
    return draft.finish()


def _owner_urls(front: Mapping[str, Any]) -> list[str]:
    """Addresses in the front matter that name the owner."""
    keys = ("homepage", "repository", "url", "source")
    return [text for level in (front, value_at(front, "metadata")) for key in keys if (text := text_at(level, key))]
