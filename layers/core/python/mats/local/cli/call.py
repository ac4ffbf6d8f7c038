"""`mats call`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from mats.bootstrap.local import local_system
from mats.client.calls import Called, Caller
from mats.domain.capability.capability import Id
from mats.domain.errors import Fault, RequestInvalid
from mats.domain.protocols.addresses import AddressRefused, Unfetchable
from mats.domain.protocols.catalogue import from_text
from mats.edge.http import local_caller
from mats.local.cli.output import AsJson, CapabilityId, Exit, err, note, out, parse_object, plain, print_json


def call(
    context: typer.Context,
    id: CapabilityId,
    input: Annotated[
        str, typer.Option(help="JSON of the input, by the capability's input schema; @FILE, or - for standard input.")
    ] = "{}",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the request, and send nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Start the owner's command without a question.")] = False,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A placeholder in braces of the invocation, or a header."),
    ] = None,
    tool: Annotated[str, typer.Option(help="Of an MCP server that is registered as a whole.", show_default=False)] = "",
    private: Annotated[
        bool, typer.Option("--private", help="The address may be of this machine or of a private network.")
    ] = False,
    timeout: Annotated[float, typer.Option(help="Seconds of the call.", min=0.1)] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Call a capability with an input. Its invocation and its answer are its owner's text.

    Credentials are read from variables that end in the host, such as API_TOKEN_API_STRIPE_COM; --dry-run names them.
    """
    local = local_system(context.obj, create=False)
    profile = local.application.get_or_suggest(local_caller(local.settings), Id(id))
    given = dict(_pair(one) for one in values or ())
    caller = Caller(
        values=given, private=private, timeout_s=timeout, may_run=lambda command: _confirm(command, yes=yes)
    )
    invocation, arguments = from_text(profile.invocation), _parse(input)
    if dry_run:
        print_json(caller.prepare(invocation, arguments, tool=tool).shown)
        return
    for reason in profile.suspicious:
        note(f"suspicious: {reason}")
    try:
        called = caller(invocation, arguments, tool=tool)
    except Unfetchable as error:
        if private or not isinstance(error.__cause__, AddressRefused):
            raise
        raise RequestInvalid([*error.faults, Fault("--private", "allows it, if you trust the owner")]) from error
    _show(called, as_json=as_json)
    if not called.ok:
        raise typer.Exit(Exit.REFUSED)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise typer.BadParameter("must be NAME=VALUE", param_hint="--set")
    return name, value


def _parse(text: str) -> Mapping[str, Any]:
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"cannot be read: {error}", param_hint="--input") from error
    return parse_object(text, "--input")


def _confirm(command: str, *, yes: bool) -> bool:
    """Show the command that an owner chose, and ask whether it may run."""
    err.print(plain(f"starts: {command}"), soft_wrap=True)
    return yes or (sys.stdin.isatty() and typer.confirm("Run this program of its owner?", err=True))


def _show(called: Called, *, as_json: bool) -> None:
    if as_json:
        print_json({"ok": called.ok, "status": called.status, "content": called.content})
    elif isinstance(called.content, str):
        out.print(plain(called.content), soft_wrap=True)
    else:
        print_json(called.content)
    if not called.ok:
        note(f"the call failed{f' with status {called.status}' if called.status else ''}")
