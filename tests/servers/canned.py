"""An HTTP server that gives canned responses, whatever is requested."""

import json
import socket
import threading
from dataclasses import dataclass, field
from typing import Any, Self

from tests.aws.listening import LoopbackServer, QuietConnection

JSON = "application/json"


@dataclass(frozen=True)
class CannedResponse:
    """A response; `length` is its Content-Length where that is to be wrong."""

    content: bytes = b""
    status: int = 200
    type: str = JSON
    length: int | None = None
    closes: bool = False  # The connection is closed after it


def in_json(value: object, status: int = 200, **more: Any) -> CannedResponse:
    return CannedResponse(json.dumps(value).encode(), status, **more)


@dataclass
class CannedServer:
    responses: list[CannedResponse] = field(default_factory=lambda: [CannedResponse()])
    asked: list[str] = field(default_factory=list)
    connections: int = 0

    def respond(self, *responses: CannedResponse) -> None:
        """Give these responses from now on, one after the other; the last one is repeated."""
        self.responses[:] = responses
        self.asked.clear()

    @property
    def url(self) -> str:
        return self._server.url

    def next(self, asked: str) -> CannedResponse:
        with self._turn:
            self.asked.append(asked)
            return self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]

    def __enter__(self) -> Self:
        self._turn = threading.Lock()
        self._server = _Server(self)
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()


class _Server(LoopbackServer):
    def __init__(self, canned: CannedServer) -> None:
        self.canned = canned
        super().__init__(_Handler)


class _Handler(QuietConnection):
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.canned.connections += 1

    def _answer(self) -> None:
        self.content()
        response = self.server.canned.next(f"{self.command} {self.path}")
        promised = {} if response.length is None else {"Content-Length": response.length}
        if response.closes:  # the end comes with the last byte, so that no client asks again in between
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        self.reply(response.status, response.content, {"Content-Type": response.type, **promised})
        if response.closes:
            self.connection.shutdown(socket.SHUT_WR)
        self.close_connection |= response.closes or response.length is not None

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815  as the standard library wants them called
