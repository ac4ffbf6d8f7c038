"""Says to everybody what it was told to say, whatever was asked: the service that is none."""

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Self

JSON = "application/json"


@dataclass(frozen=True)
class Saying:
    """An answer; `length` is what it says its length is, if that is not the truth."""

    content: bytes = b""
    status: int = 200
    type: str = JSON
    length: int | None = None
    hangs_up: bool = False
    """The connection ends after it without a word."""


@dataclass
class Parrot:
    """Listens on loopback while it is entered. The last saying is said again and again."""

    sayings: list[Saying] = field(default_factory=lambda: [Saying()])
    asked: list[str] = field(default_factory=list)
    connections: int = 0

    def says(self, *sayings: Saying) -> None:
        """From now on it says this, one after the other."""
        self.sayings[:] = sayings
        self.asked.clear()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def next(self, asked: str) -> Saying:
        """What comes next."""
        with self._turn:
            self.asked.append(asked)
            return self.sayings.pop(0) if len(self.sayings) > 1 else self.sayings[0]

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


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, parrot: Parrot) -> None:
        self.parrot = parrot
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        """Bind without asking a name server who we are."""
        TCPServer.server_bind(self)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client may leave at any time."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        """Count connections."""
        super().setup()
        self.server.parrot.connections += 1

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        saying = self.server.parrot.next(f"{self.command} {self.path}")
        self.send_response(saying.status)
        self.send_header("Content-Type", saying.type)
        self.send_header("Content-Length", str(len(saying.content) if saying.length is None else saying.length))
        self.end_headers()
        self.wfile.write(saying.content)
        self.close_connection |= saying.hangs_up or saying.length is not None

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815  as the standard library wants them called
