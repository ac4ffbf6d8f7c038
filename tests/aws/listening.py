"""The HTTP server under the test servers: binds without a name lookup, logs nothing, collects a test's mistakes."""

import sys
from http.server import ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any


class LoopbackServer(ThreadingHTTPServer):
    """A thread for each connection."""

    daemon_threads = True
    mistakes: list[BaseException]  # Errors of handlers are added to it

    def server_bind(self) -> None:
        """Bind without asking a name server who we are."""
        TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client may leave at any time; anything else is a mistake."""
        error = sys.exception()
        if error and not isinstance(error, ConnectionError):
            self.mistakes.append(error)


class QuietConnection:
    """Of a handler: the connection stays open between requests, and nothing is logged."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
