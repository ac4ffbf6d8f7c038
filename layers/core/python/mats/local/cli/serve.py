"""`mats serve` and `mats mcp`, and who may reach the service: options and `mats token`."""

import gc
import ipaddress
import json
import logging
import logging.handlers
import re
import shlex
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, BinaryIO, cast

import typer
from rich.text import Text

from mats.bootstrap.local import LocalSystem, SystemClock, is_missing, local_system, open_private
from mats.domain.capability.capability import Id
from mats.domain.errors import DependencyFailed, RequestInvalid, StorageUnusable
from mats.domain.profile.assignment import Assigned
from mats.edge.app import Application
from mats.edge.http import MAX_BODY_BYTES, local_caller, parse_json
from mats.edge.mcp.protocol import PARSE_ERROR, RpcReply, reply_to
from mats.edge.mcp.tools import OFFERED, McpSession, parse_names
from mats.edge.route import TokenScope
from mats.local.access import LOOPBACK, Access
from mats.local.cli import output as ui
from mats.local.cli.registry import without_vector
from mats.local.imports.importer import Importer
from mats.local.imports.sources import open_sources
from mats.local.log import JsonLines, LineFormatter
from mats.local.tokens import OWN, Token, TokenBook, caller_of, digest, own_token
from mats.local.worker import drain
from mats.resources import resource

LOGGER = logging.getLogger("mats.service")
_HOST = "127.0.0.1"
_SAMPLE = resource("examples")
_BACKLOG = 2_048
_CONNECTIONS = 500
"""Open connections, beyond which requests get a 503: half of the 1,024 files that a process usually may have."""
_IDLE_S = 5  # A connection without a request is closed after this time
_HEAD_BYTES = 32_768  # Limit of the target and the headers of a request while they arrive
_LOG_BYTES = 20_000_000
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_WHAT_TO_SET = "make a token with `mats token add NAME --scope write`"
_LIST_S = 2.0  # The greeting waits this long for the console's list; above some 50,000 capabilities it does not suffice


def serve(
    context: typer.Context,
    port: Annotated[int, ui.option("Port; 0: any free port.", min=0, max=65_535)] = 8080,
    sample: Annotated[bool, ui.option("Load the sample registry if this one is empty.", "--sample")] = False,
    host: Annotated[str, ui.option("Address to listen on; `0.0.0.0` for all. Any but loopback needs tokens.")] = _HOST,
    allowed_host: Annotated[
        list[str] | None,
        ui.option("Name under which callers reach the service, such as a proxy's; may be given several times."),
    ] = None,
) -> None:
    """Serve the registry over HTTP: to this machine or, with tokens, to others.

    On this machine everybody may search; a change over HTTP needs the token in `operator.token` of its folder.
    """
    access = access_to(host, home=context.obj.home, allowed=allowed_host or ())
    listener = _listener(host, port)
    local = local_system(context.obj)
    home = local.settings.home
    if not access.is_shared:
        own = Token("operator", TokenScope.OPERATE, digest(own_token(home)))
        access = Access(tokens=TokenBook(home, [own]), own=home / OWN)
    _log_to(home / "mats.log")
    if local.settings.log_format == "json":
        as_json = logging.StreamHandler()
        as_json.setFormatter(JsonLines())
        logging.getLogger().addHandler(as_json)
    if sample and next(iter(local.stores.registry.ids()), None) is None:
        load_sample(local)
    try:
        _run(local, listener, access)
    finally:
        local.close()


def _listener(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # an explicit TCP socket disables Nagle's algorithm
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)  # reserves the port
    except OSError as error:
        reason = error.strerror or str(error)
        ui.complain(f"port {port} on {host} cannot be used ({reason}); choose another with `mats serve --port N`")
        raise typer.Exit(ui.Exit.UNAVAILABLE) from error
    return listener


def _run(local: LocalSystem, listener: socket.socket, access: Access) -> None:
    import uvicorn  # noqa: PLC0415 - only this command serves

    from mats.local.service import application  # noqa: PLC0415

    def exclude_from_collections() -> None:
        """Exclude what is in memory, mostly the console's list: a garbage collection stops all threads."""
        gc.collect()
        gc.freeze()

    app = application(local, access, exclude_from_collections)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            greeting, warnings = _greeting(local, _address(listener), access), list(_warnings(local))
            app.state.refresh.wait(_LIST_S)
            for warning in warnings:
                if local.settings.log_format == "json":
                    LOGGER.warning("%s", warning)
                else:
                    ui.err.print(Text(warning, style="yellow"), soft_wrap=True)
            ui.out.print(greeting, soft_wrap=True)

    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        backlog=_BACKLOG,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=_IDLE_S,
        h11_max_incomplete_event_size=_HEAD_BYTES,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=3,
        lifespan="on",
    )
    with suppress(KeyboardInterrupt):
        Server(config).run(sockets=[listener])


_FIRST_SEARCH = 'search "count the rows of a table in my SQLite file"'
_FIRST_IMPORT = "import FILE  # nothing is registered yet"


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _greeting(local: LocalSystem, url: str, access: Access) -> Text:
    token = '-H "Authorization: Bearer $MATS_TOKEN" ' if access.is_shared else ""
    count = sum(1 for _ in local.stores.registry.ids())
    here = url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    home = "" if str(local.settings.home) == ".mats" else f"--home {local.settings.home} "
    return Text.assemble(
        "mats is ready on ",
        (url, "bold cyan"),
        f" with {count:,} capabilities in {local.settings.home}\n"
        "Try next:\n"
        f"  {_console_link(here, access)}\n"
        f"  {here}/docs for the API\n"
        f'  curl -s {here}/discover {token}-d \'{{"query": "refund a card payment", "limit": 3}}\'\n'
        f"  {shlex.join(ui.program())} {home}{_FIRST_SEARCH if count else _FIRST_IMPORT}\n"
        "Ctrl-C stops it.",
    )


def _console_link(url: str, access: Access) -> str:
    """Where the console is. On a terminal the link signs in; elsewhere, where others may read it, it says with what."""
    if access.own is None:
        return f"{url} in a browser"
    if ui.out.is_terminal:
        return f"{url}/#token={access.own.read_text()} in a browser"
    return f"{url} in a browser; sign in there with the token in {access.own} to change the registry"


def _warnings(local: LocalSystem) -> Iterator[str]:
    """Missing vectors or credentials, a model server that does not answer."""
    models = local.models
    if models.without_encoder:
        yield f"Searching by words only: {models.without_encoder}"
    elif unencoded := without_vector(local):
        problem = f"{unencoded:,} capabilities have no vector of this encoder and are found by words only"
        yield f"{problem}: run mats reconcile"
    if models.service and (warning := models.service.warning()):
        yield warning


def load_sample(local: LocalSystem) -> None:
    """Register the sample registry with its trust, and index it."""
    importer = Importer(local.stores.registry)
    importer.import_sources(open_sources(str(_SAMPLE / "registry.jsonl")))
    for line in (_SAMPLE / "trust.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        local.stores.trust.put(Id(entry["id"]), Assigned(trust=entry["trust"]))
    with ui.bar("Loading the sample registry", local.stores.queue.depth().waiting) as advance:
        drain(local, advance)


class PrivateLog(logging.handlers.RotatingFileHandler):
    """A log that nobody but its owner may read; queries are in it."""

    def _open(self) -> TextIOWrapper:
        opened = open(self.baseFilename, self.mode, encoding=self.encoding, opener=open_private)  # noqa: SIM115
        return cast(TextIOWrapper, opened)


def _log_to(path: Path) -> None:
    try:
        handler = PrivateLog(path, maxBytes=_LOG_BYTES, backupCount=3, encoding="utf-8")
    except OSError as error:
        raise StorageUnusable(f"{path} cannot be written: {error.strerror}") from error
    handler.setFormatter(LineFormatter())
    logging.getLogger().addHandler(handler)
    logging.getLogger("mats").setLevel(logging.INFO)


def access_to(host: str, *, home: Path, allowed: Sequence[str]) -> Access:
    """Who may reach a service that listens on `host`.

    Raises typer.BadParameter: others could reach it without a token; the message says what to set.
    """
    book = TokenBook(home)
    tokens = book if book.all() else None
    if not tokens and allowed:
        raise typer.BadParameter(f"is for a service that others reach: {_WHAT_TO_SET}", param_hint="--allowed-host")
    if not tokens and not is_loopback(host):
        raise typer.BadParameter(f"{host} can be reached from elsewhere: {_WHAT_TO_SET}", param_hint="--host")
    names = frozenset(_host_name(name) for name in allowed)
    if tokens and not is_loopback(host):
        names |= {socket.gethostname().lower(), host.lower()}
    return Access(names, tokens)


def is_loopback(host: str) -> bool:
    """True if nobody but this machine reaches a service that listens on this address or name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK


def _host_name(text: str) -> str:
    name = text.lower().rstrip(".")
    if not _NAME.fullmatch(name):
        raise typer.BadParameter(
            f"{text!r} is no host name: give it without scheme and port", param_hint="--allowed-host"
        )
    return name


def mcp(
    context: typer.Context,
    tools: Annotated[
        str, ui.option("Names of the tools to offer, separated by commas: `search_tools,get_capability`.")
    ] = ",".join(OFFERED),
) -> None:
    """Serve the local registry to the MCP client that started this: messages on stdin and stdout, one per line."""
    try:
        offered = parse_names([tools])
    except RequestInvalid as error:
        raise typer.BadParameter(error.faults[0].message, param_hint="--tools") from error
    with suppress(KeyboardInterrupt):
        local = local_system(context.obj, create=False)
        caller = local_caller(local.settings)
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(LineFormatter())
        logging.basicConfig(handlers=[handler])
        logging.getLogger("mats").setLevel(logging.WARNING)  # clients keep what a server writes here
        try:
            serve_mcp(sys.stdin.buffer, sys.stdout.buffer, McpSession(lambda: _application(local), caller, offered))
        finally:
            local.close()


def serve_mcp(lines: BinaryIO, out: BinaryIO, session: McpSession) -> None:
    """Reply to each line until the input ends."""
    for line in _lines(lines):
        reply = _reply(line, session)
        if reply is not None:
            out.write(json.dumps(reply, separators=(",", ":")).encode() + b"\n")
            out.flush()


def _application(local: LocalSystem) -> Application:
    """The application; built, with its encoder, at the first call of a tool."""
    try:
        return local.application
    except DependencyFailed as error:
        LOGGER.error("the registry cannot be searched: %s", error)
        raise


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Non-blank lines. An overlong one is truncated just above the limit, so that it is rejected."""
    while line := stream.readline(MAX_BODY_BYTES + 2):
        ended = line.endswith(b"\n")
        while not ended and (rest := stream.readline(MAX_BODY_BYTES)):
            ended = rest.endswith(b"\n")
        if line.strip():
            yield line


def _reply(line: bytes, session: McpSession) -> object:
    try:
        message = parse_json(line.rstrip(b"\r\n"))
    except RequestInvalid as error:
        return RpcReply(None, code=PARSE_ERROR, message=str(error)).to_json()
    reply = reply_to(message, session)
    return reply and reply.to_json()


_TokenName = Annotated[str, ui.argument("Who or what has it, such as `ci`.", metavar="NAME")]

commands = typer.Typer(
    name="token",
    help="Manage the tokens of `mats serve`: read, report, write, operate; each scope includes those before it.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@commands.command("add")
@ui.with_json
def add_token(
    context: typer.Context, name: _TokenName, scope: Annotated[TokenScope, ui.option("What it may do.")]
) -> None:
    """Make a token and print it, once: only its hash is stored."""
    ui.check_name(name, "NAME")
    local_system(context.obj).close()  # a token is of a registry, which may be empty
    book = TokenBook(context.obj.home)
    token = book.add(name, scope, SystemClock().now())
    ui.show({"name": name, "scope": scope, "token": token}, token)
    ui.note(f"{name} may {scope.allows}. This is the only time that its token is shown.")
    if len(book.all()) == 1:
        ui.note("This is the first token. A `mats serve` that is running asks for none: restart it.")


@commands.command("list")
@ui.with_json
def list_tokens(context: typer.Context) -> None:
    """Show the name, the scope and the age of every token."""
    rows = [{"name": one.name, "scope": one.scope, "made": one.made} for one in TokenBook(context.obj.home).all()]
    table = ui.table_of("token", "scope", "made")
    for row in rows:
        table.add_row(*map(ui.plain, row.values()))
    ui.show(rows, table if rows else "No tokens yet: `mats token add` makes one.")


@commands.command("revoke")
@ui.with_json
def revoke_token(
    context: typer.Context,
    name: _TokenName,
    keep_reports: Annotated[
        bool, ui.option("Let what it reported count on, as for a token that a new one replaces.", "--keep-reports")
    ] = False,
) -> None:
    """Withdraw a token and what was reported with it: running services refuse it at once, and its votes end.

    Reports that an operator confirmed stay. After `--keep-reports`, `mats withdraw token:NAME` withdraws the reports.
    """
    TokenBook(context.obj.home).revoke(name)
    withdrawn = 0
    if not keep_reports and not is_missing(context.obj):
        with closing(local_system(context.obj, create=False)) as local:
            withdrawn = local.stores.outcomes.withdraw_of(caller_of(name))
    text = f"{name}: revoked" if keep_reports else f"{name}: revoked; {ui.count_of(withdrawn, 'report')} withdrawn"
    ui.show({"name": name, "reports_withdrawn": withdrawn}, text)
