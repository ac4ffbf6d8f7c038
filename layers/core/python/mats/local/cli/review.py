"""`mats review`."""

from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.text import Text

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.capability.capability import Id
from mats.domain.profile.assignment import NOTHING_ASSIGNED, Policy, namespace_of_pattern
from mats.domain.text.words import clip
from mats.local.cli.indexing import index, settle
from mats.local.cli.output import AsJson, out, plain, print_json, print_result
from mats.local.cli.registry import get_item, target_key
from mats.local.review import decide, waiting

_LONGEST = 600


def review(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="[ID]", help="namespace/name, or a namespace for --policy: 'com.acme.*'.")
    ] = "",
    approve: Annotated[bool, typer.Option("--approve", help="Show the held version of ID from now on.")] = False,
    reject: Annotated[bool, typer.Option("--reject", help="Keep the version that is shown.")] = False,
    policy: Annotated[
        Policy | None,
        typer.Option(help="What waits in a namespace: dangerous changes of rated entries, all changes, or nothing."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the changes that wait for an operator, and decide about them.

    A dangerous change of a rated capability is held: another server or command, a lost safety hint, text that is
    suspicious, another meaning. Until it is approved, the version approved last is found.
    """
    if approve + reject + (policy is not None) > 1 or (not target and (approve or reject or policy)):
        raise typer.BadParameter("give ID with one of --approve, --reject and --policy")
    local = local_system(context.obj, create=False)
    if policy:
        _set_policy(local, target, policy, as_json=as_json)
        return
    held = waiting(local, [Id(target)] if target else ())
    if target and not held:
        get_item(local, Id(target))
        print_result({"id": target, "held": False}, f"{target}: nothing waits", as_json=as_json)
        return
    if approve or reject:
        decide(local, Id(target), held[0]["digest"], approve=approve)
        settle(local, Id(target))
        word = "approved" if approve else "rejected"
        print_result(
            {"id": target, "decision": word, "digest": held[0]["digest"]}, f"{target}: {word}", as_json=as_json
        )
    elif as_json:
        print_json({"waiting": held})
    else:
        _show(held)


def _show(held: list[dict[str, Any]]) -> None:
    for one in held:
        since = f"held since {one['since']}" + (", rejected" if one["rejected"] else "")
        shown = f"shown is the version of {one['approved']}" if one["approved"] else "nothing is shown"
        out.print(Text(str(one["id"]), style="bold cyan") + plain(f"  {since}; {shown}"), soft_wrap=True)
        for words in one["changes"]:
            out.print(plain(f"  {words}", style="red" if words.startswith("dangerous") else ""), soft_wrap=True)
        for field in one["fields"]:
            for sign, side, style in (("-", "shown", "dim"), ("+", "held", "")):
                line = f"    {sign} {field['field']}: {clip(field[side], _LONGEST)}"
                out.print(plain(line, style=style), soft_wrap=True)
    if not held:
        out.print("Nothing waits.")


def _set_policy(local: LocalSystem, target: str, policy: Policy, *, as_json: bool) -> None:
    key = target_key(target)
    before = local.stores.trust.rows([key]).get(key, NOTHING_ASSIGNED)
    local.stores.trust.put(key, replace(before, policy=policy))
    namespace = namespace_of_pattern(key)
    index(local)
    settle(local, *([key] if namespace is None else local.stores.registry.ids(namespace=namespace)))
    print_result({"target": target, "policy": policy}, f"{target}: policy {policy}", as_json=as_json)
