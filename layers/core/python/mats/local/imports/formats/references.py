"""`$ref` within one document, written out in place: never in a circle, never more than a budget of values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from mats.local.imports.formats.mapping import Json

_DEEPEST = 22
"""Levels of a schema; an item may have 32, and the schema lies within it."""
_LONGEST_CHAIN = 16
_PER_SCHEMA = 1_500
"""Values that one schema may have written out; no model fills in a larger one."""
_PER_DOCUMENT = 1_500_000
"""Values written out of one document in all, which takes a few seconds."""


@dataclass(slots=True)
class Unresolved(Exception):
    """A reference that leads nowhere; the message says why."""

    message: str


@dataclass(slots=True)
class References:
    """Reads a document through its references. `cuts` says why something was not written out, until it is taken."""

    document: Mapping[str, Any]
    cuts: dict[str, None] = field(default_factory=dict)
    _left: int = 0
    _left_in_all: int = _PER_DOCUMENT

    def follow(self, value: Json) -> Json:
        """The value that a reference leads to, over further references; any other value itself.

        Raises:
            Unresolved: there is none here.
        """
        reference: Any = ""
        for _ in range(_LONGEST_CHAIN):
            reference = value.get("$ref") if isinstance(value, Mapping) else None
            if not isinstance(reference, str):
                return value
            value = self._at(reference)
        raise Unresolved(f"{str(reference)[:100]!r} leads in a circle")

    def _at(self, reference: str) -> Json:
        if not reference.startswith("#"):
            raise Unresolved(f"{reference[:100]!r} lies outside the document; nothing is fetched")
        found: Json = self.document
        for part in reference[1:].split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit() and len(key) < 7 and int(key) < len(found):
                found = found[int(key)]
            else:
                raise Unresolved(f"{reference[:100]!r} is not in the document")
        return found

    def expand(self, schema: Json) -> Json:
        """A schema with what it refers to in place; where that cannot be, its name stands instead."""
        self._left = min(_PER_SCHEMA, self._left_in_all)
        before = self._left
        written = self._expand(schema, 0, ())
        self._left_in_all -= before - self._left
        return written

    def take_cuts(self) -> list[str]:
        """Why something was left out since this was last asked."""
        cuts = list(self.cuts)
        self.cuts.clear()
        return cuts

    def _expand(self, value: Json, depth: int, inside: tuple[str, ...]) -> Json:
        self._left -= 1
        if isinstance(value, Mapping) and isinstance(value.get("$ref"), str):
            return self._expand_reference(value, depth, inside)
        if not isinstance(value, Mapping | list):
            return value
        if self._left <= 0 or depth >= _DEEPEST:
            return self._cut("is too large or too deep to be written out; some of it is left out", value, inside)
        if isinstance(value, list):
            return [self._expand(entry, depth + 1, inside) for entry in value]
        return {key: self._expand(entry, depth + 1, inside) for key, entry in value.items()}

    def _expand_reference(self, value: Mapping[str, Any], depth: int, inside: tuple[str, ...]) -> Json:
        reference = value["$ref"]
        named = {"title": reference.rpartition("/")[2][:200]}
        if reference in inside:
            return named  # a recursive schema: said once, named from then on
        try:
            target = self._at(reference)
        except Unresolved as error:
            self.cuts[error.message] = None
            return named
        if self._left <= 0 or depth >= _DEEPEST or len(inside) >= _LONGEST_CHAIN:
            return (
                self._cut("is too large or too deep to be written out; some of it is left out", value, inside) or named
            )
        beside = {key: entry for key, entry in value.items() if key != "$ref"}
        merged = {**target, **beside} if isinstance(target, Mapping) else target
        return self._expand(merged, depth, (*inside, reference))

    def _cut(self, why: str, value: Json, inside: tuple[str, ...]) -> Json:
        self.cuts[why] = None
        if isinstance(value, list):
            return []
        return {"title": inside[-1].rpartition("/")[2][:200]} if inside else {}
