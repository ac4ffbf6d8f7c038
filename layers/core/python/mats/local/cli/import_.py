"""`mats import`, and a running service, as `--url` names it."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.text import Text

from mats.bootstrap.local import DATABASE, LocalSystem, is_missing, local_system
from mats.domain.capability.capability import Id, parts
from mats.domain.capability.registration import Registration
from mats.domain.errors import DependencyFailed, Fault, NotPossible, RequestInvalid, command_to_install
from mats.domain.policies.seniority import NEW_DAYS, ages_of
from mats.domain.profile.assignment import Assigned, of_operators
from mats.domain.profile.origin import Placed
from mats.domain.profile.sync import SourceKind, TrackedSource
from mats.domain.protocols.addresses import Unfetchable, split_url, without_query
from mats.domain.protocols.protocol import Source
from mats.domain.text.words import clip
from mats.local.cli import output as ui
from mats.local.cli.indexing import Early, index
from mats.local.imports.files import Location, Stream, is_address
from mats.local.imports.importer import BATCH, DryRunRegistry, Importer, Report, check_namespace
from mats.local.imports.sources import LIVE, open_reading, open_sources, parse_location
from mats.local.review import waiting
from mats.ports import ImportTarget, Item, ProfileStore, Registry, Stored, TrustBook
from mats.settings import Settings, SettingsInvalid, variable_of

if TYPE_CHECKING:
    from mats.client import Client

_MOST_SHOWN = 50  # Lines of a report on a terminal; JSON is complete


def import_(
    context: typer.Context,
    what: Annotated[
        list[str], ui.argument(f"Files, folders, addresses or - for standard input; or {LIVE}.", metavar="WHAT...")
    ],
    namespace: ui.IntoNamespace = "",
    dry_run: Annotated[bool, ui.option("Show what would be registered; write nothing.", "--dry-run")] = False,
    timeout: Annotated[
        float, ui.option("Timeout in seconds for an address or a live MCP server to answer.", min=1, max=600)
    ] = 30,
    live: ui.Live = False,
    with_trust: Annotated[
        bool, ui.option("Also assign the trust in an export; otherwise it is skipped.", "--with-trust")
    ] = False,
    server: Annotated[
        str, ui.option("The address of an OpenAPI document's API, in place of one that it names.", metavar="URL")
    ] = "",
    url: Annotated[str, ui.option("Register at the service of this address, with the token in MATS_TOKEN.")] = "",
) -> None:
    """Register many capabilities from existing descriptions.

    Reads registrations and exports (JSON Lines, also .gz), MCP servers and their lists, A2A agent cards, OpenAPI 3 and
    Swagger 2, Agent Skills, tool lists of models' APIs, ARD catalogs and Bedrock's models. Registers valid rows, and
    rejects invalid ones with all their faults. You can interrupt it and run it again. `mats source add` remembers a
    source for `mats sync`.
    """
    began = time.monotonic()
    settings: Settings = context.obj
    if with_trust and namespace:
        raise typer.BadParameter("--with-trust is for a local registry and the namespaces of the export")
    if url and (with_trust or dry_run):
        raise typer.BadParameter("registers at a service: leave out --dry-run and --with-trust", param_hint="--url")
    check_namespace(namespace, "--namespace")
    sources = _sources(what, settings, timeout, namespace, live=live, base=server)
    if dry_run:
        report = _dry_run(sources, settings, with_trust=with_trust)
    elif url:
        report = _send(sources, url, settings, timeout)
    else:
        foreign = not namespace and (live or what[0] in set(SourceKind) or any(map(is_address, what)))
        report = _run(sources, settings, began, with_trust=with_trust, foreign=foreign)
    found = bool(report.rows or report.unread or report.trust)
    if not found:
        reason = (
            "the notes say why"
            if report.noted
            else "no file there is of a known format; name one, or see `mats import --help`"
        )
        ui.complain(f"nothing to import in {', '.join(what)}: {reason}")
    if report.problem:
        ui.complain(report.problem)
    if report.rejected or report.problem or not found:
        raise typer.Exit(ui.Exit.REFUSED)


def _sources(
    what: list[str], settings: Settings, timeout_s: float, namespace: str, *, live: bool, base: str
) -> Iterable[tuple[Source, Stream]]:
    """The sources that the arguments name. A file called `mcp`, `bedrock` or so is given as ./mcp."""
    try:
        base = without_query(split_url(base).geturl()) if base else ""
    except Unfetchable as error:
        raise RequestInvalid([Fault("--server", error.faults[0].message)]) from error
    if live or what[0] in set(SourceKind) - {SourceKind.DOCUMENT}:
        if base:
            raise RequestInvalid([Fault("--server", "is for OpenAPI documents, as files or addresses: leave it out")])
        kind, location = parse_location(what)
        source = TrackedSource(
            name="", kind=kind, location=location, namespace=namespace, live=live, timeout_s=timeout_s
        )
        return open_reading(source, settings).sources
    return (source for name in what for source in open_sources(name, namespace, timeout_s, base))


class _Deferred:
    """A store that opens at its first use: an import without entries creates no registry."""

    def __init__(self, open: Callable[[], object]) -> None:
        self._open = open

    def __getattr__(self, name: str) -> Any:
        return getattr(self._open(), name)


def _run(
    sources: Iterable[tuple[Source, Stream]], settings: Settings, began: float, *, with_trust: bool, foreign: bool
) -> Report:
    opened = cache(lambda: local_system(settings))
    if settings.in_aws or not is_missing(settings):
        opened()
    registry = cast(Registry, _Deferred(lambda: opened().stores.registry))
    trust = cast(TrustBook, _Deferred(lambda: opened().stores.trust))
    importer = Importer(registry, trust if with_trust else None)
    if with_trust:
        importer.profiles = cast(ProfileStore, _Deferred(lambda: opened().stores.profiles))
    if foreign:
        importer.reserved = lambda ids: of_operators(trust.get(ids))
    with ui.bar("Registering", None) as advance, Early(opened).open() as early:

        def acknowledge(count: int) -> None:
            advance(count)
            if not is_missing(settings):
                early.begin()

        importer.import_sources(sources, acknowledge)
    registered = time.monotonic() - began
    local = None if is_missing(settings) else opened()
    if local and not local.settings.in_aws:
        local.stores.queue.retry_at_once()  # what failed: who imports again has mended the cause
    indexed, findable_s = index(local) if local else (0, 0.0)
    indexed += early.total
    seconds, findable_s = time.monotonic() - began, registered + findable_s
    report = importer.report
    rate = f" ({indexed / seconds:,.0f} a second), findable after {findable_s:,.1f} s" if indexed and seconds else ""
    elsewhere = report.placed[Placed.NEW] + report.placed[Placed.CHANGED] - indexed
    by_service = f", {elsewhere:,} by the running service" if elsewhere > 0 else ""
    held = sum(one["id"] in report.listed for one in waiting(local)) if local else 0
    waits = f", {held:,} held: mats review" if held else ""
    flags = count_flags(local, report.listed) if local else {}
    if not ui.is_json():
        _show_remarks(report)
        show_flags(flags)
        _show_newcomers(local, report)
        if local and indexed and local.models.without_encoder and settings.encoder != "none":
            ui.note(f"Indexed by words only: {local.models.without_encoder}")
    text = f"{_rows(report)} in {seconds:,.1f} s: {_counts(report)}{waits}; {indexed:,} indexed{rate}{by_service}"
    times = {"findable_seconds": round(findable_s, 2), "seconds": round(seconds, 2)}
    outcome = {**report.to_json(), "held": held, "flagged": flags, "indexed": indexed, **times}
    if local:
        ui.show_with_usage(local, outcome, text)
        fail_if_waiting(local)
    else:
        ui.show(outcome, text)
    return report


def count_flags(local: LocalSystem, ids: Collection[str]) -> dict[str, Any]:
    """How many of these capabilities are noted and how many held; by reason, how many, and the first of them by id.

    Empty in AWS, where profiles are made later, elsewhere.
    """
    if local.settings.in_aws:
        return {}
    counts, by_reason, listed = {"noted": 0, "held": 0}, dict[str, list[Id]](), list(map(Id, sorted(ids)))
    for start in range(0, len(listed), BATCH):
        for id, stored in sorted(local.stores.profiles.get(listed[start : start + BATCH]).items()):
            if stored.profile.suspicious:
                counts["held" if stored.profile.withheld else "noted"] += 1
            for found in stored.profile.suspicious:
                by_reason.setdefault(found.partition(" [")[0], []).append(id)
    reasons = sorted(by_reason.items(), key=lambda one: -len(one[1]))
    return {
        **counts,
        "reasons": [{"reason": reason, "count": len(found), "example": found[0]} for reason, found in reasons],
    }


def show_flags(flags: Mapping[str, Any]) -> None:
    for each in flags.get("reasons", ()):
        ui.note(f"{each['count']:,} flagged: {each['reason']}, such as {each['example']}")
    words = {"noted": "noted", "held": "withheld from agents"}
    if counts := [f"{flags[name]:,} {word}" for name, word in words.items() if flags.get(name)]:
        ui.note(
            f"{', '.join(counts)}. `mats list --suspicious` shows them; `mats trust ID --clear-flags` clears "
            "one; with 'com.acme.*' or a source as ID, all but hidden."
        )


def _show_newcomers(local: LocalSystem | None, report: Report) -> None:
    """Say what operators can do where what documents brought is new beside older entries: decision 0095."""
    new = [id for id, placed, _ in report.registered if placed is Placed.NEW]
    if local is None or local.settings.in_aws or not new:
        return
    rated = of_operators(local.stores.trust.get(new))
    namespaces = sorted({parts(id)[0] for id in new if id not in rated})
    if not namespaces:
        return
    now_s = datetime.fromisoformat(local.clock.now()).timestamp()
    ages = ages_of(local.discover.index, frozenset(), now_s)  # reads the index, if this process has not written it
    if ages.new_days and not ages.most_are_new:
        ui.note(
            f"For {NEW_DAYS} days, older entries that are about as relevant come before what is new, unless you rate "
            f"it. If you know the owner: `mats trust '{namespaces[0]}.*' 80`."
        )


def _send(sources: Iterable[tuple[Source, Stream]], url: str, settings: Settings, timeout_s: float) -> Report:
    """Map here, and register at a service, batch by batch; its index follows."""
    began = time.monotonic()
    with service_at(url, settings.token, timeout_s) as client:
        remote = RemoteRegistry(client)
        importer = Importer(cast(ImportTarget, remote), refusals=remote.refusals)
        with ui.bar("Sending", None) as advance:
            importer.import_sources(sources, advance)
    report, seconds = importer.report, time.monotonic() - began
    if not ui.is_json():
        _show_remarks(report)
    text = f"{_rows(report)} in {seconds:,.1f} s: {_counts(report)}; the service indexes what it does not have yet"
    ui.show({**report.to_json(), "seconds": round(seconds, 2)}, text)
    return report


def fail_if_waiting(local: LocalSystem) -> None:
    """Raises DependencyFailed if changes are saved and not findable."""
    if failing := local.stores.queue.failing():
        reason = f" ({local.why_waiting})" if local.why_waiting else ""
        raise DependencyFailed(f"{failing:,} changes are saved but not findable yet{reason}: run `mats reconcile`")
    if local.refusals:
        raise DependencyFailed(
            f"the capabilities are findable, but a model refuses its part ({'; '.join(sorted(local.refusals))}): "
            "correct the model or its access, then run `mats reconcile`"
        )


class _NothingKept:
    """Trust and profiles of a dry run: none is there, and none is written."""

    def rows(self, keys: Collection[Id]) -> Mapping[Id, Assigned]:
        return {}

    def get(self, ids: Collection[Id]) -> Mapping[Id, Stored]:
        return {}

    def put(self, key: Id, assigned: Assigned) -> None:
        """No-op."""

    def save(self, changes: Sequence[Stored]) -> Collection[Id]:
        return ()


def _dry_run(sources: Iterable[tuple[Source, Stream]], settings: Settings, *, with_trust: bool) -> Report:
    """Map and compare with the registry, if there is one, without writing to it."""
    exists = not settings.in_aws and (settings.home / DATABASE).exists()
    registry = DryRunRegistry(local_system(settings).stores.registry if exists else None)
    importer = Importer(registry)
    if with_trust:
        importer.trust, importer.profiles = cast(TrustBook, _NothingKept()), cast(ProfileStore, _NothingKept())
    importer.import_sources(sources)
    report, items = importer.report, list(registry.items.values())
    placed = [{"id": id, "placed": outcome} for id, outcome in registry.placed.items()]
    ui.show(
        {**report.to_json(), "dry_run": True, "would_be": placed, "items": items}, _item_lines(items, registry.placed)
    )
    if not ui.is_json():
        _show_remarks(report)
        ui.say(f"{_rows(report)}: would be {_counts(report)}; nothing was registered")
    return report


def _item_lines(items: Sequence[Item], placed: Mapping[Id, Placed]) -> Iterator[Text]:
    for item in items[:_MOST_SHOWN]:
        id = Id(f"{item['namespace']}/{item['name']}")
        about = ui.plain(f"  {item['kind']}  {placed[id]}  {item.get('endpoint', '')}", "dim")
        yield ui.plain(id, "bold cyan") + about
        if item.get("description"):
            yield ui.plain(f"  {clip(item['description'], 160)}")
    if len(items) > _MOST_SHOWN:
        yield Text(f"… and {len(items) - _MOST_SHOWN:,} more; --json has all of them", style="dim")


def _rows(report: Report) -> str:
    unread = f", {ui.count_of(report.unread, 'document')} not read" if report.unread else ""
    return ui.count_of(report.rows, "row") + unread


def _counts(report: Report) -> str:
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in report.counts.items())
    passed = f", {ui.count_of(len(report.passed_over), 'file')} passed over" if report.passed_over else ""
    trust = "".join(f", trust of {count:,} {name.replace('_', ' ')}" for name, count in report.trust.items())
    empty = f", {len(report.empty):,} empty" if report.empty else ""
    return f"{counts}, {len(report.rejected) - report.unread:,} rejected{empty}{passed}{trust}"


def _show_remarks(report: Report) -> None:
    """Show every rejection, the first notes, and the registrations of documents that changed.

    Of rejections of one file for the same faults, such as a missing option, the first is shown.
    """
    for finding, more in report.distinct_rejections():
        _show("rejected ", "red", finding.place, finding.text + ui.and_more(more))
    if passed := report.trust["passed_over"]:
        ui.note(f"The trust of {passed:,} was passed over: `mats import --with-trust` assigns it in a local registry.")
    for finding in report.noted[:_MOST_SHOWN]:
        _show("note ", "yellow", finding.place, finding.text)
    if len(report.noted) > _MOST_SHOWN:
        ui.err.print(f"… and {len(report.noted) - _MOST_SHOWN:,} more notes; --json has all of them", style="dim")
    changed = [(id, place) for id, placed, place in report.registered if placed is Placed.CHANGED]
    for id, place in changed[:_MOST_SHOWN]:
        _show("changed ", "cyan", place, id)
    if changed:
        ui.note("An import replaces the whole entry: edits made here go; `mats sync` of a source keeps them.")


def _show(title: str, style: str, place: Location, text: str) -> None:
    """Show one remark; an unreadable file has its name in the text."""
    position = ":".join(str(part) for part in place if part)
    shown = text if text.startswith(f"{position}: ") else f"{position}: {text}"
    ui.err.print(Text(title, style=style) + ui.plain(shown), soft_wrap=True)


_BATCH_BYTES = 4_000_000  # With every character escaped, still below the limit of a body


@contextmanager
def service_at(url: str, token: str, timeout_s: float = 10) -> Iterator["Client"]:
    """A client of the service, which is sent this token.

    Raises typer.BadParameter: the address is invalid; SettingsInvalid: the service does not know
    the token, or the token may not do this; RequestInvalid, NotPossible: as the service says; DependencyFailed: it does
    not answer.
    """
    try:
        from mats import client as api  # noqa: PLC0415 - urllib3, for --url only
    except ImportError as error:
        raise typer.BadParameter(f"needs urllib3: {command_to_install('client')}", param_hint="--url") from error
    variable = variable_of("token")
    try:
        with api.Client(url, auth=api.Bearer(token) if token else None, timeout_s=timeout_s) as client:
            yield client
    except api.WrongRequest as error:
        faults = [Fault(each.field, each.message) for each in error.problem.errors]
        raise RequestInvalid(faults or [Fault("", str(error))]) from error
    except api.NotFound as error:
        raise NotPossible([Fault("", str(error))]) from error
    except ValueError as error:
        hint = f" (set {variable} to its token)" if not token and url.startswith("https:") else ""
        raise typer.BadParameter(f"{error}{hint}", param_hint="--url") from error
    except api.NotAllowed as error:
        remedy = "" if token else f": set {variable}"  # of a token that is sent, the detail says what is wrong
        raise SettingsInvalid(f"{url} refuses the request ({error.problem.detail}){remedy}") from error
    except api.MatsError as error:
        raise DependencyFailed(str(error)) from error


@dataclass(slots=True)
class RemoteRegistry:
    """Registers at a service; `refusals` has what it refuses."""

    client: "Client"
    refusals: dict[Id, Sequence[Fault]] = field(default_factory=dict)

    def put(self, registrations: Sequence[Registration]) -> Mapping[Id, Placed]:
        placed: dict[Id, Placed] = {}
        for batch in _batches(registrations):
            answer = self.client.register([registration.item() for registration in batch])
            placed |= answer.placed
            for one in answer.rejected:
                if one.place < len(batch):
                    self.refusals[batch[one.place].id] = [Fault(each.field, each.message) for each in one.errors]
            if {registration.id for registration in batch} - placed.keys() - self.refusals.keys():
                raise DependencyFailed("the service does not say what became of a registration: run the import again")
        return placed


def _batches(registrations: Sequence[Registration]) -> Iterator[Sequence[Registration]]:
    batch: list[Registration] = []
    size = 0
    for registration in registrations:
        more = len(registration.model_dump_json(exclude_defaults=True))
        if batch and size + more > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(registration)
        size += more
    yield batch
