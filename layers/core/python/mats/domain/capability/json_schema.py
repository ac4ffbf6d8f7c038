"""Owners' JSON Schemas, valid and of bounded size: APIs reject all tools of a request if one schema is invalid.

https://json-schema.org/draft/2020-12/schema defines the values of each keyword. Keywords with other values are dropped,
and what is too deep or too large is cut, so that a schema accepts no less than before.
"""

import json
import operator
import re
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

_MAX_REFERENCES = 8  # Chained references to follow; they may be circular
_LONGEST_PATTERN, _PATTERNS = 2_000, "patternProperties"
_TYPES = frozenset("array boolean integer null number object string".split())


def drop_invalid_keywords(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without keywords whose values are invalid, at any depth."""
    checked = {word: _check(word, value) for word, value in schema.items()}
    return {word: value for word, value in checked.items() if value is not _INVALID}


def resolve_reference(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """The target of a schema's reference within the whole; empty if there is none."""
    for _ in range(_MAX_REFERENCES):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        found: Any = whole
        for part in reference.removeprefix("#/").split("/"):
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        schema = found if isinstance(found, dict) else {}
    return {}


_EMPTY: Mapping[str, Any] = {"number": 0, "integer": 0, "boolean": False, "null": None, "array": []}
_MAX_DEPTH, _MAX_VALUE, _MAX_ENTRIES = 4, 200, 20
"""Of an example: nested objects, characters of a value that its owner states, properties of an object."""


def example_of(schema: object, whole: Mapping[str, Any], *, depth: int = 0) -> Any:
    """A value for a schema: the first that it states, else an empty one of its type; of an object what it requires."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return ""
    schema = resolve_reference(schema, whole)
    lists = [found for word in ("examples", "enum") if isinstance(found := schema.get(word), list)]
    stated = [schema[word] for word in ("const", "default", "example") if word in schema]
    for value in (*stated, *(found[0] for found in lists if found)):
        if len(json.dumps(value)) <= _MAX_VALUE:
            return value
    named = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    type = next((type for type in named if isinstance(type, str) and type != "null"), "")
    if type == "object" or isinstance(schema.get("properties"), dict):
        properties = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
        required = schema["required"] if _are_names(schema.get("required")) else list(properties)
        chosen = [name for name in properties if name in required] or list(properties)
        return {name: example_of(properties[name], whole, depth=depth + 1) for name in chosen[:_MAX_ENTRIES]}
    return _EMPTY.get(type, "")


_ABSENT: Mapping[str, Any] = {}
_MOST_CHECKED = 500  # Objects and lists, each against one schema: references may be circular
_TYPE_OF: Sequence[tuple[Any, str]] = (
    (bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (Mapping, "object"),
    ((list, tuple), "array"),
)  # fmt: skip
_SPELLED = {"integer": r"-?\d+", "number": r"-?\d+(\.\d+)?([eE][+-]?\d+)?", "boolean": "true|false"}
"""How texts spell the values of a type."""


class Texts(NamedTuple):
    """Which parts of an input are sent as text, where a text may spell any value."""

    some: bool = False  # All but this
    but: str = ""  # The input that is a body of JSON
    files: str = ""  # The input that is a form with files


NO_TEXTS = Texts()


def faults_of(
    value: object,
    schema: object,
    whole: Mapping[str, Any],
    path: tuple[str | int, ...] = (),
    seen: set[tuple[int, int]] | None = None,
    *,
    texts: Texts = NO_TEXTS,
) -> Iterator[tuple[str, str]]:
    """The paths of what a schema requires and an input lacks, and of values that it excludes, each with what is wrong.

    A value may be of another type, out of bounds, or none of an `enum`. Properties that are `readOnly` are for answers,
    and null is as good as absent, unless it may be sent as JSON. Alternatives (`anyOf`, `oneOf`) are not decided.
    """
    schema = resolve_reference(schema, whole) if isinstance(schema, dict) else {}
    if value is None:
        return
    if wrong := _wrong_type(value, schema, path, texts) or _out_of_bounds(value, schema):
        yield _spell(path), wrong
    seen, key = set() if seen is None else seen, (id(value), id(schema))
    if not isinstance(value, Mapping | list | tuple) or key in seen or len(seen) > _MOST_CHECKED:
        return
    seen.add(key)
    for part in schema["allOf"] if isinstance(schema.get("allOf"), list) else ():
        yield from faults_of(value, part, whole, path, seen, texts=texts)
    if not isinstance(value, Mapping):
        for position, entry in enumerate(value):
            yield from faults_of(entry, schema.get("items"), whole, (*path, position), seen, texts=texts)
        return
    properties = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
    required = schema["required"] if _are_names(schema.get("required")) else []
    for name in dict.fromkeys((*required, *(name for name in value if name in properties))):
        inner, own = properties.get(name), (*path, name)
        is_absent = value.get(name) is None and (
            name not in value or _is_text(own, texts) or not _allows_null(inner, whole)
        )
        if is_absent and (name not in required or (isinstance(inner, dict) and inner.get("readOnly") is True)):
            continue
        found = list(faults_of(_ABSENT if is_absent else value[name], inner, whole, own, seen, texts=texts))
        lacking = [each for each in found if each[0] != _spell(own)] if is_absent else found
        yield from lacking or ([(_spell(own), "is required")] if is_absent else [])


def _is_text(path: Sequence[str | int], texts: Texts) -> bool:
    """True if what is at a path is sent as text, which spells no null."""
    return texts.some and (path[:1] != (texts.but,) or len(path) == 1)


def _allows_null(schema: object, whole: Mapping[str, Any], depth: int = 0) -> bool:
    """True if a schema, or an alternative of it, names null as a type or a value."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return False
    schema = resolve_reference(schema, whole)
    types, values = schema.get("type"), schema.get("enum")
    if "null" in (types if isinstance(types, list) else [types]) or schema.get("nullable") is True:
        return True
    options = [one for word in ("anyOf", "oneOf") if isinstance(found := schema.get(word), list) for one in found]
    is_value = isinstance(values, list) and None in values
    return is_value or any(_allows_null(one, whole, depth + 1) for one in options)


def _spell(path: Sequence[str | int]) -> str:
    """A path as `body.items[1]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _wrong_type(value: object, schema: Mapping[str, Any], path: Sequence[str | int], texts: Texts) -> str:
    """The fault of a value's type; empty if the type is one of the schema's, or the schema has none."""
    if schema.get("format") == "binary" and len(path) > 1 and path[0] == texts.files:
        is_file = isinstance(value, Mapping) and "filename" in value
        return "" if is_file else "must be a file: an object with `filename`, and `content` or `base64`"
    named = schema["type"] if isinstance(schema.get("type"), list) else [schema.get("type")]
    found = next((name for python, name in _TYPE_OF if isinstance(value, python)), "")
    alike = {found} | ({"integer", "number"} if _is_whole(value) else set())
    if not found or not all(isinstance(each, str) for each in named) or not _TYPES.issuperset(named):
        return ""
    if alike.intersection(named) or (schema.get("format") == "binary" and found == "object"):
        return ""
    if isinstance(value, str) and _is_text(path, texts):
        patterns = [_SPELLED[each] for each in named if each in _SPELLED]
        if not patterns or any(re.fullmatch(pattern, value) for pattern in patterns):
            return ""
    return f"must be of type {' or '.join(map(str, named))}, not {found}"


_Bounds: TypeAlias = Sequence[tuple[str, Callable[[Any, Any], bool], str]]
"""Keywords, each with the test of a value against its bound, and the message of a value that fails."""
_BOUNDS: _Bounds = (
    ("minimum", operator.ge, "must be at least {}"), ("maximum", operator.le, "must be at most {}"),
    ("exclusiveMinimum", operator.gt, "must be more than {}"),
    ("exclusiveMaximum", operator.lt, "must be less than {}"),
)  # fmt: skip
_LENGTHS: _Bounds = (
    ("minLength", operator.ge, "must have at least {} characters"),
    ("maxLength", operator.le, "must have at most {} characters"),
)
_FEW_VALUES = 12  # Of an `enum` that a message lists


def _out_of_bounds(value: object, schema: Mapping[str, Any]) -> str:
    """The fault of a value with the right type; empty if its bounds and its `enum` allow it."""
    allowed = schema.get("enum")
    if isinstance(allowed, list) and isinstance(value, str | int | float) and value not in allowed:
        named = [each if isinstance(each, str) else json.dumps(each) for each in allowed]
        if str(value) not in named:
            return f"must be one of {', '.join(named[:_FEW_VALUES])}{', …' if len(named) > _FEW_VALUES else ''}"
    if isinstance(value, str):
        return _first_broken(len(value), _LENGTHS, schema)
    return _first_broken(value, _BOUNDS, schema) if _is_number(value) else ""


def _first_broken(measured: Any, bounds: _Bounds, schema: Mapping[str, Any]) -> str:
    """The message of the first bound that a value breaks; empty if it breaks none."""
    stated = ((schema.get(keyword), holds, message) for keyword, holds, message in bounds)
    return next((message.format(n) for n, holds, message in stated if _is_number(n) and not holds(measured, n)), "")


def _is_whole(value: object) -> bool:
    return not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))


_INVALID: Any = object()  # Marks an invalid value; None can be a valid one


def _if(allowed: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda value: value if allowed(value) else _INVALID


def _schema(value: Any) -> Any:
    return drop_invalid_keywords(value) if isinstance(value, dict) else value if isinstance(value, bool) else _INVALID


def _whole(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """For keywords that would accept less if a part of their value were dropped."""
    return _if(lambda value: check(value) == value)


def _schemas(value: Any) -> Any:
    read = [_schema(entry) for entry in value] if isinstance(value, list) else []
    return read if read and not any(entry is _INVALID for entry in read) else _INVALID


def _each_of(check: Callable[[Any], Any], is_key: Callable[[Any], bool] = lambda key: True) -> Callable[[Any], Any]:
    """For objects: their entries with a valid value; none of an object with an invalid key."""

    def check_entries(value: Any) -> Any:
        if not isinstance(value, dict) or not all(map(is_key, value)):
            return _INVALID
        checked = {name: check(entry) for name, entry in value.items()}
        return {name: entry for name, entry in checked.items() if entry is not _INVALID}

    return check_entries


def _type(value: Any) -> Any:
    named = value if isinstance(value, list) else [value]
    known = [name for name in dict.fromkeys(n for n in named if isinstance(n, str)) if name in _TYPES]
    if not known or len(known) < len(set(map(str, named))):
        return _INVALID  # unknown names may mean any type
    return known if isinstance(value, list) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(n, str) for n in value) and len(set(value)) == len(value)


def _is_pattern(value: Any) -> bool:
    """True if a text is a regular expression for Python, too: validators of tools check that."""
    if not isinstance(value, str) or len(value) > _LONGEST_PATTERN:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return bool(re.compile(value))
        except (re.error, OverflowError, RecursionError):
            return False


def _all(keywords: str, check: Callable[[Any], Any]) -> dict[str, Callable[[Any], Any]]:
    return dict.fromkeys(keywords.split(), check)


_SINGLE = "additionalProperties unevaluatedProperties unevaluatedItems items propertyNames then else contentSchema"
_SINGLE_WHOLE, _MAPS, _LISTS = "not if contains", "properties patternProperties $defs definitions dependentSchemas", (
    "allOf anyOf prefixItems"
)  # fmt: skip
"""Keywords whose value is a schema, an object of schemas, a list of them; of `not`, none less may be accepted."""
_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    **_all(_SINGLE, _schema),
    **_all(_SINGLE_WHOLE, _whole(_schema)),
    **_all(_MAPS, _each_of(_schema)),
    _PATTERNS: _each_of(_schema, _is_pattern),
    **_all(_LISTS, _schemas),
    "oneOf": _whole(_schemas),
    **_all("maximum minimum exclusiveMaximum exclusiveMinimum", _if(_is_number)),
    **_all("maxLength minLength maxItems minItems maxProperties minProperties maxContains minContains", _if(_is_count)),
    **_all("uniqueItems deprecated readOnly writeOnly", _if(lambda value: isinstance(value, bool))),
    **_all(
        "title description $comment format contentEncoding contentMediaType $ref $dynamicRef",
        _if(lambda value: isinstance(value, str)),
    ),
    "pattern": _if(_is_pattern),
    **_all("enum examples", _if(lambda value: isinstance(value, list) and bool(value))),
    **_all("$id $anchor $dynamicAnchor $vocabulary", lambda value: _INVALID),
    "type": _type,
    "multipleOf": _if(lambda value: _is_number(value) and value > 0),
    "required": _if(_are_names),
    "dependentRequired": _each_of(_if(_are_names)),
    "dependencies": _each_of(lambda value: value if _are_names(value) else _schema(value)),
}
"""Each returns the valid part of a keyword's value. Names of schemas are dropped: they may clash in a list of tools."""

_WORD_OF_ONE = frozenset(f"{_SINGLE} {_SINGLE_WHOLE}".split())
_WORD_OF_MAP, _WORD_OF_LIST = frozenset(_MAPS.split()), frozenset(f"{_LISTS} oneOf".split())
_NOT_IF_CUT = frozenset(
    "not if then else contains minContains maxContains unevaluatedItems unevaluatedProperties".split()
)
"""Keywords by which a schema accepts less if one within it accepts more."""
_LEAST_SIZE = 40  # Bytes that a schema takes with its name, in a list or object of many
_STUB = ("type", "title", "required", "enum", "format", "description")
KEYWORDS = tuple(dict.fromkeys((*_STUB, "const", "default", "example", *_CHECKS)))
"""Those that are copied, in this order."""
_STUB_SIZE, _STUB_WORD = 200, 120
_DEEPEST, _DEEPEST_VALUE = 22, 4  # Levels of containers: an item may have 32, and holds the schema and its values
_LONGEST_TEXT = 150  # Of a description in a schema that is too large

Read: TypeAlias = Callable[[Mapping[str, Any], Any, str], tuple[Mapping[str, Any], Any, bool]]
"""Reads a schema before it is copied: given it, the state of the schema around it and the keyword between them, returns
the schema, its own state, and whether it is whole. Only keywords of 2020-12 are copied."""


class Copied(NamedTuple):
    schema: Any
    is_whole: bool  # False if it had to be cut
    size: int


def copy_schema(schema: Mapping[str, Any], most: int, read: Read) -> Copied:
    """A copy of at most `most` bytes as JSON. Of one that is larger, descriptions are shortened, then it is cut.

    It is copied level by level while there is room: what is deeper keeps its type, title and what it requires.
    """
    copy = _Copy(read, most)
    copied, is_whole = copy.make(schema), not copy.is_cut
    if copy.is_cut:
        copy = _Copy(read, most, _LONGEST_TEXT)
        copied = copy.make(schema)
    return Copied(copied, is_whole, most - copy.left)


@dataclass(slots=True)
class _Copy:
    read: Read
    left: int  # In bytes
    longest: int = 0  # Characters of a description; 0: any number
    is_cut: bool = False
    _stubs: set[int] = field(default_factory=set)  # The identities of those that stay
    _waiting: deque[tuple[Any, Any, Mapping[str, Any], Any, int]] = field(default_factory=deque)

    def make(self, schema: Mapping[str, Any]) -> Any:
        holder: dict[str, Any] = {}
        self._offer(holder, "", schema, None, "", 0)
        self.left -= _size(holder[""])
        while self._waiting and (self.longest or not self.is_cut):  # one that is cut is made again, with short texts
            self._complete(*self._waiting.popleft())
        self._loosen(holder[""])
        return holder[""]

    def _offer(self, holder: Any, key: Any, schema: Mapping[str, Any], state: Any, word: str, depth: int) -> None:
        """Put the stub of a schema in its place, to be completed when its level is reached."""
        read, state, is_whole = self.read(schema, state, word)
        holder[key] = _stub(read)
        if is_whole:
            self._waiting.append((holder, key, read, state, depth))
        else:
            self._stubs.add(id(holder[key]))

    def _complete(self, holder: Any, key: Any, schema: Mapping[str, Any], state: Any, depth: int) -> None:
        """Replace a stub by the whole schema with stubs for those within it, if there is room."""
        before, length = len(self._waiting), _size(holder[key])
        made: dict[str, Any] = {}
        fits = depth <= _DEEPEST
        for word in KEYWORDS:
            if word not in schema:
                continue
            if word in _WORD_OF_ONE | _WORD_OF_MAP | _WORD_OF_LIST:
                fits &= self._offer_within(made, word, schema, state, depth)
            elif (own := self._own(word, schema[word])) is not _INVALID:
                made[word] = own
        if fits and (cost := _size(made) - length) <= self.left:
            self.left -= cost
            holder[key] = made
            return
        while len(self._waiting) > before:
            self._waiting.pop()
        self.is_cut = True
        if depth <= 2 and isinstance(made.get("properties"), dict):
            holder[key] = self._with_inputs(holder[key], made)
        self._stubs.add(id(holder[key]))

    def _offer_within(self, made: dict[str, Any], word: str, schema: Mapping[str, Any], state: Any, depth: int) -> bool:
        """Offer the schemas under a keyword, those of required properties first; false if they are too many."""
        value, most = schema[word], max(self.left, 0) // _LEAST_SIZE + 1
        places: Any = made
        entries: list[tuple[Any, Any]] = [(word, value)]
        if word in _WORD_OF_MAP:
            if not isinstance(value, dict) or (word == _PATTERNS and not all(map(_is_pattern, value))):
                return True
            required = schema.get("required", [])
            first = [name for name in required[:most] if name in value] if _are_names(required) else []
            names = dict.fromkeys(islice(chain(first, value), most))
            places, entries = made.setdefault(word, {}), [(name, value[name]) for name in names]
        elif word in _WORD_OF_LIST:
            if not isinstance(value, list) or not value or not all(isinstance(one, Mapping | bool) for one in value):
                return True
            made[word] = places = [None] * min(len(value), most)
            entries = list(enumerate(value[:most]))
        for key, inner in entries:
            if isinstance(inner, Mapping):
                self._offer(places, key, inner, state, word, depth + (1 if word in _WORD_OF_ONE else 2))
            elif isinstance(inner, bool):
                places[key] = inner
        return word in _WORD_OF_ONE or len(value) <= most

    def _loosen(self, made: Any) -> bool:
        """True if a schema holds a stub; it then loses what accepts less if something in it accepts more."""
        if not isinstance(made, dict):
            return False
        within = [made[word] for word in _WORD_OF_ONE & made.keys()]
        within += [one for word in _WORD_OF_MAP & made.keys() for one in made[word].values()]
        within += [one for word in _WORD_OF_LIST & made.keys() for one in made[word]]
        inner = list(map(self._loosen, within))
        is_loose = any(inner) or id(made) in self._stubs
        if is_loose:
            for word in _NOT_IF_CUT & made.keys():
                del made[word]
            if options := made.pop("oneOf", None):
                made.setdefault("anyOf", options)
        return is_loose

    def _own(self, word: str, value: Any) -> Any:
        """The value of a keyword that holds no schemas; invalid if it is not kept."""
        is_long = isinstance(value, str | list | dict) and len(value) > max(self.left, 0)
        self.is_cut |= is_long
        if word == "description" and isinstance(value, str) and (is_long or self.longest):
            return value[:_LONGEST_TEXT]
        if is_long or _is_deep(value, self.left):
            return _INVALID
        too_long = self.longest and word in ("default", "example", "examples") and _size(value) > self.longest
        return _INVALID if too_long else _check(word, value)

    def _with_inputs(self, stub: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
        """The stub with all properties, as short as it takes; if not even their names fit, with the required first."""
        kept, required = made["properties"], [*made.get("required", ())]
        for words in (("type", "items", "description"), ("type", "items"), ()):
            if _size(kept) <= self.left:
                break
            kept = {name: {word: one[word] for word in words if word in one} for name, one in kept.items()}
        while _size(kept) > max(self.left, 0) and kept:
            kept = dict(list(kept.items())[: len(kept) // 2])
        self.left -= _size(kept)
        needed = [name for name in required if name in kept]
        return {**({"required": needed} if needed else {}), **stub, "properties": kept} if kept else stub


def _check(word: str, value: Any) -> Any:
    return _CHECKS[word](value) if word in _CHECKS else value


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))


def _is_deep(value: Any, most: int) -> bool:
    """True if a value has too many levels, or more than `most` entries on one."""
    level = [value]
    for _ in range(_DEEPEST_VALUE):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        if sum(map(len, inner)) > most:
            return True
        level = [entry for entries in inner for entry in entries]
    return any(isinstance(one, dict | list) for one in level)


def _stub(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A short schema in place of one: it accepts whatever that accepts."""
    stub: dict[str, Any] = {}
    room = _STUB_SIZE
    for word in _STUB:
        value = schema.get(word)
        is_long = isinstance(value, str | list | dict) and len(value) > _STUB_WORD
        value = _INVALID if word not in schema or is_long else _check(word, value)
        if value is not _INVALID and (size := len(repr(value))) <= min(room, _STUB_WORD):
            stub[word] = value
            room -= size
    return {**stub, "items": {}} if stub.get("type") == "array" else stub
