"""The formats of existing descriptions: those of the protocols, and one `FORMAT` for each module of this package."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from mats.domain.protocols.catalogue import PROTOCOLS
from mats.domain.protocols.protocol import Format, Json, MappedValue, Source, rejection
from mats.local.imports.formats import registrations

_OWN: tuple[Format, ...] = tuple(import_module(f"{__name__}.{module.name}").FORMAT for module in iter_modules(__path__))
FORMATS = sorted((*_OWN, *(format for protocol in PROTOCOLS for format in protocol.formats)), key=lambda one: one.order)
"""In the order of detection."""


def detect_format(value: Json) -> Format | None:
    return next((format for format in FORMATS if format.detect(value)), None)


def map_value(value: Json, source: Source, *, is_line: bool = False) -> Iterator[MappedValue]:
    """The registrations in a value, with faults and notes. A line of no known format is parsed as a registration."""
    format = detect_format(value)
    if is_line and format in (None, registrations.FORMAT):
        yield registrations.map_row("", value, source)
    elif format is None:
        *known, last = (format.about for format in FORMATS)
        yield rejection("", f"is of no known format: expected {', '.join(known)} or {last}")
    else:
        yield from format.registrations(value, source)
