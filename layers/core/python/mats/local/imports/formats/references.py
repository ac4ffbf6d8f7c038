"""Expand `$ref` within one document in place: never in a circle, never more than a budget of values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote

from mats.local.imports.formats.values import Json

_MAX_DEPTH = 22
"""Levels of a schema: an item may have 32, and contains the schema."""
_MAX_CHAIN = 16
_PER_SCHEMA = 1_500
"""Budget of values for one schema; models cannot fill in a larger one."""
_PER_DOCUMENT = 1_500_000
"""Budget of values for one document, which takes a few seconds to expand."""
_CONTAINERS = (dict, list)
"""Of JSON and YAML; checking for the abstract types takes many times as long."""
_TOO_LARGE = "is too large or too deep; parts of it are left out"


class Unresolved(Exception):
    """A reference that cannot be resolved; the message has the reason."""


class _Expansion(NamedTuple):
    schema: Json
    cuts: dict[str, None]
    values: int


@dataclass(slots=True)
class References:
    """Resolves the references of a document. `take_cuts` has the reasons why parts of a schema were not expanded."""

    document: Mapping[str, Any]
    _cuts: dict[str, None] = field(default_factory=dict)
    _left: int = 0
    _left_in_document: int = _PER_DOCUMENT
    _expanded: dict[tuple[str, int], _Expansion] = field(default_factory=dict)
    """By reference and budget: many operations refer to the same schema."""
    _targets: dict[str, Json] = field(default_factory=dict)
    """By reference."""

    def follow(self, value: Json) -> Json:
        """The value that a reference leads to, over further references; any other value itself."""
        reference: Any = ""
        for _ in range(_MAX_CHAIN):
            reference = value.get("$ref") if isinstance(value, Mapping) else None
            if not isinstance(reference, str):
                return value
            value = self._resolve(reference)
        raise Unresolved(f"{str(reference)[:100]!r} leads in a circle")

    def _resolve(self, reference: str) -> Json:
        if reference not in self._targets:
            self._targets[reference] = self._look_up(reference)
        return self._targets[reference]

    def _look_up(self, reference: str) -> Json:
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
        """A schema with its references expanded, within the budget; beyond it, replaced by their names.

        The result is shared between calls: do not change it.
        """
        budget = min(_PER_SCHEMA, self._left_in_document)
        reference = schema.get("$ref") if isinstance(schema, Mapping) and len(schema) == 1 else None
        key = (reference, budget) if isinstance(reference, str) else None
        expansion = self._expanded.get(key) if key else None
        if expansion is None:
            earlier, self._cuts, self._left = self._cuts, {}, budget
            expansion = _Expansion(self._expand(schema, 0, ()), self._cuts, budget - self._left)
            self._cuts = earlier
            if key:
                self._expanded[key] = expansion
        self._cuts |= expansion.cuts
        self._left_in_document -= expansion.values
        return expansion.schema

    def take_cuts(self) -> list[str]:
        """Return and clear the reasons why parts were left out."""
        cuts = list(self._cuts)
        self._cuts.clear()
        return cuts

    def _expand(self, value: Json, depth: int, inside: tuple[str, ...]) -> Json:
        self._left -= 1
        if not isinstance(value, _CONTAINERS):
            return value
        if isinstance(value, dict) and isinstance(value.get("$ref"), str):
            return self._expand_reference(value, depth, inside)
        if self._left <= 0 or depth >= _MAX_DEPTH:
            return self._cut(value, inside)
        if isinstance(value, list):
            return [self._expand(entry, depth + 1, inside) for entry in value]
        return {key: self._expand(entry, depth + 1, inside) for key, entry in value.items()}

    def _expand_reference(self, value: Mapping[str, Any], depth: int, inside: tuple[str, ...]) -> Json:
        reference = value["$ref"]
        title = {"title": reference.rpartition("/")[2][:200]}
        if reference in inside:
            return title  # a recursive schema: expanded once, then named
        try:
            target = self._resolve(reference)
        except Unresolved as error:
            self._cuts[str(error)] = None
            return title
        if self._left <= 0 or depth >= _MAX_DEPTH or len(inside) >= _MAX_CHAIN:
            return self._cut(value, inside) or title
        beside = {key: entry for key, entry in value.items() if key != "$ref"}
        merged = {**target, **beside} if isinstance(target, Mapping) else target
        return self._expand(merged, depth, (*inside, reference))

    def _cut(self, value: Json, inside: tuple[str, ...]) -> Json:
        self._cuts[_TOO_LARGE] = None
        if isinstance(value, list):
            return []
        return {"title": inside[-1].rpartition("/")[2][:200]} if inside else {}
