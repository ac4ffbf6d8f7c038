"""What every format's mapper shares: what it is told, what it gives, and how an item is put together of a document."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from mats.domain.errors import Fault, RegistrationInvalid
from mats.domain.registration import Registration

Json: TypeAlias = Any
"""A JSON value: what a document holds once it is decoded."""

_LONGEST_WORD, _LONGEST_SENTENCE, _MOST = 200, 2_000, 100
"""What tags and examples may be, and how many of each a registration holds."""


class Source(NamedTuple):
    """Where a document comes from, as far as that says something about what it holds."""

    name: str
    """As reports name it: a file, an address, a command."""
    namespace: str = ""
    """Given by whoever imports; wins over what the document says of itself."""
    url: str = ""
    """The address it was read from, if it was."""
    folder: str = ""
    """The name of the folder it lies in, if it does."""
    server: str = ""
    """The address of the live server that said it, if one did."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """One thing that a document holds: a registration, or every fault that keeps it from being one.

    With neither it was passed over, which a note explains. Notes also say what did not fit into an attribute.
    """

    where: str
    registration: Registration | None = None
    faults: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()


class Format(Protocol):
    """A format: how to tell it and how to map it. Both take any JSON value whatever and raise nothing."""

    NAME: str

    def detect(self, value: Json) -> bool:
        """Whether a value is meant to be of this format, well-formed or not."""
        ...

    def mapped(self, value: Json, source: Source) -> Iterator[Mapped]:
        """What a value of this format holds, in its order."""
        ...


@dataclass(slots=True)
class Draft:
    """An item in the making. What its attributes cannot hold stays in the descriptor, and a note says so."""

    where: str
    item: dict[str, Any]
    rest: dict[str, Any]
    notes: list[Fault] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    @classmethod
    def of(cls, where: str, kind: str, value: Mapping[str, Any], *, format: str) -> "Draft":
        """A draft of which nothing but the kind is decided: everything the document says is still in the rest."""
        return cls(where, {"kind": kind}, {"format": format, **value})

    def text(self, attribute: str, *path: str, most: int) -> str:
        """Move the text at the first of these keys that has one into an attribute; what it is now."""
        for key in path:
            value = self.rest.get(key)
            if value is None or value == "":
                continue
            if isinstance(value, int | float) and not isinstance(value, bool):
                value = str(value)
            if not isinstance(value, str):
                self.note(attribute, f"`{key}` is not text; it stays in the descriptor")
            elif len(value.strip()) > most:
                self.note(attribute, f"`{key}` is longer than {most:,} characters; it stays in the descriptor")
            elif value.strip():
                del self.rest[key]
                self.item[attribute] = value.strip()
                return value.strip()
        return ""

    def words(self, attribute: str, values: object, *, most: int = _LONGEST_WORD) -> None:
        """Set an attribute to the distinct texts of a list; those it cannot hold are named and left out."""
        if values is None:
            return
        if not isinstance(values, list | tuple):
            self.note(attribute, "is not a list; it stays in the descriptor")
            return
        kept: dict[str, None] = {}
        for value in values:
            if not isinstance(value, str) or not value.strip():
                self.note(attribute, "holds something that is not text; it stays in the descriptor")
            elif len(value.strip()) > most:
                self.note(attribute, f"holds a text longer than {most:,} characters; it stays in the descriptor")
            elif len(kept) == _MOST and value.strip() not in kept:
                self.note(attribute, f"has more than {_MOST} entries; the others stay in the descriptor")
                break
            else:
                kept[value.strip()] = None
        if kept:
            self.item[attribute] = list(kept)

    def sentences(self, attribute: str, values: object) -> None:
        """As `words`, for whole requests."""
        self.words(attribute, values, most=_LONGEST_SENTENCE)

    def set(self, attribute: str, value: object) -> None:
        """Set an attribute to what a mapper made; nothing for what is empty."""
        if value:
            self.item[attribute] = value

    def note(self, attribute: str, message: str) -> None:
        """Say once what did not fit."""
        note = Fault(attribute, message)
        if note not in self.notes:
            self.notes.append(note)

    def fault(self, attribute: str, message: str) -> None:
        """Say what keeps it from being registered."""
        self.faults.append(Fault(attribute, message))

    def done(self) -> Mapped:
        """The registration, or every fault of it at once."""
        if self.rest:
            self.item["descriptor"] = self.rest
        told = {fault.attribute for fault in self.faults}
        try:
            registration = Registration.parse(self.item)
        except RegistrationInvalid as error:
            more = [fault for fault in error.faults if fault.attribute not in told]
            return Mapped(self.where, None, (*self.faults, *more), tuple(self.notes))
        if self.faults:
            return Mapped(self.where, None, tuple(self.faults), tuple(self.notes))
        return Mapped(self.where, registration, (), tuple(self.notes))


def refused(where: str, message: str, attribute: str = "") -> Mapped:
    """Something that cannot be mapped at all."""
    return Mapped(where, None, (Fault(attribute, message),))


def each(where: str, values: object, one: Callable[[str, Mapping[str, Any]], Mapped], *, what: str) -> Iterator[Mapped]:
    """What each object of a list maps to; what is no object is refused by its place."""
    if not isinstance(values, list | tuple):
        yield refused(where, f"must be a list of {what}")
        return
    for position, value in enumerate(values):
        place = f"{where}[{position}]"
        yield (
            one(place, value) if isinstance(value, Mapping) else refused(place, f"must be an object: one of the {what}")
        )


def inner(value: object, *path: str) -> Any:
    """What lies at a path of keys; None where there is nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def text_at(value: object, *path: str) -> str:
    """The text at a path of keys, trimmed, a number as it is spelled; empty where there is neither."""
    found = inner(value, *path)
    if isinstance(found, int | float) and not isinstance(found, bool):
        return str(found)
    return found.strip() if isinstance(found, str) else ""


def objects(value: object) -> Sequence[Mapping[str, Any]]:
    """The objects of a list; none of what is no list."""
    return [entry for entry in value if isinstance(entry, Mapping)] if isinstance(value, list | tuple) else []
