"""`mats mcp`."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

import typer

from functions.discovery.handler import asking
from mats.bootstrap.local import Local
from mats.domain.errors import DependencyFailed, RequestInvalid
from mats.edge import http, log
from mats.edge.mcp import INVALID_REQUEST, PARSE_ERROR, Reply, replies_to, reply_to
from mats.edge.mcp_http import MOST_IN_A_BATCH
from mats.edge.mcp_tools import Asking
from mats.local.cli.console import exit_codes
from mats.local.envelope import proxy_request
from mats.settings import Settings


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(mcp)


def mcp(context: typer.Context) -> None:
    """Serve the local registry to an MCP client that started this: messages on stdin and stdout, a line each."""
    settings: Settings = context.obj
    with exit_codes(), suppress(KeyboardInterrupt):  # the usual way to stop it
        local = Local(settings)
        logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
        logging.getLogger("mats").setLevel(logging.INFO)
        try:
            serve(sys.stdin.buffer, sys.stdout.buffer, _asking(local))
        finally:
            local.close()


def serve(lines: BinaryIO, out: BinaryIO, may_ask: Asking) -> None:
    """Answer every line until there are no more."""
    for line in _lines(lines):
        answer = _answer(line, may_ask)
        if answer is not None:
            out.write(json.dumps(answer, separators=(",", ":")).encode() + b"\n")
            out.flush()


def _asking(local: Local) -> Asking:
    """What the user of this machine may ask; the encoder is loaded when it first is."""
    event = proxy_request("POST", "/mcp", {}, b"", local.settings.audiences)
    return Asking(
        search=lambda query: asking(event, local.discovery).search(query),
        look_up=lambda id: asking(event, local.discovery).look_up(id),
        failed=_said,
    )


def _said(error: DependencyFailed) -> str:
    """What went wrong, noted for the operator, who is the user: asking again who may ask what might fail as well."""
    log.LOGGER.error("no answer over MCP: %s", error)
    return str(error)


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    """Lines that say something; of an overlong one only so much that it can be refused."""
    while line := stream.readline(http.MAX_BODY_BYTES + 2):
        ended = line.endswith(b"\n")
        while not ended and (rest := stream.readline(http.MAX_BODY_BYTES)):
            ended = rest.endswith(b"\n")
        if line.strip():
            yield line


def _answer(line: bytes, may_ask: Asking) -> object:
    """What goes back for a line, if anything does."""
    try:
        message = http.body_of({"body": line.rstrip(b"\r\n").decode()})
    except UnicodeDecodeError:
        return Reply(None, code=PARSE_ERROR, message="the line is not UTF-8 text").to_json()
    except RequestInvalid as error:
        return Reply(None, code=PARSE_ERROR, message=str(error)).to_json()
    if not isinstance(message, list):
        reply = reply_to(message, may_ask)
        return reply and reply.to_json()
    if not 0 < len(message) <= MOST_IN_A_BATCH:
        text = f"a batch holds 1 to {MOST_IN_A_BATCH} messages"
        return Reply(None, code=INVALID_REQUEST, message=text).to_json()
    return [reply.to_json() for reply in replies_to(message, may_ask)] or None
