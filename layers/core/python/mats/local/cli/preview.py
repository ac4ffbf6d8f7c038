"""`mats preview`."""

import os
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault, NotPossible, RequestInvalid
from mats.local.cli import output as ui
from mats.local.cli.registry import not_found
from mats.local.imports.files import is_address
from mats.local.imports.importer import DryRunRegistry, Importer
from mats.local.imports.sources import open_sources
from mats.local.preview.report import THRESHOLDS, PreviewReport, QueryPreview, Weight, preview_over

_FILES = (".json", ".jsonl", ".gz", ".yaml", ".yml", ".md")
_STYLES = {Weight.MUST: "bold red", Weight.SHOULD: "yellow", Weight.COULD: "dim"}


def preview(
    context: typer.Context,
    item: Annotated[str, ui.argument("A file of any format, an address, - for standard input, or an ID.")],
    name: Annotated[
        str, ui.option("The name of one registration, if the file holds several.", show_default=False)
    ] = "",
    namespace: Annotated[
        str, ui.option("The namespace to register it under, instead of the file's.", show_default=False)
    ] = "",
) -> None:
    """Preview a registration without saving it.

    Shows the profile it would get; its rank for queries, which are its own examples or derived from its text; the
    capabilities that outrank it and why; near-duplicates; and suggestions. The reranker is not called.
    """
    local = local_system(context.obj, create=False)
    registration = _choose(_registrations(item, namespace, local), name)
    report = preview_over(local)(registration, local.settings.audiences)
    ui.show_with_usage(local, report.to_json(), _lines(report))
    if any(one.weight is Weight.MUST for one in report.advice):
        raise typer.Exit(ui.Exit.REFUSED)


def _registrations(item: str, namespace: str, local: LocalSystem) -> list[Registration]:
    """The registrations in a file, at an address or in standard input, or the one under an id."""
    if item != "-" and not is_address(item) and not os.path.exists(item):  # noqa: PTH110 - as for a folder
        stored = local.stores.registry.get([Id(item)]).get(Id(item))
        if stored is None and ("/" not in item or item.lower().endswith(_FILES)):
            raise NotPossible([Fault(item, "no such file, nor a capability with this id: `mats list` shows the ids")])
        if stored is None:
            raise not_found(local, Id(item))
        return [Registration.parse(stored)]
    registry = DryRunRegistry()
    importer = Importer(registry)
    importer.import_sources(open_sources(item, namespace))
    if not registry.items:
        faults = [
            Fault(":".join(filter(None, (place.where, fault.attribute))), fault.message)
            for place, faults in importer.report.rejected
            for fault in faults
        ]
        raise NotPossible(faults or [Fault(item, "holds no registration: name a file in a format of `mats import`")])
    return [Registration.parse(mapped) for mapped in registry.items.values()]


def _choose(registrations: list[Registration], name: str) -> Registration:
    wanted = [r for r in registrations if name in ("", r.name, r.id)]
    if len(wanted) == 1:
        return wanted[0]
    names = ", ".join(r.name for r in registrations[:20]) + (" …" if len(registrations) > 20 else "")
    problem = "holds several" if wanted else f"holds no {name!r}"
    raise RequestInvalid([Fault("--name", f"the file {problem}: pass one of {names}")])


def _lines(report: PreviewReport) -> ui.Lines:
    profile = report.profile
    yield ui.plain(f"{profile.id}  {profile.kind}, would be {report.placed}", "bold cyan")
    yield ui.facts(_profile_facts(report))
    for one in report.queries:
        yield from _query_lines(one)
    if not report.queries:
        yield Text("No queries to try: add examples or a description.", style="yellow")
    if report.duplicates:
        cosine, overlap = THRESHOLDS["cosine"], THRESHOLDS["overlap"]
        limits = f"cosine of {cosine} or {overlap:.0%} of the words"
        yield Text(f"Near-duplicates (from a {limits}):", style="bold")
    for duplicate in report.duplicates:
        near = "" if duplicate.cosine is None else f"cosine {duplicate.cosine:.2f}, "
        yield f"  {duplicate.id}: {near}{duplicate.overlap:.0%} of the words"
    yield Text("To improve:" if report.advice else "Nothing to improve.", style="bold")
    for advice in report.advice:
        yield Text(f"  {advice.flag}: ", style=_STYLES[advice.weight]) + ui.plain(f"{advice.what}; {advice.fix}")
    yield from (ui.plain(f"Without {reason}", "dim") for reason in report.without)


def _profile_facts(report: PreviewReport) -> Iterator[tuple[str, object]]:
    yield "described by", report.described_by
    for key, value in report.profile.enrichment.model_dump().items():
        if text := value if isinstance(value, str) else "\n".join(value):
            yield key.replace("_", " "), text
    yield "trust", "none" if report.profile.trust is None else report.profile.trust


def _query_lines(one: QueryPreview) -> Iterator[Text]:
    place = f"place {one.place} of {one.looked_at}" if one.place else f"not among the first {one.looked_at}"
    if one.place_unaided != one.place:
        place += f", {one.place_unaided or 'none'} without this example"
    style = "green" if one.place == 1 else "yellow" if one.place else "red"
    yield Text(f"{place}  ", style=style) + ui.plain(one.query) + Text(f"  ({one.origin})", style="dim")
    for other in one.outranked_by:
        yield ui.plain(f"  {other.place}. {other.id}: {'; '.join(other.why)}", "dim")
