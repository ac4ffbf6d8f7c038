"""The commands that change and show the registry."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.text import Text

from mats.bootstrap import open_system
from mats.bootstrap.local import DATABASE, LocalSystem, as_local, is_missing, local_system
from mats.bootstrap.models import model_names
from mats.bootstrap.system import AnySystem
from mats.domain.capability.capability import Id, Kind
from mats.domain.capability.registration import Registration, additions, apply_patch
from mats.domain.errors import CapabilityNotFound, Fault, KindConflict, NotPossible, RegistrationInvalid, RequestInvalid
from mats.domain.profile.assignment import namespace_of_pattern, parse_target
from mats.domain.profile.origin import Placed
from mats.domain.profile.profile import Cause, Status
from mats.domain.protocols.catalogue import Invocation, from_text
from mats.domain.protocols.values import mapping_at
from mats.edge.http import local_caller
from mats.edge.routes import page_of
from mats.edge.schema import MAX_PAGE, CapabilityPage, ListedCapability, ListParameters
from mats.edge.snippets import SnippetFormat, Snippets
from mats.local.cli import output as ui
from mats.local.cli.import_ import count_flags, show_flags
from mats.local.cli.indexing import index, settle
from mats.local.imports.decoding import MAX_BYTES, decode
from mats.local.imports.files import FileUnreadable, open_file
from mats.local.imports.formats.registrations import parse_row
from mats.local.review import waiting
from mats.ports import GUARD_DAYS, Change, Item
from mats.usecases.erase import Erase
from mats.usecases.look_up import LookUp

if TYPE_CHECKING:
    from mats.bootstrap.cloud import CloudStores


_Description = Annotated[str | None, ui.option("Its task, in the words of a request.", "--description")]
_Endpoint = Annotated[str | None, ui.option("Its address or ARN.", "--endpoint")]
_Tag = Annotated[list[str] | None, ui.option("A tag; may be given several times.", "--tag")]
_TypeTag = Annotated[
    list[str] | None, ui.option("A type of capability, such as payments; may be given several times.", "--type-tag")
]
_Example = Annotated[list[str] | None, ui.option("A request it serves; may be given several times.", "--example")]


def add(
    context: typer.Context,
    file: Annotated[str | None, ui.argument("A JSON file with one registration; - is standard input.")] = None,
    namespace: Annotated[str | None, ui.option("Dot-separated labels, such as com.acme.")] = None,
    name: Annotated[str | None, ui.option("Its name, 1 to 200 characters.")] = None,
    kind: Annotated[Kind | None, ui.option("Its kind.")] = None,
    description: _Description = None,
    endpoint: _Endpoint = None,
    tag: _Tag = None,
    type_tag: _TypeTag = None,
    example: _Example = None,
    replace: Annotated[
        bool, ui.option("Without a file: replace what is registered, also what would be empty.", "--replace")
    ] = False,
) -> None:
    """Register one capability, from a file, standard input or options, and index it.

    Namespace, name and kind are required. Options override the file. `mats edit` changes a registration in part.
    """
    given = {
        "namespace": namespace, "name": name, "kind": kind, "description": description, "endpoint": endpoint,
        "tags": tag, "type_tags": type_tag, "examples": example,
    }  # fmt: skip
    try:
        registration = _one(file, {key: value for key, value in given.items() if value})
    except FileUnreadable as error:
        known = None if is_missing(context.obj) else local_system(context.obj).stores.registry.get([Id(file or "")])
        if not known:
            raise
        raise NotPossible([Fault(f"{file}", "is registered, and no file: `mats edit` changes it in part")]) from error
    local = local_system(context.obj)
    before = local.stores.registry.get([registration.id]).get(registration.id, {})
    emptied = [name for name in before if name not in registration.item()]
    if emptied and file is None and not replace:
        problem = f"is registered, and this would empty its {', '.join(emptied)}"
        raise NotPossible([Fault(registration.id, f"{problem}: use `mats edit`, which keeps the rest, or --replace")])
    _finish(local, registration.id, local.stores.registry.put([registration])[registration.id])


def _finish(local: LocalSystem, id: Id, placed: Placed) -> None:
    if placed is Placed.OTHER_KIND:
        raise KindConflict(id)
    settle(local, id)
    state = "findable now"
    if held := waiting(local, [id]):
        state = "rejected by an operator" if held[0]["rejected"] else "held: it waits for an operator (`mats review`)"
        state += "; the approved version stays findable" if held[0]["approved"] else "; nothing is findable meanwhile"
    flags = count_flags(local, [id])
    if not ui.is_json():
        show_flags(flags)
    outcome = {"id": id, "placed": placed, "held": bool(held), "flagged": flags}
    ui.show_with_usage(local, outcome, f"{id}: {placed}, {state}")


def edit(
    context: typer.Context,
    id: ui.CapabilityId,
    description: _Description = None,
    endpoint: _Endpoint = None,
    tag: _Tag = None,
    type_tag: _TypeTag = None,
    example: _Example = None,
    clear: Annotated[
        list[str] | None,
        ui.option("Empty an attribute, such as examples, before what is given is added.", metavar="ATTRIBUTE"),
    ] = None,
) -> None:
    """Change a registration in part. A sync keeps what you changed.

    Tags, type tags and examples are added to those that are there; description and endpoint are replaced. A service
    takes a change as `PATCH /registry/capabilities/ID`.
    """
    texts = {
        name: text for name, text in {"description": description, "endpoint": endpoint}.items() if text is not None
    }
    added = {
        name: values for name, values in {"tags": tag, "type_tags": type_tag, "examples": example}.items() if values
    }
    if not (texts or added or clear):
        raise RequestInvalid([Fault("", "give what to change, such as --example; see `mats edit --help`")])

    def change(item: Item) -> Registration:
        return apply_patch(item, {**additions(item, added, clear or ()), **texts})

    local = local_system(context.obj, create=False)
    try:
        placed, _ = local.stores.registry.edit(Id(id), change)
    except CapabilityNotFound as error:
        raise not_found(local, Id(id)) from error
    _finish(local, Id(id), placed)


def _one(file: str | None, given: dict[str, Any]) -> Registration:
    if file is None and not given:
        raise RequestInvalid([Fault("", "give a file, or --namespace, --name and --kind; see `mats add --help`")])
    if file is None:
        try:
            return Registration.parse(given)
        except RegistrationInvalid as error:
            raise RequestInvalid([Fault(f"--{fault.attribute}", fault.message) for fault in error.faults]) from error
    with open_file(file) as stream:
        item = parse_row(decode(stream.read(MAX_BYTES + 1), name=file))
    return Registration.parse({**item.item(), **given}) if given else item


def not_found(local: LocalSystem, id: Id) -> CapabilityNotFound:
    """The error for an unknown id; it names the nearest ones."""
    return CapabilityNotFound(id, LookUp(local.stores.index).nearest(id, local.settings.audiences))


def get_item(local: LocalSystem, id: Id) -> Mapping[str, Any]:
    """The item of a capability. Raises CapabilityNotFound."""
    if item := local.stores.registry.get([id]).get(id):
        return item
    raise not_found(local, id)


def target_key(text: str) -> Id:
    """The key of a row of trust. Raises RequestInvalid."""
    try:
        return parse_target(text)
    except ValueError as error:
        raise RequestInvalid([Fault("", str(error))]) from error


def show(
    context: typer.Context,
    id: ui.CapabilityId,
    snippet: Annotated[
        SnippetFormat | None,
        ui.option(
            "Print only a snippet that calls it: the configuration of an MCP client (mcp), a command (curl), or a "
            "program (python).",
            "--as",
        ),
    ] = None,
) -> None:
    """Show a capability: its registration, its profile and its earlier versions."""
    local, key = local_system(context.obj, create=False), Id(id)
    if snippet:
        text = _snippet(local, key, snippet)
        if ui.is_json():
            ui.print_json({"id": id, "format": snippet, "snippet": text})
        else:
            sys.stdout.write(f"{text}\n")
        return
    stores = local.stores
    item, stored = stores.registry.get([key]).get(key), stores.profiles.get([key]).get(key)
    if item is None and stored is None:
        raise not_found(local, key)
    assigned = stores.trust.get([key])[key]
    invocation = from_text(stored.profile.invocation) if stored else None
    shown = {
        "id": id,
        "registration": item,
        "trust": assigned.trust,
        "verified_provider": assigned.provider or None,
        "invocation": invocation.model_dump(mode="json") if invocation else None,
        "profile": stored.profile.model_dump(mode="json") if stored else None,
        "held": next(iter(waiting(local, [key])), None),
        "vector": len(stored.vector) if stored and stored.vector else None,
        "versions": [version.model_dump(mode="json") for version in stores.profiles.versions(key)],
    }
    ui.show(shown, ui.plain(id, "bold cyan"), ui.facts(_facts_of(shown, invocation)))


def _snippet(local: LocalSystem, id: Id, format: SnippetFormat) -> str:
    """The text that calls a capability. Raises CapabilityNotFound, or NotPossible: the format cannot express it."""
    stored = local.stores.profiles.get([id]).get(id)
    if stored is None or not stored.profile.findable:
        raise not_found(local, id)
    snippets = Snippets.of(stored.profile)
    if snippets.missing:
        raise NotPossible([Fault(id, f"nothing says how it is called: {snippets.missing}")])
    if text := snippets.text(format):
        return text
    possible = [str(other) for other in SnippetFormat if snippets.text(other)]
    instead = f": use {' or '.join(possible)}" if possible else ""
    raise NotPossible([Fault("--as", f"{format} cannot call it ({snippets.facts['protocol']}){instead}")])


def _facts_of(shown: dict[str, Any], invocation: Invocation | None) -> Iterator[tuple[str, object]]:
    """The version that is shown, what is held beside it, and the profile's state; --json has all of it."""
    item, profile, held = shown["registration"] or {"registration": "removed"}, shown["profile"], shown["held"]
    changed = {each["field"]: each for each in held["fields"]} if held else {}
    for key, value in item.items():
        if key in changed:
            yield key, changed[key]["shown"] or "none"
        elif key not in ("provider", "input_schema", "descriptor"):
            yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if verified := shown["verified_provider"]:
        yield "provider", f"{verified} (verified)"
    elif claimed := profile["provider"] if held else item.get("provider"):
        yield "provider", f"{claimed} (claimed)"
    word = "rejected" if held and held["rejected"] else "held"
    for key, each in changed.items():
        yield f"{word} {key}", each["held"] or "none"
    if held:
        state = "by an operator, who can still approve it" if held["rejected"] else "waits for an operator"
        yield word, "\n".join((*held["changes"], f"{state}: mats review {shown['id']}"))
    yield "trust", "none given" if shown["trust"] is None else shown["trust"]
    if not profile:
        return
    status = "shown, a change is rejected" if word == "rejected" and profile["source"] else profile["status"]
    state = status + (", described by a writer" if profile["enriched"] else ", as registered")
    indexed = "" if profile["indexed_rev"] == profile["rev"] else ", not indexed yet"
    yield "status", state + (f": {error}" if (error := profile["error"]) else f", revision {profile['rev']}{indexed}")
    if earlier := len(shown["versions"]):
        yield "versions", f"{earlier:,} before this one: --json has them"
    none = "its owner gave no way to call it" if profile["source"] else "not possible: no version of it is shown"
    yield "call", ", ".join(text for _, text in invocation.facts() if text) if invocation else none
    yield "inputs", ", ".join(mapping_at(item, "input_schema", "properties")) or "none declared"
    yield "summary", profile["enrichment"]["summary"] or "none"
    yield "vector", f"{shown['vector']} components" if shown["vector"] else "none"
    for refusal in profile["refused"]:
        yield "refused", f"{refusal['role']} {refusal['model']}: {refusal['cause']}"
    risk = profile["risk"]
    judged = [f"{risk['level']}, its writer says: {risk['span']!r}"] if risk else []
    for key, said in (("suspicious", profile["suspicious"]), ("risk", judged), ("notes", profile["notes"])):
        if said:
            yield key, "\n".join(said)


_LARGEST = 10  # Namespaces that a terminal shows; JSON has all


def stats(context: typer.Context) -> None:
    """Count registrations, also in each namespace, profiles, waiting changes and vectors."""
    totals = counts(local_system(context.obj, create=False))
    largest = ui.readable(dict(totals["namespaces"].most_common(_LARGEST)))
    shown = {**totals, "namespaces": f"{len(totals['namespaces']):,}; the largest: {largest}"}
    rows = ((key.replace("_", " "), ui.readable(value)) for key, value in shown.items())
    ui.show(totals, ui.facts(rows))


def counts(local: LocalSystem) -> dict[str, Any]:
    stores, models = local.stores, local.models
    namespaces = Counter(id.partition("/")[0] for id in stores.registry.ids())
    return {
        "home": str(local.settings.home),
        "registered": sum(namespaces.values()),
        "namespaces": namespaces,
        **stores.profiles.counts(),
        "changes": stores.queue.depth()._asdict(),
        "vectors": stores.profiles.vectors() or "none",
        "given_up": [f"{id}: {reason}" for id, reason in stores.queue.dead_letters()],
        "bytes": sum(file.stat().st_size for file in stores.database.path.parent.glob(f"{DATABASE}*")),
        "encoder": models.encoder_name or f"none: {models.without_encoder}",
        **model_names(local.settings),
    }


def without_vector(local: LocalSystem) -> int:
    """How many indexed capabilities have no vector of the current encoder: neural search cannot find them."""
    profiles = local.stores.profiles
    encoded = profiles.vectors().get(local.models.encoder_name, 0)
    return int(profiles.counts()["progress"]["indexed"]) - encoded


def list_(
    context: typer.Context,
    namespaces: ui.Namespaces = None,
    kinds: ui.Kinds = None,
    tags: ui.Tags = None,
    limit: Annotated[int, ui.option("Maximum number of capabilities.", min=1)] = 50,
    after: Annotated[str, ui.option("Continue after this id.", metavar="ID", show_default=False)] = "",
    suspicious: Annotated[bool, ui.option("Only those with flags, and why.", "--suspicious")] = False,
) -> None:
    """List capabilities in order of id, a page at a time."""
    parameters = {"namespace": namespaces or [], "kind": [str(one) for one in kinds or []], "tag": tags or []}
    wish = ListParameters.of({**parameters, **({"after": [after]} if after else {})})
    local = local_system(context.obj, create=False)
    found: list[ListedCapability] = []
    following: str | None = after
    while following is not None and len(found) < limit:
        step = wish.model_copy(update={"limit": min(limit - len(found), MAX_PAGE), "after": following})
        more = page_of(local.application, local_caller(local.settings), step, suspicious=suspicious)
        found, following = [*found, *more.capabilities], more.following
    table = ui.table_of("id", "kind", "trust", "suspicious" if suspicious else "summary", right=("trust",))
    for one in found:
        kind = f"{one.kind}{'' if one.lifecycle == 'active' else ', deprecated'}"
        trust = "" if one.trust is None else str(one.trust)
        said = "; ".join(one.suspicious) if suspicious else one.summary
        table.add_row(ui.plain(one.id, "bold cyan"), kind, trust, ui.plain(said))
    page = CapabilityPage(capabilities=found, following=following)
    none = "No capability is flagged." if suspicious else "No capability; see `mats stats`."
    ui.show(page.model_dump(mode="json"), table if found else none)
    if not ui.is_json() and following:
        ui.note(f"More follow: --after {following!r}")


_WAIT_S, _POLL_S = 600, 2.0
_LEFT_HERE = (
    f"the id alone, as a tombstone, for {GUARD_DAYS} days; the id in receipts of answers, for 30 days and in mats.log; "
    "names of providers among the latest 1,000 answers; "
    "freed pages of mats.db until they are used again, and your copies of the file"
)
_LEFT_IN_AWS = (
    f"the id alone, as a tombstone, for {GUARD_DAYS} days; the id in the bus's archive and in receipts for 30 days; "
    "backups of the tables for 35 days and snapshots of the domain for 14; logs for as long as they are kept"
)
"""Data that cannot be erased: docs/runbook.md."""
_MOST_SHOWN = 50


def remove(
    context: typer.Context,
    ids: Annotated[list[str] | None, ui.argument("namespace/name", metavar="ID...", parser=ui.parse_id)] = None,
    namespace: Annotated[str, ui.option("Remove everything in this namespace and below it.", show_default=False)] = "",
    dry_run: Annotated[bool, ui.option("Show what would be removed; remove nothing.", "--dry-run")] = False,
    yes: Annotated[bool, ui.option("Do not ask before a namespace is removed.", "--yes")] = False,
) -> None:
    """Remove capabilities from the registry and the index. Their versions and their trust remain.

    Nothing undoes this but to register them again, from their source or an earlier `mats export`. Only --namespace asks
    before it removes.
    """
    if bool(ids) == bool(namespace):
        raise typer.BadParameter("give one ID or several, or --namespace")
    try:
        wanted = namespace_of_pattern(parse_target(namespace.removesuffix(".*") + ".*")) if namespace else ""
    except ValueError as error:
        raise typer.BadParameter(f"--namespace: {error}") from error
    local = local_system(context.obj, create=False)
    if wanted:
        found, unknown = list(local.stores.registry.ids(namespace=wanted)), []
        if not found:
            raise NotPossible([Fault("--namespace", f"there is no capability in {wanted}")])
    else:
        given = [Id(id) for id in dict.fromkeys(ids or ())]
        known = local.stores.registry.get(given)
        found, unknown = [id for id in given if id in known], [id for id in given if id not in known]
    if dry_run:
        ui.show({"dry_run": True, "would_remove": found}, _would_remove(found))
    elif found:
        if wanted and not yes:
            _ask(wanted, len(found))
        _remove(local, found)
        if len(found) == 1 and not unknown:
            ui.show({"id": found[0], "removed": True}, f"{found[0]}: removed")
        else:
            ui.show({"removed": found, "unknown": unknown}, f"{len(found):,} capabilities removed")
    for id in unknown[:-1]:
        ui.complain(str(CapabilityNotFound(id)))
    if unknown:
        raise CapabilityNotFound(unknown[-1])


def _ask(namespace: str, count: int) -> None:
    what = f"{ui.count_of(count, 'capability', 'capabilities')} in {namespace} and below"
    if not sys.stdin.isatty():
        raise NotPossible([Fault("", f"would remove {what}; nothing was removed: repeat the command with --yes")])
    if not typer.confirm(f"Remove {what}?", err=True):
        raise typer.Exit(ui.Exit.REFUSED)


def _remove(local: LocalSystem, ids: Sequence[Id]) -> None:
    with ui.bar("Removing", len(ids)) as advance:
        for id in ids:
            local.stores.registry.remove(id)
            advance(1)
    if len(ids) > 1:
        index(local)
    settle(local, *ids)


def _would_remove(ids: Sequence[Id]) -> ui.Lines:
    yield from map(ui.plain, ids[:_MOST_SHOWN])
    if len(ids) > _MOST_SHOWN:
        yield Text(f"… and {len(ids) - _MOST_SHOWN:,} more; --json has all of them", style="dim")
    yield f"{len(ids):,} would be removed; nothing was removed"


def erase(
    context: typer.Context,
    id: ui.CapabilityId,
    yes: Annotated[bool, ui.option("Erase it; without it, only show what there is.", "--yes")] = False,
) -> None:
    """Erase every trace of a capability, here or in AWS: registration, trust, profile, versions, entries, outcomes.

    Erased data does not come back with a late event. The owner may register it again.
    """
    system = open_system(context.obj, create=False)
    erasing, key = erase_of(system), Id(id)
    traces = erasing.traces(key)
    if traces.is_gone:
        raise CapabilityNotFound(id)
    if yes:
        erasing(key)
    there = (
        ("its registration", traces.registration),
        ("its trust", traces.trust),
        (f"its profile ({traces.profile})", traces.profile),
        (ui.count_of(traces.versions, "earlier version"), traces.versions),
    )
    text = f"{id}: {'erased' if yes else 'would be erased'}: {', '.join(name for name, is_there in there if is_there)}"
    ui.show({"id": id, "erased": yes, **traces._asdict()}, text)
    ui.note(f"What stays: {_LEFT_HERE if as_local(system) else _LEFT_IN_AWS}.")
    if not yes:
        ui.note("Nothing was erased: repeat the command with --yes.")


def erase_of(system: AnySystem, *, sleep: Callable[[float], None] = time.sleep) -> Erase:
    """The use case over a system. In AWS the event path writes the tombstones, so the domain need not be reachable."""
    stores, local = system.stores, as_local(system)

    def settle(id: Id) -> None:
        if local:
            cause = Cause(event_id=f"erase-{local.clock.now()}", time=local.clock.now())
            local.enrich([Change(id, cause)])
            local.stores.queue.forget(id)
        else:
            _settle_in_aws(cast("CloudStores", stores), id, sleep)

    return system.erase(settle)


def _settle_in_aws(stores: "CloudStores", id: Id, sleep: Callable[[float], None]) -> None:
    stores.bus.send_changes([id])
    for _ in range(int(_WAIT_S / _POLL_S)):
        kept = stores.profiles.get([id]).get(id)
        if kept is None or (kept.profile.status is Status.DELETED and kept.profile.indexed_rev == kept.profile.rev):
            return
        sleep(_POLL_S)
