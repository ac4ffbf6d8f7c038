"""The commands of operators: `mats trust`, `review` and `teach`."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer
from rich.text import Text

from mats.bootstrap import open_system
from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id, parts
from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault, NotPossible, RequestInvalid
from mats.domain.profile.assignment import (
    MAX_PROVIDER,
    NOTHING_ASSIGNED,
    Assigned,
    Policy,
    is_provider,
    namespace_of_pattern,
)
from mats.domain.profile.origin import fingerprint
from mats.domain.text.words import clip
from mats.local.cli import output as ui
from mats.local.cli.indexing import index, settle
from mats.local.cli.registry import get_item, target_key
from mats.local.review import WAITS, decide, waiting


def trust(
    context: typer.Context,
    target: Annotated[
        str,
        ui.argument(
            "namespace/name, or a namespace and all below it: 'com.acme.*'; with --clear-flags also a source's name.",
            metavar="ID",
        ),
    ],
    value: Annotated[
        str | None, ui.argument("0 (none) to 100 (full), or `none` to withdraw all of it.", metavar="[N]")
    ] = None,
    provider: Annotated[
        str | None, ui.option("The provider verified for a namespace; '' withdraws it.", metavar="NAME")
    ] = None,
    clear_flags: Annotated[
        bool, ui.option("The text as it stands is not suspicious; hidden text only by its own ID.", "--clear-flags")
    ] = False,
) -> None:
    """Assign trust to a capability or a namespace, and a verified provider to a namespace; owners cannot.

    The trust of a namespace is for capabilities without trust of their own. The nearest namespace counts. `none`
    brings cleared flags back, too.
    """
    local = local_system(context.obj)
    if clear_flags:
        _clear(local, target)
        if value is None and provider is None:
            return
    key = target_key(target)
    namespace, before = namespace_of_pattern(key), local.stores.trust.rows([key]).get(key, NOTHING_ASSIGNED)
    change = _parse_change(value, provider)
    if namespace is None and provider is not None:
        message = f"a provider is verified for a namespace, not for a capability: name '{key.partition('/')[0]}.*'"
        raise RequestInvalid([Fault("--provider", message)])
    count, assigned = _assign(local, key, change)
    if namespace is None:
        given = "trust withdrawn" if assigned.trust is None else f"trust {assigned.trust}"
        back = "; cleared flags are back" if before.cleared and not assigned.cleared else ""
        ui.show({"id": key, "trust": assigned.trust, "cleared": bool(assigned.cleared)}, f"{key}: {given}{back}")
        return
    parts = [f"trust {assigned.trust}"] if assigned.trust is not None else []
    parts += [f"verified provider {assigned.provider}"] if assigned.provider else []
    later = " today; it counts for those registered later" if parts and not count else ""
    concerned = f"{ui.count_of(count, 'capability', 'capabilities')}{later}"
    outcome = {
        "namespace": f"{namespace}.*",
        "trust": assigned.trust,
        "provider": assigned.provider or None,
        "capabilities": count,
    }
    ui.show(outcome, f"{namespace}.*: {', '.join(parts) or 'trust and provider withdrawn'}; {concerned}")


def _clear(local: LocalSystem, target: str) -> None:
    """Clear the flags of a capability's text, or of all texts but hidden ones in a namespace or of a source."""
    registry, profiles, trust = local.stores.registry, local.stores.profiles, local.stores.trust
    tracked = [] if "/" in target else sorted(local.stores.sources.entries(target))
    key = Id(target) if tracked else target_key(target)
    namespace = namespace_of_pattern(key)
    by_itself = not (tracked or namespace)
    if by_itself:
        get_item(local, key)
    items, hidden, held = dict[Id, Mapping[str, Any]](), list[Id](), list[Id]()
    for id in [key] if by_itself else tracked or registry.ids(namespace=namespace or ""):
        stored = profiles.get([id]).get(id)
        flags = stored.profile.suspicious if stored else ()
        if stored and stored.profile.held_now:
            held.append(id)
        elif not by_itself and any("[hidden" in flag for flag in flags):
            hidden.append(id)
        elif flags:
            items |= registry.get([id])
    if by_itself and held:
        raise NotPossible([Fault("", WAITS.format(key))])
    for id, item in items.items():
        digest = fingerprint(Registration.parse(item).item())
        trust.edit(id, partial(replace, cleared=digest))
    settle(local, *items)
    text = f"{target}: flags of {ui.count_of(len(items), 'text')} cleared, each until it changes"
    text = text if items or hidden or held else f"{target}: nothing there is flagged"
    ui.show({"target": target, "cleared": list(items), "hidden": hidden, "held": held}, text)
    for id in held:
        ui.note(WAITS.format(id))
    for id in hidden:
        ui.note(f"{id} has hidden text: read `mats show {id}`, and clear it by its own id")


def _assign(local: LocalSystem, key: Id, change: Callable[[Assigned], Assigned]) -> tuple[int, Assigned]:
    """Change a row of trust, and wait until what it concerns is processed; the number of capabilities, and the row."""
    namespace = namespace_of_pattern(key)
    if namespace is None and not local.stores.trust.rows([key]):  # that of a removed one can be withdrawn
        get_item(local, key)
    assigned = local.stores.trust.edit(key, change)
    ids = [key] if namespace is None else list(local.stores.registry.ids(namespace=namespace))
    if namespace is not None:
        index(local)
    settle(local, *ids)
    return len(ids), assigned


def _parse_change(value: str | None, provider: str | None) -> Callable[[Assigned], Assigned]:
    """Parse the arguments into a change of a row, which keeps what they do not name."""
    if value is None and provider is None:
        raise typer.BadParameter("give N, a number from 0 to 100 or none; --provider for a namespace; or --clear-flags")
    if provider and not is_provider(provider):
        message = f"must be a name of at most {MAX_PROVIDER} visible characters on one line; not {provider[:60]!r}"
        raise RequestInvalid([Fault("--provider", message)])
    if value == "none":
        if provider:
            message = "cannot go with `none`, which withdraws the provider, too; leave one of them out"
            raise RequestInvalid([Fault("--provider", message)])
        return Assigned.withdraw
    if value is not None and not (value.isascii() and value.isdigit() and int(value) <= 100):
        raise RequestInvalid([Fault("trust", f"must be a whole number from 0 to 100, or none; not {value!r}")])
    given: dict[str, Any] = {} if value is None else {"trust": int(value)}
    given |= {} if provider is None else {"provider": provider.strip()}
    return partial(replace, **given)


_LONGEST = 600
_STAYS = "; its text stays the registration, and can still be approved: register the earlier text to give it up"


def review(
    context: typer.Context,
    target: Annotated[str, ui.argument("namespace/name, or a namespace: 'com.acme.*'.", metavar="[ID]")] = "",
    approve: Annotated[bool, ui.option("Show the held version of ID from now on.", "--approve")] = False,
    reject: Annotated[bool, ui.option("Keep the version that is shown.", "--reject")] = False,
    policy: Annotated[
        Policy | None,
        ui.option("What waits in a namespace: dangerous changes of rated entries, all changes, or nothing."),
    ] = None,
) -> None:
    """Show the changes that wait for an operator, and decide about them.

    A dangerous change of a rated capability is held: another server or command, a lost safety hint, text that is
    suspicious, another meaning. Until it is approved, the version approved last is found.
    """
    if approve + reject + (policy is not None) > 1 or (not target and (approve or reject or policy)):
        raise typer.BadParameter("give ID with one of --approve, --reject and --policy")
    if (approve or reject) and target.endswith(".*"):
        raise typer.BadParameter("--approve and --reject are for one ID: decide about each change by itself")
    local = local_system(context.obj, create=False)
    if policy:
        key = target_key(target)
        was_held = local.stores.listing.list_held()
        _assign(local, key, partial(replace, policy=policy))
        published = sorted({*was_held} - {*local.stores.listing.list_held()})
        text = f"; {len(published):,} that waited are shown now" if published else ""
        ui.show({"target": target, "policy": policy, "published": published}, f"{target}: policy {policy}{text}")
        return
    if not target or target.endswith(".*"):
        below = target.removesuffix("*")
        held = [one for one in waiting(local) if f"{parts(one['id'])[0]}.".startswith(below)]
        rows = {f"{namespace}.*": row for namespace, row in local.stores.trust.namespaces().items()}
        policies = {name: str(row.policy) for name, row in rows.items() if row.policy and name.startswith(below)}
        said = (f"{name}: policy {each}" for name, each in policies.items())
        ui.show({"waiting": held, "policies": policies}, _lines(held), said)
        return
    held = waiting(local, [Id(target)])
    if not held:
        get_item(local, Id(target))
        ui.show({"id": target, "held": False}, f"{target}: nothing waits")
        return
    if approve or reject:
        decide(local, Id(target), held[0]["digest"], approve=approve)
        settle(local, Id(target))
        word = "approved" if approve else "rejected"
        more = ", which was rejected before" if approve and held[0]["rejected"] else "" if approve else _STAYS
        ui.show({"id": target, "decision": word, "digest": held[0]["digest"]}, f"{target}: {word}{more}")
    else:
        ui.show({"waiting": held}, _lines(held))


def _lines(held: list[dict[str, Any]]) -> ui.Lines:
    for one in held:
        since = f"held since {one['since']}" + (", rejected" if one["rejected"] else "")
        shown = f"shown is the version of {one['approved']}" if one["approved"] else "nothing is shown"
        yield Text(str(one["id"]), style="bold cyan") + ui.plain(f"  {since}; {shown}")
        for words in one["changes"]:
            yield ui.plain(f"  {words}", "red" if words.startswith("dangerous") else "")
        for field in one["fields"]:
            for sign, side, style in (("-", "shown", "dim"), ("+", "held", "")):
                yield ui.plain(f"    {sign} {field['field']}: {clip(field[side], _LONGEST)}", style)
    if not held:
        yield "Nothing waits."


def teach(
    context: typer.Context,
    request: Annotated[str, ui.argument("What callers ask, in their words.", metavar="[REQUEST]")] = "",
    id: Annotated[str, ui.argument("The capability that serves it.", metavar="[ID]")] = "",
    list_: Annotated[bool, ui.option("Show what is taught.", "--list")] = False,
    forget: Annotated[bool, ui.option("Withdraw what is taught for REQUEST.", "--forget")] = False,
) -> None:
    """Teach which capability serves a request: it comes first there, and higher for requests that are nearly the same.

    It need not have been among the results. Another ID replaces it. What is taught outlives every sync.
    """
    if (bool(request), bool(id)) != (not list_, not (list_ or forget)):
        raise typer.BadParameter("give REQUEST and ID, or --forget REQUEST, or --list")
    with closing(open_system(context.obj, create=False)) as system:
        if list_:
            lessons = system.teach.lessons()
            asleep = "  (asleep: its text was replaced or removed since; teach it again)"
            lines = (ui.plain(f"{one.id}  {' '.join(one.request.split())}{asleep * one.asleep}") for one in lessons)
            ui.show([one._asdict() for one in lessons], lines)
        elif forget:
            if not system.teach.forget(request):
                raise NotPossible([Fault("", f"nothing is taught for {request[:80]!r}: see `mats teach --list`")])
            ui.show({"request": request, "id": None}, f"{request!r}: no longer taught")
        else:
            system.teach(request, Id(id))
            ui.show({"request": request, "id": id}, f"{request!r}: {id} comes first")
