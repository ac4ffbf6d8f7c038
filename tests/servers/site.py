"""A web site on this machine that answers as a test says."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.aws.listening import LoopbackServer, QuietConnection


class Asked(NamedTuple):
    method: str
    target: str  # The path and the query, as sent
    headers: Message
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))


Answer = Callable[[Asked], Any]
"""The JSON, the bytes, the status, or the status, the headers and, if there are any, the bytes."""


@contextmanager
def site(answer: Answer) -> Iterator[str]:
    class Handler(QuietConnection, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"  # one connection for each request

        def do_GET(self) -> None:
            found = answer(Asked(self.command, self.path, self.headers, self.content()))
            status, headers, body = 200, {}, b""
            if isinstance(found, tuple):
                status, headers, body = (*found, b"")[:3]
            elif isinstance(found, int):
                status = found
            elif isinstance(found, bytes):
                body = found
            else:
                headers, body = {"Content-Type": "application/json"}, json.dumps(found).encode()
            self.reply(status, body, headers)

        do_POST = do_HEAD = do_DELETE = do_GET  # noqa: N815

    with LoopbackServer(Handler) as server:
        yield server.url
