"""`mats sync`, `mats source`: the sources that it reads again, and `mats init`, which finds some on this machine."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

import typer
from rich.text import Text

from mats.bootstrap.local import SystemClock, local_system, source_book, table_target
from mats.domain.errors import Fault, Invalid, NotPossible, RequestInvalid
from mats.domain.profile.changes import ChangeClass, worst
from mats.domain.profile.sync import SourceKind, TrackedSource
from mats.domain.protocols.mcp import ConfiguredServer
from mats.domain.protocols.mcp_server import McpStdio, plain_entry, server_of
from mats.domain.protocols.namespaces import join_labels, to_label
from mats.domain.text.redaction import redact_arguments
from mats.edge.snippets import json_text
from mats.local.cli import output as ui
from mats.local.cli.import_ import count_flags, fail_if_waiting, show_flags
from mats.local.cli.indexing import index
from mats.local.imports.files import is_address
from mats.local.imports.importer import DryRunRegistry, check_namespace
from mats.local.imports.sources import (
    LIVE,
    definition_json,
    location_text,
    open_reading,
    parse_location,
    state_json,
)
from mats.local.imports.sync import DryRunSources, Pruned, SourceSync, Sync, Synced
from mats.ports import SourceBook, SourceState, SyncTarget
from mats.settings import Settings, variable_of

_NO_SOURCES = "No sources yet: `mats source add` remembers one."

commands = typer.Typer(
    name="source",
    help="Manage the sources that `mats sync` reads again.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


def unknown_source(name: str) -> NotPossible:
    return NotPossible([Fault("", f"no source {name[:80]!r}: `mats source list` shows them")])


@commands.command("add")
@ui.with_json
def add_source(
    context: typer.Context,
    what: Annotated[list[str], ui.argument(f"One file, folder or address; or {LIVE}.", metavar="WHAT...")],
    name: Annotated[str, ui.option("Its name; by default from its address, path or command.")] = "",
    namespace: ui.IntoNamespace = "",
    timeout: Annotated[float, ui.option("Timeout in seconds for each answer of the source.", min=1, max=600)] = 30,
    live: ui.Live = False,
) -> None:
    """Remember a source. Nothing is read before `mats sync`.

    A command is stored with its arguments and started at every sync: pass secrets in its environment, not as arguments.
    Adding a source again under its name replaces namespace and timeout.
    """
    check_namespace(namespace, "--namespace")
    kind, location = parse_location(what)
    if kind is SourceKind.DOCUMENT and not is_address(location[0]):
        location = (_path(location[0]),)
    if live and (kind is not SourceKind.DOCUMENT or is_address(location[0])):
        raise RequestInvalid([Fault("--live", "is for the file of an MCP client on this machine")])
    name = name or _default_name(kind, location)
    ui.check_name(name, "--name")
    source = TrackedSource(name=name, kind=kind, location=location, namespace=namespace, live=live, timeout_s=timeout)
    book = source_book(context.obj, create=True)
    known = next((state.source for state in book.all() if state.source.name == name), None)
    if known and (known.kind, known.location) != (kind, location):
        problem = f"{name} is another source already ({location_text(known)}): give another name, or remove it first"
        raise NotPossible([Fault("--name", problem)])
    book.add(source)
    if kind is SourceKind.MCP and not is_address(location[0]) and redact_arguments(location) != location:
        ui.note("The command is stored with an argument that looks like a secret: pass it in the environment instead.")
    if known and known != source:
        ui.note(f"{name} was known: its namespace, timeout and --live are now those given here.")
    text = f"{name}: {location_text(source)}; `mats sync {name}` reads it"
    ui.show(definition_json(source), text)


def _path(text: str) -> str:
    """The absolute path of a file or folder that exists."""
    if text == "-":
        raise RequestInvalid([Fault("", "standard input cannot be read again: give a file or an address")])
    if "\0" in text or not Path(text).exists():
        raise NotPossible([Fault(text[:200], "does not exist: give a file, a folder or an address")])
    return str(Path(text).absolute())


def _default_name(kind: SourceKind, location: tuple[str, ...]) -> str:
    if kind is SourceKind.BEDROCK:
        return str(kind)
    if is_address(location[0]):
        text = urlsplit(location[0]).hostname or ""
    elif kind is SourceKind.MCP:
        words = [word for word in location[1:] if not word.startswith("-")]
        text = (words or [location[0]])[0].rpartition("/")[2]
    else:
        path = Path(location[0])
        text = path.name.strip(".") if path.is_dir() else path.name.strip(".").partition(".")[0]
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64]


@commands.command("list")
@ui.with_json
def list_sources(
    context: typer.Context,
    table: Annotated[str, ui.option("Show what was synced to this DynamoDB table, not to the local registry.")] = "",
) -> None:
    """Show every source: its entries, its last success, its error."""
    states = source_book(context.obj, table).all()
    ui.show([state_json(state) for state in states], _state_lines(states))


def _state_lines(states: Sequence[SourceState]) -> ui.Lines:
    rows = ui.table_of("source", "entries", "gone", "succeeded", "from", right=("entries", "gone"))
    for source, run, entries, gone in states:
        succeeded = f"{run.succeeded[:16].replace('T', ' ')} UTC" if run.succeeded else "never"
        rows.add_row(*map(ui.plain, (source.name, f"{entries:,}", gone or "", succeeded, location_text(source))))
    yield rows if states else _NO_SOURCES
    for source, run, _, _ in states:
        if run.error:
            yield Text(f"{source.name}: ", style="bold red") + ui.plain(run.error)


@commands.command("remove")
@ui.with_json
def remove_source(
    context: typer.Context,
    name: Annotated[str, ui.argument("The name of the source.")],
) -> None:
    """Forget a source. Its entries stay registered: `mats remove` removes them."""
    local = local_system(context.obj, create=False)
    book = local.stores.sources
    if all(state.source.name != name for state in book.all()):
        raise unknown_source(name)
    sync = SourceSync(local.stores.registry, book, name, trust=local.stores.trust)
    entries = list(sync.entries)
    sync.release(entries)
    book.remove(name)
    ui.show({"name": name, "entries": entries}, f"{name}: forgotten; its {len(entries):,} entries stay registered")


_TELLING = (ChangeClass.BREAKING, ChangeClass.DANGEROUS)
_MOST_SHOWN = 20  # Lines of each kind for a source on a terminal; JSON is complete


def sync(
    context: typer.Context,
    names: Annotated[list[str] | None, ui.argument("Sources; by default all of them.", metavar="[NAME]...")] = None,
    prune: Annotated[bool, ui.option("Remove entries that a source no longer lists.", "--prune")] = False,
    force: Annotated[
        bool, ui.option("With --prune: remove even more than a fifth of a source's entries.", "--force")
    ] = False,
    full: Annotated[
        bool, ui.option("Read MCP registries whole, not only what changed since the last sync.", "--full")
    ] = False,
    dry_run: Annotated[bool, ui.option("Show what would change; write nothing.", "--dry-run")] = False,
    table: Annotated[
        str, ui.option("Write to this DynamoDB table, not to the local registry.", show_default=False)
    ] = "",
    region: Annotated[str, ui.option("The region of --table; by default AWS_REGION.", show_default=False)] = "",
) -> None:
    """Read the sources again and register what is new or changed.

    The first sync of a source keeps, of registrations with the same ids, only what the source does not say, and names
    what it replaces; later syncs keep changes by others.
    `--prune` removes entries that the source no longer lists, unless another source lists them or someone changed them.
    If a source cannot be read, its entries stay. You can interrupt the command and run it again.
    """
    if force and not prune:
        raise typer.BadParameter("--force is for --prune: give both, or none")
    if region and not table:
        raise typer.BadParameter("--region is for --table: give both, or none")
    settings: Settings = context.obj
    local = None if table else local_system(settings, create=False)
    target: SyncTarget = local.stores.registry if local else table_target(table, region)
    book: SourceBook = local.stores.sources if local else source_book(settings, table)
    states = {state.source.name: state for state in book.all()}
    chosen = names or list(states)
    if len(set(chosen)) < len(chosen):
        raise RequestInvalid([Fault("", "a source is named twice: name it once")])
    if unknown := next((name for name in chosen if name not in states), ""):
        raise unknown_source(unknown)
    bring = Sync(
        target=DryRunRegistry(target) if dry_run else target,
        book=DryRunSources(book) if dry_run else book,
        clock=SystemClock(),
        open=lambda source, since: open_reading(source, settings, since),
        trust=local.stores.trust if local else None,
    )
    results: list[Synced] = []
    for state in map(states.__getitem__, chosen):
        with ui.bar(f"Syncing {state.source.name}", None) as advance:
            results.append(bring(state, prune=prune, force=force, full=full, advance=advance))
        if not ui.is_json():
            _show(results[-1], dry_run=dry_run)
    indexed, flags = 0, dict[str, Any]()
    if local and not dry_run:
        indexed, _ = index(local)
        flags = count_flags(local, {id for result in results for id in result.report.listed})
        fail_if_waiting(local)
    if not ui.is_json():
        show_flags(flags)
    outcome = {"sources": list(map(_as_dict, results)), "flagged": flags, "indexed": indexed, "dry_run": dry_run}
    ui.show(outcome, *([] if results and not dry_run else ["Nothing was written." if results else _NO_SOURCES]))
    if any(result.needs_attention for result in results):
        raise typer.Exit(ui.Exit.REFUSED)


def _show(result: Synced, *, dry_run: bool) -> None:
    """One line for a source, and what someone has to look at on standard error."""
    report, pruned = result.report, result.pruned or Pruned((), ())
    left = [*result.edits, *pruned.kept]
    prune = "" if result.pruned else "; `--prune` removes it"
    numbers = {
        "rejected": len(report.rejected),
        "left as is": len(left),
        "would be removed" if dry_run else "removed": len(pruned.removed),
        "no longer listed": 0 if result.pruned and not pruned.refused else len(result.gone),
    }
    counts = [*result.counts.items(), *((name, count) for name, count in numbers.items() if count)]
    text = Text(f"{result.name}: ", style="bold")
    if result.error:
        text += Text("failed ", style="bold red") + ui.plain(f"{result.error}; ")
    if result.error and not report.listed:
        text += Text("its entries stay as they are")
    else:
        text += Text(", ".join(f"{count:,} {name}" for name, count in counts))
    ui.say(text + Text(f", not pruned: {pruned.refused}" if pruned.refused else ""))
    remarks = (
        list(filter(None, [report.problem])),
        [f"rejected {one.place.file} {one.place}: {one.text}" for one in report.rejected if not result.error],
        [f"changed {id}: {why}" for id, reasons in result.changed for why in reasons if why.change in _TELLING],
        [f"changed {id}: {reason}" for id, reason in result.kept if (id, reason) not in left],
        [f"left {id}: {reason}" for id, reason in left],
        [f"removed {id}" for id in pruned.removed],
        [f"no longer listed: {id}{prune}" for id in result.gone if numbers["no longer listed"]],
    )
    for lines in remarks:
        for line in lines[:_MOST_SHOWN]:
            ui.note(f"  {line}")
        if len(lines) > _MOST_SHOWN:
            ui.note(f"  … and {len(lines) - _MOST_SHOWN:,} more; --json has all of them")
    if any(why.change is ChangeClass.DANGEROUS for _, reasons in result.changed for why in reasons):
        ui.note("  Dangerous changes of rated entries wait for `mats review`; those of others take effect.")


def _as_dict(result: Synced) -> dict[str, Any]:
    pruned = result.pruned
    return {
        "name": result.name,
        **result.counts,
        "rejected": [finding.to_json() for finding in result.report.rejected],
        "classes": Counter(worst(reasons) for _, reasons in result.changed),
        "changed_entries": [{"id": id, "changes": list(map(str, reasons))} for id, reasons in result.changed],
        "left": [entry._asdict() for entry in [*result.edits, *(pruned.kept if pruned else ())]],
        "merged": [entry._asdict() for entry in result.kept if entry not in result.edits],
        "gone": list(result.gone),
        "removed": list(pruned.removed) if pruned else [],
        "not_pruned": (pruned.refused or None) if pruned else None,
        "error": result.error or None,
    }


_PROJECT = (
    ("claude-code", ".mcp.json"), ("cursor", ".cursor/mcp.json"),
    ("vscode", ".vscode/mcp.json"), ("vscode", ".vscode/settings.json"), ("gemini", ".gemini/settings.json"),
    ("codex", ".codex/config.toml"), ("opencode", "opencode.json"), ("opencode", "opencode.jsonc"),
    ("zed", ".zed/settings.json"), ("roo", ".roo/mcp.json"), ("kiro", ".kiro/settings/mcp.json"),
    ("amazon-q", ".amazonq/mcp.json"),
)  # fmt: skip
_DATA = ("Library/Application Support", ".config", "AppData/Roaming")  # Of applications: macOS, Linux, Windows
_USER = (
    ("cursor", ".cursor/mcp.json"), ("claude-code", ".claude.json"), ("codex", ".codex/config.toml"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"), ("gemini", ".gemini/settings.json"),
    ("lm-studio", ".lmstudio/mcp.json"), ("kiro", ".kiro/settings/mcp.json"), ("amazon-q", ".aws/amazonq/mcp.json"),
    ("opencode", ".config/opencode/opencode.json"), ("opencode", ".config/opencode/opencode.jsonc"),
    ("zed", ".config/zed/settings.json"), ("goose", ".config/goose/config.yaml"),
    *(
        (client, f"{data}/{file}")
        for client, file in (
            ("claude-desktop", "Claude/claude_desktop_config.json"),
            ("vscode", "Code/User/mcp.json"), ("vscode", "Code/User/settings.json"),
            ("cline", "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
            ("roo", "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        )
        for data in _DATA
    ),
)  # fmt: skip
"""Clients, and the files of their servers: in a project, and in the home of a user."""
_KEYS = {"zed": "context_servers", "opencode": "mcp", "goose": "extensions"}
"""The key of servers, where it is another one than `mcpServers`; VS Code has two."""
_NAMESPACE = "local"


class _Client(NamedTuple):
    name: str
    file: Path
    servers: Sequence[ConfiguredServer]  # Those to ask, neither disabled nor mats itself
    has_mats: bool
    home: str  # The registry that its entry for mats names; empty if it names none


def init(
    context: typer.Context,
    folder: Annotated[Path, ui.argument("The folder of a project.", exists=True, file_okay=False)] = Path(),
    namespace: Annotated[str, ui.option("Register each server below this namespace.", show_default=_NAMESPACE)] = "",
    yes: Annotated[bool, ui.option("Start and ask the servers without a question.", "--yes", "-y")] = False,
    dry_run: Annotated[bool, ui.option("Show what would be started and asked.", "--dry-run")] = False,
) -> None:
    """Register the servers of your MCP clients, each with its tools, and print how to add mats to these clients.

    Looks for the files of Claude, Cursor, VS Code, Windsurf, Gemini CLI, Codex, opencode, Zed, Cline, Roo, Goose,
    LM Studio, Kiro and Amazon Q, in the folder and in your home. Starts and asks the servers only if you agree. Each
    file becomes a source for `mats sync`. Values of variables and headers are neither stored nor shown.
    """
    check_namespace(namespace, "--namespace")
    clients = list(_find_clients(folder.absolute()))
    if not clients:
        files = ", ".join(file for _, file in _PROJECT)
        ui.complain(f"no configuration of an MCP client in {folder.absolute()} ({files}) or your home: name its folder")
        raise typer.Exit(ui.Exit.REFUSED)
    count = _show_init(clients)
    if dry_run:
        ui.out.print("Nothing was started or registered.")
        return
    code = 0
    if count:
        ui.out.print("`mats sync` reads these files again, and starts what they name then.")
        try:
            agreed = yes or typer.confirm(f"Start and ask {ui.count_of(count, 'server')} for their tools?")
        except typer.Abort as error:  # no terminal, or Ctrl-C
            message = "nothing was started or registered: answer, or repeat the command with --yes"
            raise NotPossible([Fault("", message)]) from error
        if not agreed:
            ui.note("Nothing was started or registered.")
            raise typer.Exit(ui.Exit.REFUSED)
        try:
            sync(context, _remember(context.obj, [one for one in clients if one.servers], namespace))
        except typer.Exit as ended:  # some server failed, and says so
            code = ended.exit_code
    _show_configurations(clients, context.obj)
    raise typer.Exit(code)


def _find_clients(folder: Path) -> Iterator[_Client]:
    from mats.local.imports.mcp_servers import home_of, is_mats, servers_in  # noqa: PLC0415 - loads the MCP SDK

    places = {folder / file: name for name, file in _PROJECT} | {Path.home() / file: name for name, file in _USER}
    for file, name in places.items():
        if not file.is_file():
            continue
        try:
            servers = servers_in(str(file))
        except RequestInvalid:
            continue  # settings without servers
        except Invalid as error:
            ui.note(f"{file} is passed over: {error}")
            continue
        asked = [server for server in servers if not is_mats(server)]
        own = next((server for server in servers if is_mats(server)), None)
        yield _Client(name, file, asked, has_mats=own is not None, home=home_of(own) if own else "")


def _show_init(clients: Sequence[_Client]) -> int:
    """Show what would be started and asked; the number of servers."""
    table = ui.table_of("file", "server", "starts or asks", "with")
    for client in clients:
        for _, name, entry in client.servers:
            server = server_of(entry)
            if server is None:
                reached, given = "nothing: it has neither a plain command nor an address", list[str]()
            elif isinstance(server, McpStdio):
                reached, given = shlex.join((server.command, *server.args)), list(server.env)
            else:
                headers = plain_entry(entry)["headers"]
                reached, given = server.url, [*map(str, headers)] if isinstance(headers, Mapping) else []
            table.add_row(*map(ui.plain, (client.file, name, reached, ", ".join(given))))
    ui.say(table if table.row_count else "These files name no server beside mats.")
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
    command, *arguments = ui.program(absolute=True)
    environment = {variable_of("home"): str(settings.home.absolute())}
    entry: dict[str, Any] = {"command": command, "args": [*arguments, "mcp"], "env": environment}
    alike: dict[str, list[_Client]] = {}
    for client in clients:
        if client.has_mats:
            other = client.home and Path(client.home).expanduser().resolve() != settings.home.resolve()
            text = f", with the registry {client.home}: to search {settings.home}, change it there" if other else ""
            ui.say(f"{client.file} names mats already{text}.")
        else:
            alike.setdefault(_addition(client.name, client.file, entry), []).append(client)
    for shown, those in alike.items():
        headings = (f"To search from {client.name}, add this to {client.file}:" for client in those)
        ui.say("\n".join(headings), style="bold")
        ui.say(shown)


def _addition(client: str, file: Path, entry: Mapping[str, Any]) -> str:
    """What names mats in the file of a client."""
    command, args, env = entry["command"], entry["args"], entry["env"]
    match client:
        case "codex":
            lines = [f"{key} = {json_text(entry[key])}" for key in ("command", "args")]
            variables = [f"{name} = {json_text(value)}" for name, value in env.items()]
            return "\n".join(("[mcp_servers.mats]", *lines, "", "[mcp_servers.mats.env]", *variables))
        case "opencode":
            entry = {"type": "local", "command": [command, *args], "environment": env}
        case "goose":
            entry = {"type": "stdio", "enabled": True, "cmd": command, "args": args, "envs": env}
        case "claude-code" | "vscode":
            entry = {"type": "stdio", **entry}
    servers: dict[str, Any] = {_KEYS.get(client, "servers" if client == "vscode" else "mcpServers"): {"mats": entry}}
    return json_text({"mcp": servers} if (client, file.name) == ("vscode", "settings.json") else servers, indent=2)
