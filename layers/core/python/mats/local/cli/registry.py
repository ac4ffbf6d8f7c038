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
"""How long a command waits for a running service to finish what both could have done."""
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
    name: Annotated[str | None, typer.Option(help="What it is called, in 1 to 200 characters.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="What it is.")] = None,
    description: Annotated[str | None, typer.Option(help="What it does.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Where it is called.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be given several times.")] = None,
    type_tag: Annotated[
        list[str] | None, typer.Option(help="A type of capability, such as payments; may be given several times.")
    ] = None,
    example: Annotated[list[str] | None, typer.Option(help="A request it serves; may be given several times.")] = None,
    as_json: AsJson = False,
) -> None:
    """Register one capability, from a file, standard input or options, and make it findable.

    Namespace, name and kind are required. With a file, options replace what it says.
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
    """Have the changes of a capability handled, here or by a service that is running.

    Raises:
        DependencyFailed: they are safe, but could not be handled yet.
    """
    waited_s = 0.0  # for others; what is handled here takes the time it takes
    while True:
        drain(local, stopped=lambda: not local.stores.queue.has_unfinished(id))
        if not local.stores.queue.has_unfinished(id):
            return
        if waited_s >= _SETTLE_S:
            raise DependencyFailed(f"{id}: the change is safe but not findable yet; `mats reconcile` tries again")
        time.sleep(_PAUSE_S)
        waited_s += _PAUSE_S


def index(local: LocalSystem) -> int:
    """Make everything announced findable; how many changes that took."""
    handled = 0
    with bar("Indexing", local.stores.queue.depth().waiting) as advance:

        def count(done: int) -> None:
            nonlocal handled
            handled += done
            advance(done)

        drain(local, count)
    return handled


def remove(context: typer.Context, id: CapabilityId, as_json: AsJson = False) -> None:
    """Take a capability out of the registry and the index; its versions are kept."""
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
    value: Annotated[str, typer.Argument(metavar="N", help="0 (none) to 100 (full), or `none` to take it back.")],
    as_json: AsJson = False,
) -> None:
    """Say as an operator how far a capability is to be trusted; owners cannot."""
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
            out.print(plain(f"{id}: trust {'taken back' if given is None else given}"))


def _trust(text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= 100):
        raise RequestInvalid([Fault("N", f"must be a whole number from 0 to 100, or none; not {text!r}")])
    return int(text)
