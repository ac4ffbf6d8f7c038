"""`mats mcp`."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, BinaryIO

import typer

from mats.bootstrap.local import LocalSystem, local_system
from mats.domain.errors import DependencyFailed, RequestInvalid
from mats.edge import observers as log
from mats.edge.app import Application
from mats.edge.http import MAX_BODY_BYTES, local_caller, parse_json
from mats.edge.mcp.protocol import INVALID_REQUEST, MAX_BATCH, PARSE_ERROR, RpcReply, replies_to, reply_to
from mats.edge.mcp.tools import OFFERED, McpSession, parse_names


def mcp(
    context: typer.Context,
    tools: Annotated[
        str, typer.Option(help="Names of the tools to offer, separated by commas: `search_tools,get_capability`.")
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
        handler.setFormatter(log.LineFormatter())
        logging.basicConfig(handlers=[handler])
        logging.getLogger("mats").setLevel(logging.WARNING)  # clients keep what a server writes here
        try:
            serve(sys.stdin.buffer, sys.stdout.buffer, McpSession(lambda: _application(local), caller, offered))
        finally:
            local.close()


def serve(lines: BinaryIO, out: BinaryIO, session: McpSession) -> None:
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
        log.LOGGER.error("the registry cannot be searched: %s", error)
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
    """The reply to a line; None if none is due."""
    try:
        message = parse_json(line.rstrip(b"\r\n"))
    except RequestInvalid as error:
        return RpcReply(None, code=PARSE_ERROR, message=str(error)).to_json()
    if not isinstance(message, list):
        reply = reply_to(message, session)
        return reply and reply.to_json()
    if not 0 < len(message) <= MAX_BATCH:
        text = f"a batch holds 1 to {MAX_BATCH} messages"
        return RpcReply(None, code=INVALID_REQUEST, message=text).to_json()
    return [reply.to_json() for reply in replies_to(message, session)] or None
