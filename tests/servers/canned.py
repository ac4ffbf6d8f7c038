"""An HTTP server that gives canned responses, whatever is requested."""

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
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
    """A response of this JSON."""
    return CannedResponse(json.dumps(value).encode(), status, **more)


@dataclass
class CannedServer:
    """Listens on loopback while it is entered."""

    responses: list[CannedResponse] = field(default_factory=lambda: [CannedResponse()])
    asked: list[str] = field(default_factory=list)
    connections: int = 0

    def respond(self, *responses: CannedResponse) -> None:
        """Give these responses from now on, one after the other; the last one is repeated."""
        self.responses[:] = responses
        self.asked.clear()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def next(self, asked: str) -> CannedResponse:
        """The next response."""
        with self._turn:
            self.asked.append(asked)
            return self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]

    def __enter__(self) -> Self:
        self._turn = threading.Lock()
        self._server = _Server(self)
        self._loop = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._loop.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._loop.join()
        self._server.server_close()


class _Server(LoopbackServer):
    block_on_close = False

    def __init__(self, canned: CannedServer) -> None:
        self.canned = canned
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client may leave at any time."""


class _Handler(QuietConnection, BaseHTTPRequestHandler):
    server: _Server

    def setup(self) -> None:
        """Count connections."""
        super().setup()
        self.server.canned.connections += 1

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        response = self.server.canned.next(f"{self.command} {self.path}")
        self.send_response(response.status)
        self.send_header("Content-Type", response.type)
        self.send_header("Content-Length", str(len(response.content) if response.length is None else response.length))
        self.end_headers()
        self.wfile.write(response.content)
        self.close_connection |= response.closes or response.length is not None

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815  as the standard library wants them called
