"""The import of pasted or dropped documents: a dry run, then the same for real."""

import io
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

from pydantic import BaseModel, Field

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.faults import RequestModel
from mats.domain.capability.registration import Registration
from mats.domain.profile.origin import Placed
from mats.domain.protocols.catalogue import invocation_of
from mats.domain.protocols.protocol import Source
from mats.local.imports.files import File, FileUnreadable, Location, Stream
from mats.local.imports.importer import DryRunRegistry, Finding, Importer, check_namespace
from mats.local.imports.sources import read_values
from mats.ports import Item

MAX_BODY_BYTES = 40_000_000
"""Of a request with documents: a large OpenAPI document has 13 MB, and JSON escapes some characters."""
_MOST_SHOWN = 200
"""Capabilities and remarks of an answer."""
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


def import_documents(local: LocalSystem, request: ImportRequest) -> dict[str, Any]:
    """Register what the documents describe, or say what that would do."""
    check_namespace(request.namespace, "namespace")
    dry = DryRunRegistry(local.stores.registry)
    importer = Importer(dry if request.dry_run else local.stores.registry)
    importer.import_sources(_sources(request))
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


def _sources(request: ImportRequest) -> Iterator[tuple[Source, Stream]]:
    for document in request.documents:
        yield Source(document.name, request.namespace), _values(document)


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
