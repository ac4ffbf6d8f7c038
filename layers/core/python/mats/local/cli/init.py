"""`mats init`: the servers of the configurations of MCP clients on this machine, as sources."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from mats.bootstrap.local import source_book
from mats.domain.errors import Invalid
from mats.domain.profile.sync import SourceKind, TrackedSource
from mats.domain.protocols.mcp_server import McpStdio, server_of
from mats.domain.protocols.protocol import Json, join_labels, to_label
from mats.edge.snippets.programs import json_text
from mats.local.cli.output import Exit, complain, note, out, plain, program, table_of
from mats.local.cli.sync import sync
from mats.local.imports.importer import check_namespace
from mats.settings import Settings, variable_of

_PROJECT = (("claude-code", ".mcp.json"), ("cursor", ".cursor/mcp.json"), ("vscode", ".vscode/mcp.json"))
_DESKTOP = "Claude/claude_desktop_config.json"
_USER = (
    ("cursor", ".cursor/mcp.json"),
    *(("claude-desktop", f"{at}/{_DESKTOP}") for at in ("Library/Application Support", ".config", "AppData/Roaming")),
)
_TYPED = ("claude-code", "vscode")  # Clients whose entries say their type
_NAMESPACE = "local"


class _Client(NamedTuple):
    name: str
    file: Path
    servers: Mapping[str, Json]  # Those to ask, neither disabled nor mats itself
    has_mats: bool


def init(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="The folder of a project.", exists=True, file_okay=False)] = Path(),
    namespace: Annotated[
        str, typer.Option(help="Register each server below this namespace.", show_default=_NAMESPACE)
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Start and ask the servers without a question.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be started and asked.")] = False,
) -> None:
    """Register the servers of your MCP clients, each with its tools, and print how to add mats to these clients.

    Looks for `.mcp.json`, `.cursor/mcp.json` and `.vscode/mcp.json` in the folder, and for the files of Cursor and
    Claude Desktop in your home. Shows the commands and addresses, and starts and asks them only if you agree. Each file
    becomes a source, which `mats sync` reads again. Values of variables and headers are neither stored nor shown. You
    can run it again.
    """
    check_namespace(namespace, "--namespace")
    clients = list(_find_clients(folder.absolute()))
    if not clients:
        files = ", ".join(file for _, file in _PROJECT)
        complain(f"no configuration of an MCP client in {folder.absolute()} ({files}) or your home: name its folder")
        raise typer.Exit(Exit.REFUSED)
    count = _show(clients)
    if dry_run:
        out.print("Nothing was started or registered.")
        return
    code = 0
    if count:
        out.print("`mats sync` reads these files again, and starts what they name then.")
        if not (yes or typer.confirm(f"Start and ask {count} server{'' if count == 1 else 's'} for their tools?")):
            note("Nothing was started or registered.")
            raise typer.Exit(Exit.REFUSED)
        try:
            sync(context, _remember(context.obj, [one for one in clients if one.servers], namespace))
        except typer.Exit as ended:  # some server failed, and says so
            code = ended.exit_code
    _show_configurations(clients, context.obj)
    raise typer.Exit(code)


def _find_clients(folder: Path) -> Iterator[_Client]:
    from mats.local.imports.mcp_servers import is_mats, servers_in  # noqa: PLC0415 - loads the MCP SDK

    places = {folder / file: name for name, file in _PROJECT} | {Path.home() / file: name for name, file in _USER}
    for file, name in places.items():
        if not file.is_file():
            continue
        try:
            _, servers = servers_in(str(file))
        except Invalid as error:
            note(f"{file} is passed over: {error}")
            continue
        asked = {server: entry for server, entry in servers.items() if not is_mats(server, entry)}
        yield _Client(name, file, asked, has_mats=len(asked) < len(servers))


def _show(clients: Sequence[_Client]) -> int:
    """Show what would be started and asked; the number of servers."""
    table = table_of("file", "server", "starts or asks", "with")
    for client in clients:
        for name, entry in client.servers.items():
            server = server_of(entry)
            if server is None:
                reached, given = "nothing: it has neither a plain command nor an address", list[str]()
            elif isinstance(server, McpStdio):
                reached, given = shlex.join((server.command, *server.args)), list(server.env)
            else:
                headers = entry.get("headers") if isinstance(entry, Mapping) else None
                reached, given = server.url, [*map(str, headers)] if isinstance(headers, Mapping) else []
            table.add_row(*map(plain, (client.file, name, reached, ", ".join(given))))
    out.print(table if table.row_count else "These files name no server beside mats.")
    return table.row_count


def _remember(settings: Settings, clients: Sequence[_Client], namespace: str) -> list[str]:
    """The names of the sources of these files, which are added unless they are known."""
    book = source_book(settings, create=True)
    known = {state.source.name: state.source for state in book.all()}
    names = []
    for client in clients:
        location = (str(client.file),)
        before = next((one for one in known.values() if one.live and one.location == location), None)
        parent = client.file.parent
        project = parent.parent if parent.name.startswith(".") else parent
        name = before.name if before else join_labels((client.name, to_label(project.name)))
        while not before and name in known:
            name += "-2"
        chosen = namespace or (before.namespace if before else _NAMESPACE)
        source = TrackedSource(name=name, kind=SourceKind.DOCUMENT, location=location, namespace=chosen, live=True)
        known[name] = source
        book.add(source)
        names.append(name)
    return names


def _show_configurations(clients: Sequence[_Client], settings: Settings) -> None:
    """Print what to add to each file, so that its client finds mats."""
    command, *arguments = program(absolute=True)
    environment = {variable_of("home"): str(settings.home.absolute())}
    entry: dict[str, Any] = {"command": command, "args": [*arguments, "mcp"], "env": environment}
    for client in clients:
        if client.has_mats:
            out.print(plain(f"{client.file} names mats already."), soft_wrap=True)
            continue
        typed = {"type": "stdio", **entry} if client.name in _TYPED else entry
        servers = {"servers" if client.name == "vscode" else "mcpServers": {"mats": typed}}
        out.print(plain(f"To search from {client.name}, add this to {client.file}:"), style="bold", soft_wrap=True)
        out.print(plain(json_text(servers, indent=2)), soft_wrap=True)
