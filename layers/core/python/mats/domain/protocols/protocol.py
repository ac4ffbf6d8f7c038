"""The elements of a protocol: formats of documents, drafts of registrations from them, and calls."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from mats.domain.capability.capability import Kind, capability_id
from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault, RegistrationInvalid
from mats.domain.protocols.values import Json, entries, text_at
from mats.domain.text.fence import find_hidden, visible

_MAX_ENTRIES = 100
_MAX_TEXT = {
    "name": 200, "description": 100_000, "version": 100, "provider": 200, "endpoint": 2_048, "tags": 200,
    "examples": 2_000,
}  # fmt: skip
"""Limits of a registration: entries of each list, and characters of each text by its attribute."""
_TITLED = frozenset({Kind.AGENT, Kind.SKILL})
"""Kinds whose name is a title, often with emoji. Tools and models are called by their exact name."""
_UNKNOWN_OWNER = Fault("namespace", "the document does not name its owner: give --namespace, such as com.acme")

EMPTY = Fault("description", "is empty: nothing is said of it, and it has no inputs")


class Source(NamedTuple):
    """The origin of a value: the facts that registrations take from it."""

    name: str  # Its name in reports: a file, an address, a command
    namespace: str = ""  # Given by the user; overrides the document's
    url: str = ""  # The address it was fetched from, if any
    base: str = ""  # Given by the user: the address of the API, in place of one that the document names
    folder: str = ""  # The name of the folder of a SKILL.md
    server: str = ""  # The address of the live server that listed it, if any
    server_entry: Mapping[str, Any] | None = None  # How that server is called: the entry `server` of a descriptor
    files: tuple[str, ...] = ()  # For a SKILL.md: the files of its folder
    read_file: Callable[[str], Json] | None = None
    """Reads another file by its path from this one, within the folder that is imported; raises Invalid."""


@dataclass(frozen=True, slots=True)
class MappedValue:
    """One entry of a value: a registration, or every fault that prevents it.

    With neither, the entry was skipped, and a note has the reason. Notes also name values that no attribute could hold.
    """

    where: str
    registration: Registration | None = None
    faults: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()
    id: str = ""  # Of an entry without registration, if known. One without faults is withdrawn by its source.


class Format(NamedTuple):
    """A format of documents. Both functions accept any JSON value and raise nothing."""

    name: str
    about: str  # Its name in messages
    order: int  # Of detection: the most specific first
    detect: Callable[[Json], bool]  # True if a value looks like this format, well-formed or not
    registrations: Callable[[Json, Source], Iterator[MappedValue]]
    """The entries of a value of this format, in their order."""
    has_base: bool = False  # Whether its entries are at addresses below one of an API


Facts: TypeAlias = tuple[tuple[str, str], ...]


class Compact(BaseModel):
    """Frozen; empty attributes are absent from its JSON, and `in_` is `in`."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    @model_serializer(mode="wrap")
    def _leave_out_empty(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        given: dict[str, Any] = serialize(self)
        return {name.removesuffix("_"): value for name, value in given.items() if value not in ("", None, (), [])}


class Call(Compact):
    """How a capability is called. `inputs` has the names in braces that the caller fills in."""

    def facts(self) -> Facts:
        """The protocol, and the address or command: texts by their names, in order; an empty one is not shown."""
        raise NotImplementedError


class Protocol(NamedTuple):
    """A protocol: the documents that describe its capabilities, and what their descriptors are read for."""

    formats: tuple[Format, ...]
    searched: Mapping[str, frozenset[str]]
    """By the format of a descriptor, its searched entries about parameters or skills.

    Entries about the whole capability are always searched.
    """
    invocation: Callable[[Registration, Mapping[str, Any]], Any]
    """How a registration with this descriptor is called; None if it is not called by this protocol."""
    kind: Kind | None = None  # The only kind that is called by it; None: any


@dataclass(slots=True)
class ItemDraft:
    """A mutable item. Values that its attributes cannot hold stay in the descriptor, with a note."""

    where: str
    item: dict[str, Any]
    rest: dict[str, Any]  # The part of the value that no attribute holds; becomes the descriptor
    notes: dict[Fault, None] = field(default_factory=dict)  # Each once, in order

    @classmethod
    def create(cls, where: str, kind: str, namespace: str, value: Mapping[str, Any], *, format: str) -> "ItemDraft":
        """A draft with the whole value in the rest. Without a namespace, it cannot become a registration."""
        owner = {"namespace": namespace} if namespace else {}
        return cls(where, {"kind": kind, **owner}, {"format": format, **value})

    def move_text(self, attribute: str, key: str = "") -> str:
        """Move the text under a key, by default the attribute's name, into an attribute; the text, or empty."""
        key, most = key or attribute, _MAX_TEXT[attribute]
        text = text_at(self.rest, key)
        if text and len(text) <= most:
            del self.rest[key]
            self.item[attribute] = text
            return text
        if str(self.rest.get(key) or "").strip():
            self.add_note(attribute, f"`{key}` is no text of at most {most:,} characters; it stays in the descriptor")
        return ""

    def move_schema(self, keys: Iterable[str]) -> Mapping[str, Any] | None:
        """Move the object under the first of these keys into the input schema; one that is no object stays."""
        key = next((key for key in keys if self.rest.get(key) is not None), "")
        if isinstance(self.rest.get(key), Mapping):
            self.item["input_schema"] = self.rest.pop(key)
        elif key:
            self.add_note("input_schema", f"`{key}` is not an object; it stays in the descriptor")
        return self.item.get("input_schema")

    def set_text(self, attribute: str, text: str) -> None:
        """Set an attribute to a text, truncated to its limit, unless it is empty."""
        self.set(attribute, text[: _MAX_TEXT[attribute]])

    def set_words(self, attribute: str, values: object) -> None:
        """Set an attribute to the distinct texts of a list, numbers as text; what it cannot hold is left out."""
        most, given = _MAX_TEXT[attribute], list(map(text_at, entries(values)))
        words = list(dict.fromkeys(text for text in given if 0 < len(text) <= most))[:_MAX_ENTRIES]
        if words != list(dict.fromkeys(given)) or not isinstance(values, list | tuple | None):
            message = f"holds more than {_MAX_ENTRIES} texts of at most {most:,} characters; the rest is left out"
            self.add_note(attribute, message)
        self.set(attribute, words)

    def set(self, attribute: str, value: object) -> None:
        if value:
            self.item[attribute] = value

    def set_endpoint(self, url: str) -> None:
        """Set the endpoint, unless it is empty or too long."""
        if len(url) <= (most := _MAX_TEXT["endpoint"]):
            self.set("endpoint", url)
        else:
            self.add_note("endpoint", f"is longer than {most:,} characters; it is left out")

    def add_note(self, attribute: str, message: str) -> None:
        self.notes[Fault(attribute, message)] = None

    def finish(self) -> MappedValue:
        """The registration, or all faults at once."""
        if self.rest:
            self.item["descriptor"] = self.rest
        if self.item["kind"] in _TITLED and (title := self.item.get("name")) and find_hidden(title):
            self.item["name"] = visible(title)
            self.add_note("name", "has hidden characters; they are removed")
        try:
            return MappedValue(self.where, Registration.parse(self.item), notes=tuple(self.notes))
        except RegistrationInvalid as error:
            faults = error.faults
        if "namespace" not in self.item:
            faults = (_UNKNOWN_OWNER, *(fault for fault in faults if fault.attribute != "namespace"))
        return MappedValue(self.where, faults=faults, notes=tuple(self.notes), id=id_of_item(self.item))


def id_of_item(item: Mapping[str, Any]) -> str:
    """The id of an item that may be invalid; empty if it has none."""
    namespace, name = item.get("namespace"), item.get("name")
    named = isinstance(namespace, str) and isinstance(name, str) and namespace and name
    return capability_id(str(namespace), str(name)) if named else ""


def rejection(where: str, message: str) -> MappedValue:
    """An entry that cannot be mapped at all."""
    return MappedValue(where, faults=(Fault("", message),))


def remark(where: str, attribute: str, message: str, *, namespace: str = "", name: str = "") -> MappedValue:
    """A note without a registration: on a document, or why an entry is skipped, of this name if it is known."""
    return MappedValue(where, notes=(Fault(attribute, message),), id=id_of_item({"namespace": namespace, "name": name}))


MapObject: TypeAlias = Callable[[str, Mapping[str, Any], Source], MappedValue]  # Maps the object at a place


def map_each(where: str, values: object, source: Source, one: MapObject, *, what: str) -> Iterator[MappedValue]:
    """Map each object of a list, rejecting entries that are no objects; or the document, if it is one object."""
    if isinstance(values, Mapping) and not where:
        yield one("", values, source)
        return
    if not isinstance(values, list | tuple):
        yield rejection(where, f"must be a list of {what}")
        return
    for position, value in enumerate(values):
        place = f"{where}[{position}]"
        if isinstance(value, Mapping):
            yield one(place, value, source)
        else:
            yield rejection(place, f"must be an object: one of the {what}")
