"""The commands that change and show the registry."""

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from mats.bootstrap.local import DATABASE, LocalSystem, local_system
from mats.bootstrap.models import model_names
from mats.domain.capability.capability import Id, Kind
from mats.domain.capability.registration import Registration
from mats.domain.errors import (
    CapabilityNotFound,
    Fault,
    KindConflict,
    NotPossible,
    RegistrationInvalid,
    RequestInvalid,
)
from mats.domain.profile.origin import Placed
from mats.domain.protocols.catalogue import from_text
from mats.edge.answers import CapabilityPage, ListedCapability
from mats.edge.http import LOCAL, local_caller
from mats.edge.requests import MAX_PAGE, ListParameters
from mats.edge.routes import page_of
from mats.edge.snippets.capability import SnippetFormat, Snippets
from mats.local.cli.indexing import settle
from mats.local.cli.output import (
    AsJson,
    CapabilityId,
    Kinds,
    Namespaces,
    Tags,
    facts,
    note,
    out,
    plain,
    print_json,
    print_result,
    readable,
    table_of,
)
from mats.local.cli.spending import print_with_usage
from mats.local.imports.files import MAX_LINE_BYTES, open_file, parse_line
from mats.local.imports.formats.registrations import parse_row
from mats.usecases.look_up import LookUp


def add(
    context: typer.Context,
    file: Annotated[str | None, typer.Argument(help="A JSON file with one registration; - is standard input.")] = None,
    namespace: Annotated[str | None, typer.Option(help="Dot-separated labels, such as com.acme.")] = None,
    name: Annotated[str | None, typer.Option(help="Its name, 1 to 200 characters.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="Its kind.")] = None,
    description: Annotated[str | None, typer.Option(help="Its task, in the words of a request.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Its address or ARN.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be given several times.")] = None,
    type_tag: Annotated[
        list[str] | None, typer.Option(help="A type of capability, such as payments; may be given several times.")
    ] = None,
    example: Annotated[list[str] | None, typer.Option(help="A request it serves; may be given several times.")] = None,
    as_json: AsJson = False,
) -> None:
    """Register one capability, from a file, standard input or options, and index it.

    Namespace, name and kind are required. Options override the file.
    """
    given = {
        "namespace": namespace, "name": name, "kind": kind, "description": description, "endpoint": endpoint,
        "tags": tag, "type_tags": type_tag, "examples": example,
    }  # fmt: skip
    registration = _one(file, {key: value for key, value in given.items() if value})
    local = local_system(context.obj)
    placed = local.stores.registry.put([registration])[registration.id]
    if placed is Placed.OTHER_KIND:
        raise KindConflict(registration.id)
    settle(local, registration.id)
    outcome = {"id": registration.id, "placed": placed}
    print_with_usage(local, outcome, f"{registration.id}: {placed}, findable now", as_json=as_json)


def _one(file: str | None, given: dict[str, Any]) -> Registration:
    if file is None and not given:
        raise RequestInvalid([Fault("", "give a file, or --namespace, --name and --kind; see `mats add --help`")])
    if file is None:
        try:
            return Registration.parse(given)
        except RegistrationInvalid as error:
            raise RequestInvalid([Fault(f"--{fault.attribute}", fault.message) for fault in error.faults]) from error
    with open_file(file) as stream:
        item = parse_row(parse_line(stream.read(MAX_LINE_BYTES + 1)))
    return Registration.parse({**item.item(), **given}) if given else item


def not_found(local: LocalSystem, id: Id) -> CapabilityNotFound:
    """The error for an unknown id; it names the nearest ones."""
    return CapabilityNotFound(id, LookUp(local.stores.index).nearest(id, local.settings.audiences))


def show(
    context: typer.Context,
    id: CapabilityId,
    snippet: Annotated[
        SnippetFormat | None,
        typer.Option(
            "--as",
            help="Print only a snippet that calls it: the configuration of an MCP client (mcp), a command (curl), a "
            "program (python) or a tool of Bedrock Converse (converse).",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a capability: its registration, its profile and its earlier versions."""
    local, key = local_system(context.obj, create=False), Id(id)
    if snippet:
        text = _snippet(local, key, snippet)
        if as_json:
            print_json({"id": id, "format": snippet, "snippet": text})
        else:
            sys.stdout.write(f"{text}\n")
        return
    stores = local.stores
    item, stored = stores.registry.get([key]).get(key), stores.profiles.get([key]).get(key)
    if item is None and stored is None:
        raise not_found(local, key)
    assigned = stores.trust.get([key])[key]
    reliability = local.reliability(key, assigned.trust, LOCAL) if local.reliability else None
    invocation = from_text(stored.profile.invocation) if stored else None
    shown = {
        "id": id,
        "registration": item,
        "trust": assigned.trust,
        "reliability": reliability.to_json() if reliability else None,
        "verified_provider": assigned.provider or None,
        "invocation": invocation.model_dump(mode="json") if invocation else None,
        "profile": stored.profile.model_dump(mode="json") if stored else None,
        "vector": len(stored.vector) if stored and stored.vector else None,
        "versions": [version.model_dump(mode="json") for version in stores.profiles.versions(key)],
    }
    print_result(shown, plain(id, "bold cyan"), facts(_facts_of(shown)), as_json=as_json)


def _snippet(local: LocalSystem, id: Id, format: SnippetFormat) -> str:
    """The text that calls a capability, in one format.

    Raises:
        CapabilityNotFound: there is no profile with this id.
        NotPossible: the format cannot express the call, or nothing says how it is called.
    """
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


def _facts_of(shown: dict[str, Any]) -> Iterator[tuple[str, object]]:
    item, verified = shown["registration"] or {"registration": "removed"}, shown["verified_provider"]
    for key, value in item.items():
        if key == "provider":
            continue
        yield key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if verified or "provider" in item:
        yield "provider", f"{verified} (verified)" if verified else f"{item['provider']} (claimed)"
    profile = shown["profile"]
    if not profile:
        return
    yield "trust", "none given" if shown["trust"] is None else shown["trust"]
    if found := shown["reliability"]:
        yield (
            "reliability",
            f"{found['mean']:.2f} ({found['low']:.2f} – {found['high']:.2f}): {found['successes']:.1f} successes, "
            f"{found['failures']:.1f} failures",
        )
    state = profile["status"] + (", enriched" if profile["enriched"] else ", raw")
    yield "status", f"{state}: {profile['error']}" if profile["error"] else state
    yield "call", profile["invocation"] or "its owner gave no way to call it"
    yield "summary", profile["enrichment"]["summary"] or "none"
    for refusal in profile["refused"]:
        yield "refused", f"{refusal['role']} {refusal['model']}: {refusal['cause']}"
    for key in ("suspicious", "notes"):
        if profile[key]:
            yield key, "\n".join(profile[key])
    yield "vector", f"{shown['vector']} components" if shown["vector"] else "none"
    indexed = "indexed" if profile["indexed_rev"] == profile["rev"] else "not indexed yet"
    cause = f", {profile['cause']['time']} ({profile['cause']['event_id']})" if profile["cause"] else ""
    yield "revision", f"{profile['rev']}, {indexed}{cause}"
    for version in reversed(shown["versions"]):
        before = version["cause"] or {"time": "?", "event_id": "?"}
        yield "earlier", f"{version['rev']}, {version['status']}, {before['time']} ({before['event_id']})"


def stats(context: typer.Context, as_json: AsJson = False) -> None:
    """Count registrations, profiles, waiting changes and vectors."""
    totals = counts(local_system(context.obj, create=False))
    rows = ((key.replace("_", " "), readable(value)) for key, value in totals.items())
    print_result(totals, facts(rows), as_json=as_json)


def counts(local: LocalSystem) -> dict[str, Any]:
    """The JSON of `mats stats`."""
    stores, models = local.stores, local.models
    return {
        "home": str(local.settings.home),
        "registered": sum(1 for _ in stores.registry.ids()),
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
    namespaces: Namespaces = None,
    kinds: Kinds = None,
    tags: Tags = None,
    limit: Annotated[int, typer.Option(help="Maximum number of capabilities.", min=1)] = 50,
    after: Annotated[str, typer.Option(metavar="ID", help="Continue after this id.", show_default=False)] = "",
    as_json: AsJson = False,
) -> None:
    """List capabilities in order of id, a page at a time."""
    parameters = {"namespace": namespaces or [], "kind": [str(one) for one in kinds or []], "tag": tags or []}
    wish = ListParameters.of({**parameters, **({"after": [after]} if after else {})})
    local = local_system(context.obj, create=False)
    found: list[ListedCapability] = []
    following: str | None = after
    while following is not None and len(found) < limit:
        step = wish.model_copy(update={"limit": min(limit - len(found), MAX_PAGE), "after": following})
        more = page_of(local.application, local_caller(local.settings), step)
        found, following = [*found, *more.capabilities], more.following
    page = CapabilityPage(capabilities=found, following=following)
    if as_json:
        print_json(page.model_dump(mode="json"))
    else:
        _show(page)


def _show(page: CapabilityPage) -> None:
    if not page.capabilities:
        note("No capability; see `mats stats`.")
        return
    table = table_of("id", "kind", "trust", "summary", right=("trust",))
    for one in page.capabilities:
        kind = f"{one.kind}{'' if one.lifecycle == 'active' else ', deprecated'}"
        trust = "" if one.trust is None else str(one.trust)
        table.add_row(plain(one.id, "bold cyan"), kind, trust, plain(one.summary))
    out.print(table)
    if page.following:
        note(f"More follow: --after {page.following!r}")
