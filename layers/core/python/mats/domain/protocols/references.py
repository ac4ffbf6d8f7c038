"""The references of a document, within bounds: to its own parts, and to files of its folder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from posixpath import dirname, join, normpath
from typing import Any, NamedTuple
from urllib.parse import unquote

from mats.domain.capability.json_schema import KEYWORDS, Copied, copy_schema
from mats.domain.errors import Invalid
from mats.domain.protocols.values import Json, mapping_at, objects

_MAX_CHAIN = 16
_PER_SCHEMA = 64_000  # Bytes of one schema; models cannot fill in a larger one
_PER_DOCUMENT, _LEAST = 10_000_000, 2_000
"""Bytes of the different schemas of a document, which take seconds to expand; then of each one after."""
_TOO_LARGE = "is too large or too deep; parts of it are left out"
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")  # Their schemas describe the same value as the one that holds them
_ABOUT = ("title", "description", "default", "example", "deprecated", "nullable", "readOnly")
"""What is said beside a reference of its target; what a schema demands is said by the target."""
_NO_PROPERTIES = (frozenset[str](),) * 3
_BOUNDS = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))


class Unresolved(Exception):
    """A reference that cannot be resolved; the message has the reason."""


class _Inside(NamedTuple):
    """What a schema takes from those around it."""

    references: tuple[str, ...] = ()
    read_only: frozenset[str] = frozenset()  # Properties of the same value


@dataclass(slots=True)
class References:
    """Resolves the references of a document. `take_cuts` has the reasons why parts of a schema were not expanded."""

    document: Mapping[str, Any]
    read_file: Callable[[str], Json] | None = None
    """Reads a file by its path from the document's; raises Invalid. None: files are not read."""
    is_openapi: bool = True  # Whether schemas are those of requests, in the dialects of OpenAPI
    _cuts: dict[str, None] = field(default_factory=dict)
    _left: int = _PER_DOCUMENT
    _open: int = 0  # References that are being resolved, each for the one before
    _expanded: dict[tuple[str, int], tuple[Copied, dict[str, None]]] = field(default_factory=dict)
    """By reference and budget: many operations refer to the same schema."""
    _targets: dict[str, Json] = field(default_factory=dict)  # By reference: what it leads to, or why it does not
    _properties: dict[int, tuple[Json, tuple[frozenset[str], ...]]] = field(default_factory=dict)
    """By the identity of a schema, which is kept alive here."""

    def follow(self, value: Json) -> Json:
        """The value that a reference leads to, over further references, with what is beside it; any other value itself.

        Raises Unresolved: it leads to nothing, out of the folder, or in a circle.
        """
        reference: Any = ""
        for _ in range(_MAX_CHAIN):
            reference = value.get("$ref") if isinstance(value, Mapping) else None
            if not isinstance(reference, str):
                return value
            beside = {key: entry for key, entry in value.items() if key != "$ref"}
            target = self._resolve(reference)
            value = {**target, **beside} if beside and isinstance(target, Mapping) else target
        raise Unresolved(f"{str(reference)[:100]!r} leads in a circle")

    def try_follow(self, value: Json) -> Json:
        """The value that a reference leads to; the reference itself if it cannot be resolved."""
        try:
            return self.follow(value)
        except Unresolved:
            return value

    def at(self, value: Json, *path: str) -> Json:
        """The value at a path of keys, over references; None if there is none."""
        try:
            for key in path:
                value = mapping_at(self.follow(value)).get(key)
            return self.follow(value)
        except Unresolved:
            return None

    def expand(self, schema: Json, most: int = _PER_SCHEMA) -> Json:
        """A schema with its references expanded, in JSON Schema 2020-12; what is too large or recurs is cut.

        The result is shared between calls: do not change it.
        """
        if not isinstance(schema, Mapping):
            return schema
        budget = min(most, max(self._left, _LEAST))
        reference = schema.get("$ref") if len(schema) == 1 else None
        key = (reference, budget) if isinstance(reference, str) else None
        found = self._expanded.get(key) if key else None
        if found is None:
            earlier, self._cuts = self._cuts, {}
            copied = copy_schema(schema, budget, self._read)
            found = copied, self._cuts | ({} if copied.is_whole else {_TOO_LARGE: None})
            self._cuts = earlier
            self._left -= copied.size
            if key:
                self._expanded[key] = found
        self._cuts |= found[1]
        return found[0].schema

    def take_cuts(self) -> list[str]:
        """Return and clear the reasons why parts were left out."""
        cuts = list(self._cuts)
        self._cuts.clear()
        return cuts

    def _resolve(self, reference: str) -> Json:
        if reference not in self._targets:
            self._targets[reference] = Unresolved(f"{reference[:100]!r} leads in a circle")
            self._open += 1
            try:
                self._targets[reference] = self._look_up(reference)
            except Unresolved as error:
                self._targets[reference] = error
            finally:
                self._open -= 1
        target = self._targets[reference]
        if isinstance(target, Unresolved):
            raise target
        return target

    def _look_up(self, reference: str) -> Json:
        file, is_pointer, pointer = reference.partition("#")
        if not is_pointer:
            return self._file(file)
        found, where = (self._resolve(file), "the file") if file else (self.document, "the document")
        if self._open > _MAX_CHAIN or (pointer and not pointer.startswith("/")):
            raise Unresolved(f"{reference[:100]!r} is not in {where}: only pointers such as #/a/b are followed")
        for part in pointer.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, Mapping) and key not in found:
                found = self.follow(found)
            if isinstance(found, Mapping) and key in found:
                found = found[key]
            elif isinstance(found, list) and key.isascii() and key.isdigit() and len(key) < 7 and int(key) < len(found):
                found = found[int(key)]
            else:
                raise Unresolved(f"{reference[:100]!r} is not in {where}")
        return found

    def _file(self, name: str) -> Json:
        if self.read_file is None or ":" in name or name.startswith("/"):
            raise Unresolved(f"{name[:100]!r} lies outside the document; nothing is fetched")
        try:
            return _rebase(self.read_file(unquote(name)), name)
        except Invalid as error:
            raise Unresolved(f"{name[:100]!r} {'; '.join(fault.message for fault in error.faults)}") from error

    def _read(
        self, schema: Mapping[str, Any], inside: _Inside | None, word: str
    ) -> tuple[Mapping[str, Any], _Inside, bool]:
        """A schema as it is to be copied: the target of a reference, without the dialects of OpenAPI."""
        (references, read_only), base = inside or _Inside(), schema
        while isinstance(reference := schema.get("$ref"), str):
            named: dict[str, Any] = {"title": reference.rpartition("/")[2][:200]}
            try:
                target = self._resolve(reference)
            except Unresolved as error:
                self._cuts[str(error)] = None
                return named, _Inside(), False
            if reference in references or len(references) >= _MAX_CHAIN:  # recursive: expanded once, then named
                return {**named, "type": mapping_at(target).get("type")}, _Inside(), False
            references = (*references, reference)
            beside, base = {key: entry for key, entry in schema.items() if key != "$ref"}, mapping_at(target)
            about = {key: beside[key] for key in _ABOUT if key in beside}
            schema = {**beside, **base, **about} if beside else base
        if not self.is_openapi:
            return schema, _Inside(references), True
        for key in ("properties", "patternProperties"):
            if isinstance(mapping_at(schema, key).get("$ref"), str):
                schema = {**schema, key: self.at(schema, key)}
        names, own, written = self._properties_of(base)
        outer = read_only if word in _ALTERNATIVES else frozenset()
        if len(names) > len(own):  # an object of these alone refers to something
            outer |= own - written
        return _to_current(schema, outer), _Inside(references, outer), True

    def _properties_of(self, schema: Json, depth: int = 0) -> tuple[frozenset[str], ...]:
        """The properties of a schema and of its alternatives; those that only answers have, and the others."""
        if not isinstance(schema, Mapping) or depth > _MAX_CHAIN:
            return _NO_PROPERTIES
        if id(schema) not in self._properties:
            self._properties[id(schema)] = schema, _NO_PROPERTIES
            own = mapping_at(schema, "properties")
            read_only = frozenset(name for name, one in own.items() if self._is_read_only(one))
            inner = (self.at(one) for key in _ALTERNATIVES for one in objects(schema.get(key)))
            found: list[tuple[frozenset[str], ...]] = [(frozenset(own), read_only, frozenset(own) - read_only)]
            found += [self._properties_of(one, depth + 1) for one in inner]
            merged = (frozenset[str]().union(*each) for each in zip(*found, strict=True))
            self._properties[id(schema)] = schema, tuple(merged)
        return self._properties[id(schema)][1]

    def _is_read_only(self, schema: Json) -> bool:
        found = self.at(schema)
        every = [found, *(self.at(one) for one in objects(mapping_at(found).get("allOf")))]
        return any(mapping_at(one).get("readOnly") is True for one in every)


def _rebase(value: Json, file: str) -> Json:
    """The content of a file, with its references as they are from the document that refers to it."""
    if isinstance(value, list):
        return [_rebase(entry, file) for entry in value]
    if not isinstance(value, dict):
        return value
    moved = {key: _rebase(entry, file) for key, entry in value.items()}
    if isinstance(reference := value.get("$ref"), str) and ":" not in reference.partition("#")[0]:
        name, mark, pointer = reference.partition("#")
        moved["$ref"] = (normpath(join(dirname(file), name)) if name else file) + mark + pointer
    return moved


def _to_current(schema: Mapping[str, Any], read_only: frozenset[str]) -> Mapping[str, Any]:
    """A schema of a request in OpenAPI 3.0 or Swagger as one of JSON Schema 2020-12; its own keywords only."""
    current = {word: schema[word] for word in (*KEYWORDS, "nullable", "x-nullable") if word in schema}
    for bound, exclusive in _BOUNDS:
        if current.get(exclusive) is True and bound in current:
            current[exclusive] = current.pop(bound)
    if read_only and isinstance(properties := current.get("properties"), Mapping):
        current["properties"] = {name: one for name, one in properties.items() if name not in read_only}
    if read_only and isinstance(required := current.get("required"), list):
        current["required"] = [name for name in required if not (isinstance(name, str) and name in read_only)]
    if not any(current.get(key) is True for key in ("nullable", "x-nullable")):
        return current
    del current["nullable" if "nullable" in current else "x-nullable"]
    types, values = current.get("type"), current.get("enum")
    if any(key in current for key in (*_ALTERNATIVES, "const", "not")):
        about: dict[str, Any] = {key: current.pop(key) for key in ("title", "description") if key in current}
        return {**about, "anyOf": [current, {"type": "null"}]}
    if types is not None:
        current["type"] = [*(types if isinstance(types, list) else [types]), "null"]
    if isinstance(values, list) and values:
        current["enum"] = [*values, *([] if None in values else [None])]
    return current
