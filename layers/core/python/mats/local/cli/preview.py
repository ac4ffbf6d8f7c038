"""`mats preview`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from mats.bootstrap.local import Local
from mats.domain.advice import Advice, Weight
from mats.domain.capability import Id
from mats.domain.errors import CapabilityNotFound, Fault, RequestInvalid
from mats.domain.registration import Registration
from mats.local.cli.console import AsJson, Exit, exit_codes, out, plain, print_json
from mats.local.cli.spending import show_spent, spent_json
from mats.local.imports import addresses
from mats.local.imports.dry_run import DryRunRegistry
from mats.local.imports.importer import Importer
from mats.local.imports.sources import open_sources
from mats.local.outlook import told
from mats.settings import Settings
from mats.usecases.preview import TWIN_COSINE, TWIN_OVERLAP, Outlook, Preview, Prospect

_STYLES = {Weight.MUST: "bold red", Weight.SHOULD: "yellow", Weight.COULD: "dim"}


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(preview)


def preview(
    context: typer.Context,
    item: Annotated[str, typer.Argument(help="A file of any format, an address, - for standard input, or an ID.")],
    name: Annotated[str, typer.Option(help="Which one, if the file holds several.", show_default=False)] = "",
    namespace: Annotated[
        str, typer.Option(help="The namespace it would be under, whatever the file says.", show_default=False)
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show what would become of a registration, and what to mend before it is made. Nothing is kept.

    The profile it would get; the queries that would find it, from its own examples or derived from its text, and at
    which place; who stands before it and why; what is much like it; and what to do. The judge is not asked.
    """
    with exit_codes():
        settings: Settings = context.obj
        local = Local(settings)
        registration = _chosen(_registrations(item, namespace, local), name)
        discover, enrich = local.discover, local.enrich
        previewed = Preview(discover=discover, enrich=enrich, registry=local.registry, trust=local.trust)
        outlook = previewed(registration, settings.audiences)
        if as_json:
            print_json({**told(outlook), **spent_json(local)})
        else:
            _show(outlook)
            show_spent(local)
    if any(one.weight is Weight.MUST for one in outlook.advice):
        raise typer.Exit(Exit.REFUSED)


def _registrations(item: str, namespace: str, local: Local) -> list[Registration]:
    """What a file, an address or standard input holds, or what is registered under an id.

    Raises:
        RequestInvalid: it holds none that can be registered; every reason is named.
        CapabilityNotFound: it is neither a file nor an id.
        RegistrationInvalid: what is registered under the id breaks the contract.
    """
    if item != "-" and not addresses.is_address(item) and not _is_there(item):
        kept = local.registry.get([Id(item)]).get(Id(item))
        if kept is None:
            raise CapabilityNotFound(item)
        return [Registration.parse(kept)]
    registry = DryRunRegistry()
    importer = Importer(registry)
    importer.import_sources(open_sources(item, namespace))
    if not registry.items:
        faults = [
            Fault(":".join(filter(None, (row.place.where, fault.attribute))), fault.message)
            for row in importer.report.rejected
            for fault in row.faults
        ]
        raise RequestInvalid(faults or [Fault(item, "holds nothing that could be registered")])
    return [Registration.parse(kept) for kept in registry.items.values()]


def _is_there(item: str) -> bool:
    try:
        return Path(item).exists()
    except (OSError, ValueError):
        return False


def _chosen(registrations: list[Registration], name: str) -> Registration:
    wanted = [r for r in registrations if name in ("", r.name, r.id)]
    if len(wanted) == 1:
        return wanted[0]
    names = ", ".join(r.name for r in registrations[:20]) + (" …" if len(registrations) > 20 else "")
    problem = "holds several" if wanted else f"holds no {name!r}"
    raise RequestInvalid([Fault("--name", f"the file {problem}: say which one of {names}")])


def _show(outlook: Outlook) -> None:
    profile = outlook.profile
    out.print(plain(f"{profile.id}  {profile.kind}, would be {outlook.placed}"), style="bold cyan")
    _show_profile(outlook)
    for one in outlook.prospects:
        _show_prospect(one)
    if not outlook.prospects:
        out.print("No query to try: it has no examples, and says nothing that one could be made of.", style="yellow")
    if outlook.twins:
        limits = f"cosine of {TWIN_COSINE} or {TWIN_OVERLAP:.0%} of the words"
        out.print(f"Much like it (from a {limits}):", style="bold")
        for twin in outlook.twins:
            near = "" if twin.cosine is None else f"cosine {twin.cosine:.2f}, "
            out.print(plain(f"  {twin.id}: {near}{twin.overlap:.0%} of the words"), soft_wrap=True)
    out.print("To mend:" if outlook.advice else "Nothing to mend.", style="bold")
    for one_advice in outlook.advice:
        out.print(_advised(one_advice), soft_wrap=True)
    for reason in outlook.without:
        out.print(plain(f"Without {reason}"), style="dim", soft_wrap=True)


def _show_profile(outlook: Outlook) -> None:
    written = outlook.profile.enrichment
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    table.add_row("described by", plain(outlook.described_by))
    for key, value in written.model_dump().items():
        text = value if isinstance(value, str) else "\n".join(value)
        if text:
            table.add_row(key.replace("_", " "), plain(text))
    table.add_row("trust", "none given" if outlook.profile.trust is None else str(outlook.profile.trust))
    out.print(table)


def _show_prospect(one: Prospect) -> None:
    place = f"place {one.place} of {one.looked_at}" if one.place else f"not among the first {one.looked_at}"
    if one.unaided != one.place:
        place += f", {one.unaided or 'none'} without this example"
    style = "green" if one.place == 1 else "yellow" if one.place else "red"
    out.print(
        Text(f"{place}  ", style=style) + plain(one.query) + Text(f"  ({one.origin})", style="dim"), soft_wrap=True
    )
    for rival in one.rivals:
        out.print(plain(f"  {rival.place}. {rival.id}: {'; '.join(rival.why)}"), style="dim", soft_wrap=True)


def _advised(one: Advice) -> Text:
    return Text(f"  {one.flag}: ", style=_STYLES[one.weight]) + plain(f"{one.what}; {one.fix}")
