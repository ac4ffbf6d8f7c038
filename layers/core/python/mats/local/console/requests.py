"""Requests of the registry's API, and imports of documents and of batches."""

import io
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import Annotated, Any

from pydantic import BaseModel, Field

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.capability.faults import RequestModel
from mats.domain.capability.registration import Registration
from mats.domain.profile.assignment import MAX_PROVIDER
from mats.domain.profile.origin import Placed
from mats.domain.profile.profile import Trust
from mats.domain.protocols.catalogue import invocation_of
from mats.domain.protocols.protocol import Source
from mats.domain.search.query import QueryText
from mats.edge.schema import Parameters
from mats.local.console.selection import MAX_TEXT
from mats.local.imports.files import File, FileUnreadable, Location, Stream, read_values
from mats.local.imports.formats.registrations import map_row
from mats.local.imports.importer import BATCH, DryRunRegistry, Finding, Importer, check_namespace
from mats.ports import Item

_Id = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


class TrustRequest(RequestModel):
    """Changes of what operators assigned to a target: a capability's id, or a namespace with all below it.

    A field that is absent stays; null or empty withdraws. `cleared`: the flags of a capability's text do not count,
    until the text changes.
    """

    target: _Id
    trust: Trust | None = None
    provider: Annotated[str, Field(max_length=MAX_PROVIDER)] = ""
    cleared: bool = False


class ReviewRequest(RequestModel):
    """The decision about the held registration with this digest."""

    id: _Id
    digest: _Id
    approve: bool


class LessonRequest(RequestModel):
    """A request with the capability that serves it; without an id, nothing is taught for it any more."""

    request: QueryText
    id: _Id | None = None


class TrustQuery(Parameters):
    target: _Id


MAX_BODY_BYTES = 40_000_000
"""Limit of a request with documents: a large OpenAPI document has 13 MB, and JSON escapes some characters."""
_MOST_SHOWN = 200  # Capabilities and remarks of an answer
_MAX_DOCUMENTS = 100


class ImportDocument(BaseModel, frozen=True, extra="forbid"):
    """A text with the name of its file."""

    name: Annotated[str, Field(min_length=1, max_length=200)] = "pasted"
    text: str


class ImportRequest(RequestModel):
    """Documents; `namespace` replaces those that they name. Nothing is written unless `dry_run` is false."""

    documents: Annotated[tuple[ImportDocument, ...], Field(min_length=1, max_length=_MAX_DOCUMENTS)]
    namespace: str = ""
    dry_run: bool = True


def import_documents(
    local: LocalSystem, request: ImportRequest, reserved: Callable[[Collection[Id]], Collection[Id]]
) -> dict[str, Any]:
    """Register what the documents describe, or say what that would do; what is `reserved` is left to operators."""
    check_namespace(request.namespace, "namespace")
    dry = DryRunRegistry(local.stores.registry)
    importer = Importer(dry if request.dry_run else local.stores.registry, reserved=reserved)
    importer.import_sources((Source(each.name, request.namespace), _values(each)) for each in request.documents)
    report = importer.report
    return {
        "dry_run": request.dry_run,
        "rows": report.rows,
        **report.counts,
        "rejected": len(report.rejected),
        "rejections": _remarks(report.rejected),
        "notes": _remarks(report.noted),
        "capabilities": [_capability(item, dry.placed) for item in islice(dry.items.values(), _MOST_SHOWN)],
        "more": max(0, len(dry.items) - _MOST_SHOWN),
    }


class BatchRequest(RequestModel):
    """Registrations, each taken or rejected by itself."""

    registrations: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=BATCH)]


def register_batch(
    local: LocalSystem, request: BatchRequest, reserved: Callable[[Collection[Id]], Collection[Id]]
) -> dict[str, Any]:
    """Register a batch in one transaction; the index follows. What is `reserved` is left to operators."""
    importer, source = Importer(local.stores.registry, reserved=reserved), Source("batch")
    rows = (map_row(str(place), item, source) for place, item in enumerate(request.registrations))
    importer.import_sources([(source, ((Location(source.name), row) for row in rows))])
    rejected = [
        {"place": int(place.where), "errors": [{"field": one.attribute, "message": one.message} for one in faults]}
        for place, faults in importer.report.rejected
    ]
    return {"placed": {id: placed for id, placed, _ in importer.report.registered}, "rejected": rejected}


def _values(document: ImportDocument) -> Stream:
    """The values of a document; lone surrogates, which JSON may hold, are not UTF-8 and become a fault."""
    file = File(document.name)
    try:
        yield from read_values(file, io.BytesIO(document.text.encode("utf-8", "surrogatepass")))
    except FileUnreadable as error:
        yield Location(file.path), error


def _remarks(findings: Sequence[Finding]) -> list[dict[str, str]]:
    return [{"place": str(finding.place), "text": finding.text} for finding in findings[:_MOST_SHOWN]]


def _capability(item: Item, placed: dict[Any, Placed]) -> dict[str, Any]:
    """A capability as it would be registered, with whether a caller would learn how to call it."""
    registration = Registration.parse(item)
    return {
        "id": registration.id,
        "kind": registration.kind,
        "description": registration.description,
        "placed": placed[registration.id],
        "callable": invocation_of(registration) is not None,
        "item": dict(item),
    }
