"""Registrations, and rows of retrieval data sets: one, or a list."""

from collections.abc import Mapping
from functools import partial

from mats.domain.capability.registration import Registration
from mats.domain.errors import RegistrationInvalid
from mats.domain.protocols.protocol import Format, MappedValue, Source, id_of_item, map_each
from mats.domain.protocols.values import Json, first_of
from mats.evaluation.data.beir import item_of

ATTRIBUTES = frozenset({"kind", "namespace", "_id"})  # Those that documents of no other format have


def _is_row(value: Json) -> bool:
    first = first_of(value)
    return isinstance(first, Mapping) and (
        ("kind" in first and "namespace" in first) or {"_id", "type", "name"} <= first.keys()
    )


def map_row(where: str, row: Json, source: Source) -> MappedValue:
    """A registration in the source's namespace, or a row of a data set in its own."""
    if source.namespace and isinstance(row, Mapping) and "kind" in row:
        row = {**row, "namespace": source.namespace}
    try:
        return MappedValue(where, parse_row(row))
    except RegistrationInvalid as error:
        return MappedValue(where, faults=error.faults, id=id_of_item(row) if isinstance(row, Mapping) else "")


def parse_row(row: Json) -> Registration:
    return Registration.parse(item_of(row))


_map_rows = partial(map_each, "", one=map_row, what="registrations")
FORMAT = Format("registrations", "a registration", 10, _is_row, _map_rows)
