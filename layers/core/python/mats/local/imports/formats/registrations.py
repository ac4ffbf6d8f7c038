"""Registrations as they are and rows of retrieval data sets: in JSON Lines one a line, here one or a list of them."""

from collections.abc import Iterator, Mapping
from typing import Any

from mats.domain.errors import RegistrationInvalid
from mats.domain.registration import Registration
from mats.domain.rows import item_of
from mats.local.imports.formats.mapped import Json, Mapped, Source, each

NAME = "registrations"


def detect(value: Json) -> bool:
    """A row, or a list that begins with one."""
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, Mapping) and (
        ("kind" in first and "namespace" in first) or {"_id", "type", "name"} <= first.keys()
    )


def mapped(value: Json, source: Source) -> Iterator[Mapped]:
    """Each row by its place in the list."""

    def one(where: str, row: Mapping[str, Any]) -> Mapped:
        try:
            return Mapped(where, Registration.parse(item_of(owned(row, source.namespace))))
        except RegistrationInvalid as error:
            return Mapped(where, None, error.faults)

    if isinstance(value, Mapping):
        yield one("", value)
    else:
        yield from each("", value, one, what="registrations")


def owned(row: object, namespace: str) -> object:
    """The row in the namespace that was given, if one was and the row is a registration."""
    return {**row, "namespace": namespace} if namespace and isinstance(row, Mapping) and "kind" in row else row
