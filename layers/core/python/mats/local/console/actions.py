"""Actions of operators on several capabilities at once, on the trust of namespaces, and imports of documents."""

import io
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce
from itertools import islice
from typing import Annotated, Any

from pydantic import BaseModel, Field

from mats.bootstrap.local import LocalSystem
from mats.domain.capability.capability import Id
from mats.domain.capability.faults import RequestModel
from mats.domain.capability.registration import Registration, apply_patch
from mats.domain.errors import CapabilityError, CapabilityNotFound, Fault, RequestInvalid
from mats.domain.profile.assignment import (
    MAX_PROVIDER,
    NOTHING_ASSIGNED,
    Assigned,
    is_provider,
    namespace_of_pattern,
    of_operators,
    parse_target,
)
from mats.domain.profile.origin import Placed, fingerprint
from mats.domain.profile.profile import Trust
from mats.domain.protocols.catalogue import invocation_of
from mats.domain.protocols.protocol import Source
from mats.domain.ranking.query import QueryText
from mats.domain.text.variants import Groups, with_group, without_word
from mats.domain.text.words import clean
from mats.edge.schema import Parameters
from mats.local.console.selection import MAX_TEXT
from mats.local.imports.files import File, FileUnreadable, Location, Stream
from mats.local.imports.formats.registrations import map_row
from mats.local.imports.importer import BATCH, RESERVED, DryRunRegistry, Finding, Importer, check_namespace
from mats.local.imports.sources import read_values
from mats.local.review import decide, waiting
from mats.ports import Item

MOST_AT_ONCE = 200
_Id = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]


class Action(StrEnum):
    """An operation on each of several capabilities."""

    TAG = "tag"
    UNTAG = "untag"
    TRUST = "trust"
    CLEAR = "clear"
    REMOVE = "remove"


class ActionRequest(RequestModel):
    """An action; `tags` for tags, `trust` for trust, where null withdraws it. `clear` holds until the text changes."""

    action: Action
    ids: Annotated[tuple[_Id, ...], Field(min_length=1, max_length=MOST_AT_ONCE)]
    tags: Annotated[tuple[str, ...], Field(max_length=20)] = ()
    trust: Trust | None = None


class TrustRequest(RequestModel):
    """The trust and the verified provider of a namespace and all below it; both empty: withdrawn."""

    namespace: _Id
    trust: Trust | None = None
    provider: Annotated[str, Field(max_length=MAX_PROVIDER)] = ""


class ReviewRequest(RequestModel):
    """The decision about the held registration with this digest."""

    id: _Id
    digest: _Id
    approve: bool


class LessonRequest(RequestModel):
    """A request with the capability that serves it; without an id, nothing is taught for it any more."""

    request: QueryText
    id: _Id | None = None


class SynonymRequest(RequestModel):
    """Words that mean the same; with `remove`, each is taken out of its group."""

    words: Annotated[tuple[_Id, ...], Field(min_length=1, max_length=20)]
    remove: bool = False


class TrustQuery(Parameters):
    """The parameters of the trust of a namespace."""

    namespace: _Id


@dataclass(frozen=True, slots=True)
class RegistryActions:
    """`settle` waits, up to a timeout, until the changes of capabilities are processed.

    `assigns_trust` is false for an owner's request: only operators assign trust.
    """

    local: LocalSystem
    settle: Callable[[Sequence[Id]], None]
    assigns_trust: bool = True

    def run(self, request: ActionRequest) -> dict[str, Any]:
        """The number of capabilities that are as asked for now, and the reason for each other one."""
        if request.action in (Action.TRUST, Action.CLEAR) and not self.assigns_trust:
            raise RequestInvalid([Fault("action", "is for operators: send a token with the scope operate")])
        done: list[Id] = []
        failed: list[dict[str, str]] = []
        for id in map(Id, dict.fromkeys(request.ids)):
            try:
                self._run_one(request, id)
                done.append(id)
            except CapabilityError as error:
                failed.append({"id": id, "message": str(error)})
        self.settle(done)
        return {"done": len(done), "failed": failed}

    def _run_one(self, request: ActionRequest, id: Id) -> None:
        stores = self.local.stores
        self.require_free([id])
        match request.action:
            case Action.REMOVE:
                if not stores.registry.remove(id):
                    raise CapabilityNotFound(id)
            case Action.TRUST | Action.CLEAR:
                if (item := stores.registry.get([id]).get(id)) is None:
                    raise CapabilityNotFound(id)
                before = stores.trust.rows([id]).get(id, NOTHING_ASSIGNED)
                if request.action is Action.TRUST:
                    after = replace(before, trust=request.trust)
                else:
                    after = replace(before, cleared=fingerprint(Registration.parse(item).item()))
                stores.trust.put(id, after)
            case _:
                self._retag(id, request)

    def find_reserved(self, ids: Collection[Id]) -> Collection[Id]:
        """Those that only operators write, if this is an owner's request: what is trusted is theirs."""
        return () if self.assigns_trust else of_operators(self.local.stores.trust.get(ids))

    def require_free(self, ids: Collection[Id]) -> None:
        """Raises RequestInvalid: only operators write one of these."""
        if reserved := self.find_reserved(ids):
            raise RequestInvalid([Fault("namespace", RESERVED.format(min(reserved)))])

    def _retag(self, id: Id, request: ActionRequest) -> None:
        def retag(item: Item) -> Registration:
            others = [tag for tag in item.get("tags", []) if tag not in request.tags]
            return apply_patch(item, {"tags": [*others, *(request.tags if request.action is Action.TAG else ())]})

        self.local.stores.registry.edit(id, retag)

    def list_held(self) -> dict[str, Any]:
        """What waits for an operator."""
        return {"waiting": waiting(self.local)}

    def review(self, request: ReviewRequest) -> dict[str, Any]:
        """Approve or reject what is held."""
        decide(self.local, Id(request.id), request.digest, approve=request.approve)
        self.settle([Id(request.id)])
        return request.model_dump()

    def lessons(self) -> dict[str, Any]:
        """The lessons of operators."""
        return {"lessons": [{"request": text, "id": id} for text, id in self.local.teach.lessons()]}

    def teach(self, lesson: LessonRequest) -> dict[str, Any]:
        """Teach a request, or withdraw what is taught for it."""
        if lesson.id is None:
            return {"request": lesson.request, "withdrawn": self.local.teach.forget(lesson.request)}
        self.local.teach(lesson.request, Id(lesson.id))
        return lesson.model_dump()

    def synonyms(self) -> dict[str, Any]:
        return {"synonyms": self.local.stores.synonyms.load()}

    def change_synonyms(self, request: SynonymRequest) -> dict[str, Any]:
        """Add or remove words; all groups as they are now."""
        book = self.local.stores.synonyms
        book.save(changed_groups(book.load(), request.words, remove=request.remove))
        return self.synonyms()

    def trust_of(self, query: TrustQuery) -> dict[str, Any]:
        key = _pattern(query.namespace)
        return _row_json(key, self.local.stores.trust.rows([key]).get(key, NOTHING_ASSIGNED))

    def assign(self, request: TrustRequest) -> dict[str, Any]:
        """Write the row of a namespace, with the number of capabilities that it concerns."""
        key = _pattern(request.namespace)
        provider = request.provider.strip()
        if provider and not is_provider(provider):
            raise RequestInvalid([Fault("provider", "must be a name of visible characters on one line")])
        before = self.local.stores.trust.rows([key]).get(key, NOTHING_ASSIGNED)
        assigned = replace(before, trust=request.trust, provider=provider)
        self.local.stores.trust.put(key, assigned)
        ids = list(self.local.stores.registry.ids(namespace=namespace_of_pattern(key) or ""))
        self.settle(ids[:MOST_AT_ONCE])
        return {**_row_json(key, assigned), "capabilities": len(ids)}


def changed_groups(groups: Groups, words: Sequence[str], *, remove: bool) -> Groups:
    """The groups with these words as one, or without any of them. Raises RequestInvalid: a word cannot be kept."""
    if remove:
        return reduce(without_word, words, groups)
    return with_group(groups, [clean(word) for word in words]) if words else groups


def _pattern(namespace: str) -> Id:
    """The key of a namespace's row; with or without the `.*` at its end."""
    try:
        return parse_target(f"{namespace.removesuffix('.*')}.*" if "/" not in namespace else "")
    except ValueError as error:
        raise RequestInvalid([Fault("namespace", "must be a namespace such as com.acme")]) from error


def _row_json(key: Id, assigned: Assigned) -> dict[str, Any]:
    return {"namespace": namespace_of_pattern(key), "trust": assigned.trust, "provider": assigned.provider}


MAX_BODY_BYTES = 40_000_000
"""Of a request with documents: a large OpenAPI document has 13 MB, and JSON escapes some characters."""
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
