"""The HTTP server under the test servers: binds without a name lookup, logs nothing, collects a test's mistakes."""

import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from http.client import responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from types import TracebackType
from typing import Any, Self


class LoopbackServer(ThreadingHTTPServer):
    """Listens while it is entered, with a thread for each connection; leaving ends them all, and raises a mistake."""

    request_queue_size = 512

    def __init__(
        self, handler: type["QuietConnection"], *, port: int = 0, mistakes: list[BaseException] | None = None
    ) -> None:
        self.mistakes = [] if mistakes is None else mistakes  # Errors of handlers are added to it
        self._open: dict[threading.Thread, socket.socket] = {}
        super().__init__(("127.0.0.1", port), handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def start(self) -> None:
        self._loop = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._loop.start()

    def stop(self) -> None:
        """Listen no more, and end every connection, whatever is going on in it."""
        self.shutdown()
        self._loop.join()
        self.server_close()
        left = dict(self._open)
        for connection in left.values():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in left:
            thread.join(5)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self.mistakes and kind is None:
            raise self.mistakes[0]

    def server_bind(self) -> None:
        """Bind without asking a name server who we are."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._open[thread] = request
        thread.start()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        super().process_request_thread(request, client_address)
        self._open.pop(threading.current_thread())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may leave at any time; anything else is a mistake."""
        error = sys.exception()
        if error and not isinstance(error, ConnectionError):
            self.mistakes.append(error)


class QuietConnection(BaseHTTPRequestHandler):
    """A connection that stays open between requests; nothing is logged."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""

    def content(self) -> bytes:
        """The body of the request; shorter than it was to be if the client was killed meanwhile."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def reply(self, status: int, content: bytes = b"", headers: Mapping[str, object] | None = None) -> None:
        """Head and content in one packet. The headers may promise another length; HEAD has no content."""
        fields = {"Content-Length": len(content), **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        head = f"{self.protocol_version} {status} {responses.get(status, '')}\r\n{lines}\r\n"
        self.wfile.write(head.encode("latin-1") + (b"" if self.command == "HEAD" else content))


def serve(server: Any) -> None:
    """Keep it up in the foreground until interrupted; SIGTERM is an interrupt, too, so that it is left in order."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with server, suppress(KeyboardInterrupt):
        print(server.url, flush=True)  # noqa: T201  what whoever started it waits for
        threading.Event().wait()
