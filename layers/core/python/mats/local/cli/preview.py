"""`mats preview`."""

import os
from typing import Annotated, Any

import typer
from rich.text import Text

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault, NotPossible, RequestInvalid
from mats.domain.profile.origin import Placed
from mats.local.cli import output as ui
from mats.local.cli.registry import not_found
from mats.local.imports.files import is_address
from mats.local.imports.importer import DryRunRegistry, Importer
from mats.local.imports.sources import open_sources
from mats.local.preview.report import preview_over

_FILES = (".json", ".jsonl", ".gz", ".yaml", ".yml", ".md")


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

    Shows the profile it would get, its place for its own examples (or for queries made of its text), and what comes
    before it and why. Exits with 1 if it would be rejected or carry a warning. Does not call the reranker.
    """
    local = local_system(context.obj, create=False)
    registration = _choose(_registrations(item, namespace, local), name)
    report = preview_over(local)(registration, local.settings.audiences)
    ui.show_with_usage(local, report, _lines(report))
    if report["placed"] == Placed.OTHER_KIND or report["profile"]["suspicious"]:
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
            Fault(":".join(filter(None, (place.where, fault.attribute))), f"{fault.message}{ui.and_more(more)}")
            for (place, faults), more in importer.report.distinct_rejections()
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


def _lines(report: dict[str, Any]) -> ui.Lines:
    profile = report["profile"]
    yield ui.plain(f"{report['id']}  {report['kind']}, would be {report['placed']}", "bold cyan")
    facts = {name: value for name, value in profile.items() if value not in ("", (), []) and name != "encoded_text"}
    yield ui.facts((name.replace("_", " "), _text(value)) for name, value in facts.items())
    for one in report["queries"]:
        place, count = one["place"], one["looked_at"]
        style = "green" if place == 1 else "yellow" if place else "red"
        shown = f"place {place} of {count}  " if place else f"not among the first {count}  "
        yield Text(shown, style=style) + ui.plain(one["query"]) + Text(f"  ({one['origin']})", style="dim")
        for other in one["before"]:
            yield ui.plain(f"  {other['place']}. {other['id']}: {'; '.join(other['why'])}", "dim")
    if not report["queries"]:
        yield Text("No queries to try: add examples or a description.", style="yellow")
    yield from (ui.plain(f"Without {reason}", "dim") for reason in report["without"])


def _text(value: object) -> object:
    return "\n".join(map(str, value)) if isinstance(value, list | tuple) else "none" if value is None else value
