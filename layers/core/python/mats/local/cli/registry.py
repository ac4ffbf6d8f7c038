"""The commands that change the registry."""

import time
from typing import Annotated, Any

import typer

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability import Id, Kind
from mats.domain.errors import CapabilityNotFound, DependencyFailed, Fault, KindConflict, RequestInvalid
from mats.domain.placement import Placed
from mats.domain.registration import Registration
from mats.local.cli.output import AsJson, CapabilityId, exit_codes, out, plain, print_json
from mats.local.cli.progress import bar
from mats.local.cli.spending import print_usage, usage_json
from mats.local.imports.files import open_file
from mats.local.imports.formats.registrations import parse_row
from mats.local.imports.lines import MAX_LINE_BYTES, parse_line
from mats.local.worker import drain

_SETTLE_S = 10
"""Timeout for a running service that processes the same change."""
_PAUSE_S = 0.05


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(add)
    app.command()(remove)
    app.command()(trust)


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
    with exit_codes():
        registration = _one(file, {key: value for key, value in given.items() if value})
        local = local_system(context.obj)
        placed = local.stores.registry.put([registration])[registration.id]
        if placed is Placed.OTHER_KIND:
            raise KindConflict(registration.id)
        _settle(local, registration.id)
        if as_json:
            print_json({"id": registration.id, "placed": placed, **usage_json(local)})
        else:
            out.print(plain(f"{registration.id}: {placed}, findable now"))
            print_usage(local)


def _one(file: str | None, given: dict[str, Any]) -> Registration:
    if file is None and not given:
        raise RequestInvalid([Fault("", "give a file, or --namespace, --name and --kind; see `mats add --help`")])
    if file is None:
        return Registration.parse(given)
    with open_file(file) as stream:
        item = parse_row(parse_line(stream.read(MAX_LINE_BYTES + 1)))
    return Registration.parse({**item.item(), **given}) if given else item


def _settle(local: LocalSystem, id: Id) -> None:
    """Process the changes of a capability, or wait for a running service that does.

    Raises:
        DependencyFailed: they are saved, but could not be processed yet.
    """
    waited_s = 0.0  # for the other process; changes processed here have no timeout
    while True:
        drain(local, stopped=lambda: not local.stores.queue.has_unfinished(id))
        if not local.stores.queue.has_unfinished(id):
            return
        if waited_s >= _SETTLE_S:
            raise DependencyFailed(f"{id}: the change is saved but not findable yet: run `mats reconcile`")
        time.sleep(_PAUSE_S)
        waited_s += _PAUSE_S


def index(local: LocalSystem) -> int:
    """Drain the event queue with a progress bar; the number of changes processed."""
    processed = 0
    with bar("Indexing", local.stores.queue.depth().waiting) as advance:

        def count_batch(size: int) -> None:
            nonlocal processed
            processed += size
            advance(size)

        drain(local, count_batch)
    return processed


def remove(context: typer.Context, id: CapabilityId, as_json: AsJson = False) -> None:
    """Remove a capability from the registry and the index. Its versions remain."""
    with exit_codes():
        local = local_system(context.obj)
        if not local.stores.registry.remove(Id(id)):
            raise CapabilityNotFound(id)
        _settle(local, Id(id))
        if as_json:
            print_json({"id": id, "removed": True})
        else:
            out.print(plain(f"{id}: removed"))


def trust(
    context: typer.Context,
    id: CapabilityId,
    value: Annotated[str, typer.Argument(metavar="N", help="0 (none) to 100 (full), or `none` to withdraw it.")],
    as_json: AsJson = False,
) -> None:
    """Assign trust to a capability, as an operator; owners cannot."""
    with exit_codes():
        given = _trust(value)
        local = local_system(context.obj)
        if Id(id) not in local.stores.registry.get([Id(id)]):
            raise CapabilityNotFound(id)
        local.stores.trust.put(Id(id), given)
        _settle(local, Id(id))
        if as_json:
            print_json({"id": id, "trust": given})
        else:
            out.print(plain(f"{id}: trust {'withdrawn' if given is None else given}"))


def _trust(text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= 100):
        raise RequestInvalid([Fault("N", f"must be a whole number from 0 to 100, or none; not {text!r}")])
    return int(text)
