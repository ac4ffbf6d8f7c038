"""Parses and validates Registry items; an error names every fault."""

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    StringConstraints,
    ValidationError,
    field_validator,
)

from mats.domain.capability.capability import Id, Kind, Lifecycle, capability_id
from mats.domain.capability.faults import faults_of
from mats.domain.errors import Fault, RegistrationInvalid
from mats.domain.text.fence import code_point, find_hidden

MAX_ITEM_BYTES = 400_000  # DynamoDB allows 400 KB per item; every registry enforces the same limit
MAX_DEPTH = 32  # DynamoDB nests maps and lists at most this deep

_NAMESPACE = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*")
_HINTS = {
    "trust": "trust is assigned by operators (`mats trust ID N`), never by the registration",
    "parameters": "is not a known attribute; a JSON Schema belongs in `input_schema`, anything else in `descriptor`",
    "id": "is not a known attribute; the id is `namespace/name`",
    "type": "is not a known attribute; did you mean `kind`?",
    "visibility": "is not a known attribute; did you mean `visible_to`?",
}


def _as_list(value: object) -> object:
    """Sort string sets (a DynamoDB type); return any other value unchanged."""
    return sorted(value) if isinstance(value, set | frozenset) and all(isinstance(v, str) for v in value) else value


Text = Annotated[str, StringConstraints(strip_whitespace=True)]
JsonObject = Annotated[dict[str, JsonValue], PlainSerializer(lambda value: value, return_type=Any)]
"""Dumped as it is: `JsonValue` would look for the type of every value again, in Python."""
Short = Annotated[Text, Field(min_length=1, max_length=200)]
Sentence = Annotated[Text, Field(min_length=1, max_length=2_000)]


def _refuse_hidden(value: str, *, allow_shaping: bool = False, where: str = "") -> str:
    """The value; a fault names the first of its hidden characters, positions count from 1."""
    hidden = find_hidden(value, allow_shaping=allow_shaping)
    if not hidden:
        return value
    first = f"{code_point(value[hidden[0]])} at position {hidden[0] + 1}"
    if len(hidden) == 1:
        raise ValueError(f"{where}contains a hidden character ({first}): remove it")
    raise ValueError(f"{where}contains {len(hidden)} hidden characters (the first is {first}): remove them")


_WITHOUT_HIDDEN = AfterValidator(partial(_refuse_hidden, allow_shaping=True))
"""Joiners and selectors that shape an emoji or a letter are not hidden."""
Label = Annotated[Short, _WITHOUT_HIDDEN]
Labels = Annotated[tuple[Label, ...], Field(max_length=100), BeforeValidator(_as_list)]
Words = Annotated[tuple[Short, ...], Field(max_length=100), BeforeValidator(_as_list)]
Sentences = Annotated[tuple[Sentence, ...], Field(max_length=100), BeforeValidator(_as_list)]


class Registration(BaseModel):
    """A valid Registry item. Only `namespace`, `name` and `kind` are required: registries are sparse."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    namespace: Annotated[Text, Field(max_length=200)]
    name: Annotated[Text, Field(min_length=1, max_length=200)]
    kind: Kind
    description: Annotated[Text, Field(max_length=100_000)] = ""
    version: Annotated[Text, Field(max_length=100), _WITHOUT_HIDDEN] = ""
    tags: Labels = ()
    type_tags: Labels = ()
    endpoint: Annotated[Text, Field(max_length=2_048), AfterValidator(_refuse_hidden)] = ""
    input_schema: JsonObject | None = None
    examples: Sentences = ()
    negative_examples: Sentences = ()
    provider: Annotated[Text, Field(max_length=200), _WITHOUT_HIDDEN] = ""
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    descriptor: JsonObject | None = None
    visible_to: Words | None = None

    @field_validator("namespace")
    @classmethod
    def _check_namespace(cls, value: str) -> str:
        if not _NAMESPACE.fullmatch(value):
            raise ValueError(f"must be dot-separated labels of a-z, 0-9 and -, such as com.acme; got {value[:60]!r}")
        return value

    @field_validator("name")
    @classmethod
    def _check_name(cls, value: str) -> str:
        if any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in value):
            raise ValueError("must not contain control characters or line breaks")
        if not {".", ".."}.isdisjoint(value.split("/")):
            raise ValueError("must not have a part `.` or `..`: clients would ask for another path")
        return _refuse_hidden(value)

    @field_validator("input_schema")
    @classmethod
    def _check_property_names(cls, value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        """Callers spell the names of properties; texts and values may contain anything."""
        for key in dict.fromkeys(_keys(value)):
            _refuse_hidden(key, where="a property name ")
        return value

    @field_validator("visible_to")
    @classmethod
    def _check_audiences(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value == ():
            raise ValueError("must name at least one audience; leave it out to show the capability to everyone")
        return value

    @property
    def id(self) -> Id:
        return capability_id(self.namespace, self.name)

    def item(self) -> dict[str, Any]:
        """The Registry item without default values; `parse` returns an equal registration."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @classmethod
    def parse(cls, item: object) -> Self:
        """Parse an item; null attributes count as absent.

        Raises RegistrationInvalid: with every fault, not only the first.
        """
        if not isinstance(item, Mapping):
            raise RegistrationInvalid([Fault("", f"must be a JSON object, not {type(item).__name__}")])
        _check_size(item)
        try:
            return cls.model_validate({key: value for key, value in item.items() if value is not None})
        except ValidationError as error:
            raise RegistrationInvalid(faults_of(error, cls, _HINTS)) from error


def apply_patch(item: Mapping[str, Any], patch: object) -> Registration:
    """An item after a JSON Merge Patch (RFC 7396): what the patch does not name stays, null removes.

    Raises RegistrationInvalid: the patch is no object, the result is not valid, or it has another id.
    """
    if not isinstance(patch, Mapping):
        raise RegistrationInvalid([Fault("", f"must be a JSON object, not {type(patch).__name__}")])
    _check_size(patch)
    changed = Registration.parse(_merge_patch(item, patch))
    if (changed.namespace, changed.name) != (item["namespace"], item["name"]):
        raise RegistrationInvalid([Fault("name", "cannot change: register the other id, and remove this one")])
    return changed


def additions(
    item: Mapping[str, Any], added: Mapping[str, Sequence[str]], emptied: Collection[str] = ()
) -> dict[str, Any]:
    """A JSON Merge Patch for `apply_patch`: these attributes are emptied, then lists get these entries they lack.

    Raises RegistrationInvalid: one of `emptied` is no attribute.
    """
    if unknown := sorted(set(emptied) - Registration.model_fields.keys()):
        problem = f"is not an attribute of a registration: these are {', '.join(Registration.model_fields)}"
        raise RegistrationInvalid([Fault(unknown[0], problem)])
    kept = {name: () if name in emptied else item.get(name, ()) for name in added}
    longer = {name: list(dict.fromkeys([*kept[name], *values])) for name, values in added.items()}
    return {**dict.fromkeys(emptied), **longer}


def _merge_patch(value: object, patch: object) -> object:
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        else:
            merged[name] = _merge_patch(merged.get(name), change)
    return merged


def _check_size(item: Mapping[str, object]) -> None:
    """Reject items that DynamoDB cannot store, before validation."""
    if depth_of(item, MAX_DEPTH) > MAX_DEPTH:
        raise RegistrationInvalid([Fault("", f"is nested more than {MAX_DEPTH} levels deep")])
    try:
        size = len(json.dumps(item, ensure_ascii=False, allow_nan=False, default=str).encode())
    except UnicodeEncodeError as error:
        raise RegistrationInvalid(
            [Fault("", "contains text that is not valid Unicode (a lone surrogate): remove it")]
        ) from error
    except ValueError as error:
        raise RegistrationInvalid(
            [Fault("", "contains a number that is not JSON (NaN or infinity): write a number or null")]
        ) from error
    if size > MAX_ITEM_BYTES:
        raise RegistrationInvalid([Fault("", f"has {size:,} bytes; the maximum is {MAX_ITEM_BYTES:,}")])


def depth_of(value: object, most: int) -> int:
    """Levels of objects and lists below a value, counted without recursion; stops just past `most`."""
    depth, level = 0, _containers(value)
    while level and depth <= most:
        depth += 1
        level = [inner for container in level for inner in _containers(container)]
    return depth


def _keys(node: object) -> Iterator[str]:
    """Every key at any depth, which the limit of an item bounds; without recursion."""
    nodes = [node]
    for each in nodes:
        if isinstance(each, Mapping):
            yield from map(str, each)
        nodes += _containers(each)


_CONTAINERS = (dict, list, tuple)  # Of JSON; checking for the abstract types takes many times as long


def _containers(node: object) -> list[object]:
    values = node.values() if isinstance(node, Mapping) else node if isinstance(node, list | tuple) else ()
    return [value for value in values if isinstance(value, _CONTAINERS)]
