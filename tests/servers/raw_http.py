"""A real server on this machine that answers every connection with the bytes of a test."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def answering(play: Callable[[socket.socket], None]) -> Iterator[str]:
    """An address on this machine where every connection is played with."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=played, args=(connection,), daemon=True).start()

        def played(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(65_536)
                    play(connection)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65_536):
                        pass
                except OSError:
                    return

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)


def response(head: str, body: bytes = b"") -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(f"HTTP/1.1 {head}\r\n\r\n".encode() + body)


def drip(connection: socket.socket, head: bytes) -> None:
    connection.sendall(head)
    while True:
        connection.sendall(b"x")
        threading.Event().wait(0.05)
