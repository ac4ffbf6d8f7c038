"""A web site on this machine that answers as a test says."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from tests.aws.listening import LoopbackServer, QuietConnection


class Asked(NamedTuple):
    """A request."""

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
    """Its address."""

    class Handler(QuietConnection, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"  # one connection for each request

        def do_GET(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            found = answer(Asked(self.command, self.path, self.headers, content))
            status, headers, body = 200, {}, b""
            if isinstance(found, tuple):
                status, headers, body = (*found, b"")[:3]
            elif isinstance(found, int):
                status = found
            elif isinstance(found, bytes):
                body = found
            else:
                headers, body = {"Content-Type": "application/json"}, json.dumps(found).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body if self.command != "HEAD" else b"")

        do_POST = do_HEAD = do_DELETE = do_GET  # noqa: N815

    server = LoopbackServer(("127.0.0.1", 0), Handler)
    server.mistakes = []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
        assert server.mistakes == []
    finally:
        server.shutdown()
        server.server_close()
