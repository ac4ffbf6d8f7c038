"""`mats trust`, `mats pin` and `mats unpin`."""

from dataclasses import replace
from typing import Annotated

import typer

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.profile.assignment import (
    MAX_PINNED,
    MAX_PROVIDER,
    NOTHING_ASSIGNED,
    Assigned,
    is_provider,
    namespace_of_pattern,
)
from mats.domain.profile.origin import fingerprint
from mats.edge.http import local_caller
from mats.local.cli.indexing import index, settle
from mats.local.cli.output import AsJson, CapabilityId, print_result
from mats.local.cli.registry import get_item, target_key


def trust(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="ID", help="namespace/name, or a namespace and all below it: 'com.acme.*'.")
    ],
    value: Annotated[
        str | None, typer.Argument(metavar="[N]", help="0 (none) to 100 (full), or `none` to withdraw all of it.")
    ] = None,
    provider: Annotated[
        str | None, typer.Option(metavar="NAME", help="The provider verified for a namespace; '' withdraws it.")
    ] = None,
    clear_flags: Annotated[
        bool, typer.Option("--clear-flags", help="The text of a capability is not suspicious; until it changes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Assign trust to a capability or a namespace, and a verified provider to a namespace; owners cannot.

    The trust of a namespace is for capabilities without trust of their own. The nearest namespace counts. `none`
    brings cleared flags back, too.
    """
    key = target_key(target)
    local = local_system(context.obj)
    namespace, before = namespace_of_pattern(key), local.stores.trust.rows([key]).get(key, NOTHING_ASSIGNED)
    if clear_flags:
        before = replace(before, cleared=fingerprint(Registration.parse(get_item(local, key)).item()))
    assigned = before if clear_flags and value is None and provider is None else _change(before, value, provider)
    if namespace is None:
        _assign_to_capability(local, key, assigned, provider, as_json=as_json)
    else:
        _assign_to_namespace(local, namespace, key, assigned, as_json=as_json)


def pin(
    context: typer.Context,
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="namespace/name; without one, list the pins.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Put a capability among the tools of every answer with a `format`, or list those that are."""
    local = local_system(context.obj)
    pinned = [profile.id for profile in local.application.pins(local_caller(local.settings))]
    if id is None:
        print_result({"pinned": pinned}, "\n".join(pinned) or "nothing is pinned", as_json=as_json)
        return
    if id not in pinned and len(pinned) >= MAX_PINNED:
        message = f"there are {MAX_PINNED} pins already, which every answer carries: unpin one first"
        raise RequestInvalid([Fault("ID", message)])
    _pin(local, Id(id), pinned=True, as_json=as_json)


def unpin(context: typer.Context, id: CapabilityId, as_json: AsJson = False) -> None:
    """Take back a pin."""
    _pin(local_system(context.obj), Id(id), pinned=False, as_json=as_json)


def _pin(local: LocalSystem, id: Id, *, pinned: bool, as_json: bool) -> None:
    get_item(local, id)
    before = local.stores.trust.rows([id]).get(id, NOTHING_ASSIGNED)
    local.stores.trust.put(id, replace(before, pinned=pinned))
    settle(local, id)
    print_result({"id": id, "pinned": pinned}, f"{id}: {'pinned' if pinned else 'not pinned'}", as_json=as_json)


def _change(before: Assigned, value: str | None, provider: str | None) -> Assigned:
    """A row after a change; what the command does not name stays."""
    if value is None and provider is None:
        raise typer.BadParameter(
            "give N, a number from 0 to 100 or none; --provider for a namespace; or --clear-flags for a capability"
        )
    if provider and not is_provider(provider):
        message = f"must be a name of at most {MAX_PROVIDER} visible characters on one line; not {provider[:60]!r}"
        raise RequestInvalid([Fault("--provider", message)])
    if value == "none":
        if provider:
            message = "cannot go with `none`, which withdraws the provider, too; leave one of them out"
            raise RequestInvalid([Fault("--provider", message)])
        return replace(NOTHING_ASSIGNED, pinned=before.pinned)
    after = before if value is None else replace(before, trust=_number(value))
    return after if provider is None else replace(after, provider=provider.strip())


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 100):
        raise RequestInvalid([Fault("N", f"must be a whole number from 0 to 100, or none; not {text!r}")])
    return int(text)


def _assign_to_capability(
    local: LocalSystem, id: Id, assigned: Assigned, provider: str | None, *, as_json: bool
) -> None:
    if provider is not None:
        message = f"a provider is verified for a namespace, not for a capability: name '{id.partition('/')[0]}.*'"
        raise RequestInvalid([Fault("--provider", message)])
    get_item(local, id)
    local.stores.trust.put(id, assigned)
    settle(local, id)
    trust = "withdrawn" if assigned.trust is None else assigned.trust
    text = f"{id}: trust {trust}" + (", flags of this text cleared" if assigned.cleared else "")
    print_result({"id": id, "trust": assigned.trust, "cleared": bool(assigned.cleared)}, text, as_json=as_json)


def _assign_to_namespace(local: LocalSystem, namespace: str, key: Id, assigned: Assigned, *, as_json: bool) -> None:
    local.stores.trust.put(key, assigned)
    ids = list(local.stores.registry.ids(namespace=namespace))
    index(local)
    settle(local, *ids)
    parts = [f"trust {assigned.trust}"] if assigned.trust is not None else []
    parts += [f"verified provider {assigned.provider}"] if assigned.provider else []
    count = f"{len(ids):,} {'capability' if len(ids) == 1 else 'capabilities'}"
    outcome = {
        "namespace": f"{namespace}.*",
        "trust": assigned.trust,
        "provider": assigned.provider or None,
        "capabilities": len(ids),
    }
    text = f"{namespace}.*: {', '.join(parts) or 'trust and provider withdrawn'}; {count}"
    print_result(outcome, text, as_json=as_json)
