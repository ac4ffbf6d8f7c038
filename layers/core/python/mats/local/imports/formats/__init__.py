"""The formats of existing descriptions: those of the protocols, and one `FORMAT` for each module of this package."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules

from mats.domain.protocols.catalogue import PROTOCOLS
from mats.domain.protocols.protocol import Format, MappedValue, Source, rejection
from mats.domain.protocols.values import Json
from mats.local.imports.formats import registrations

_OWN: tuple[Format, ...] = tuple(import_module(f"{__name__}.{module.name}").FORMAT for module in iter_modules(__path__))
FORMATS = sorted((*_OWN, *(format for protocol in PROTOCOLS for format in protocol.formats)), key=lambda one: one.order)
"""In the order of detection."""


def detect_format(value: Json) -> Format | None:
    return next((format for format in FORMATS if format.detect(value)), None)


def map_value(value: Json, source: Source, *, is_line: bool = False) -> Iterator[MappedValue]:
    """The registrations in a value, with faults and notes. A line with its attributes is parsed as a registration."""
    format = detect_format(value)
    is_row = not isinstance(value, Mapping) or not registrations.ATTRIBUTES.isdisjoint(value)
    if source.base and format and not format.has_base:
        yield rejection("", f"is {format.about}, which is not at the address of an API: leave out --server")
    elif is_line and (format is registrations.FORMAT or (format is None and is_row)):
        yield registrations.map_row("", value, source)
    elif format is None:
        *known, last = (format.about for format in FORMATS)
        yield rejection("", f"is of no known format; known are {', '.join(known)} and {last}")
    else:
        yield from format.registrations(value, source)
