"""`mats token`: who may use the service, and for what."""

import re
from typing import Annotated

import typer

from mats.bootstrap.local import SystemClock, local_system
from mats.domain.errors import Fault, RequestInvalid
from mats.edge.routes import TokenScope
from mats.local.cli.output import AsJson, note, plain, print_result, table_of
from mats.local.tokens import TokenBook

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Who or what has it, such as `ci`.")]

commands = typer.Typer(
    name="token",
    help="Manage the tokens of `mats serve`: read, report, write, operate; each scope includes those before it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@commands.command("add")
def add_token(
    context: typer.Context,
    name: _TokenName,
    scope: Annotated[TokenScope, typer.Option(help="What it may do.")],
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, once: only its hash is stored."""
    if not _NAME.fullmatch(name):
        raise RequestInvalid([Fault("NAME", "must be 1 to 64 of a-z, 0-9, `.`, `_` and `-`, a letter or digit first")])
    local_system(context.obj).close()  # makes the folder
    token = TokenBook(context.obj.home).add(name, scope, SystemClock().now())
    print_result({"name": name, "scope": scope, "token": token}, token, as_json=as_json)
    note(f"{name} may {scope.allows}. This is the only time that its token is shown.")


@commands.command("list")
def list_tokens(context: typer.Context, as_json: AsJson = False) -> None:
    """Show the name, the scope and the age of every token."""
    tokens = TokenBook(context.obj.home).all()
    rows = table_of("token", "scope", "made")
    for one in tokens:
        rows.add_row(*map(plain, (one.name, one.scope, one.made)))
    shown = rows if tokens else "No tokens yet: `mats token add` makes one."
    print_result([{"name": one.name, "scope": one.scope, "made": one.made} for one in tokens], shown, as_json=as_json)


@commands.command("revoke")
def revoke_token(context: typer.Context, name: _TokenName, as_json: AsJson = False) -> None:
    """Withdraw a token: running services refuse it at once."""
    TokenBook(context.obj.home).revoke(name)
    print_result({"name": name, "revoked": True}, f"{name}: revoked", as_json=as_json)
