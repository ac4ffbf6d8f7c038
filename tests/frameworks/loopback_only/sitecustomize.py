"""Keeps a program on this machine: on its path, Python imports it first. It refuses every other address and ends it."""

import os
import sys

_HERE = {"127.0.0.1", "::1", "localhost", None}


def _refuse(event: str, arguments: tuple) -> None:
    if event == "socket.connect":
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if isinstance(host, bytes):
        host = host.decode()
    if host not in _HERE:
        sys.stderr.write(f"a connection to {host} was refused\n")
        sys.stderr.flush()
        os._exit(99)


sys.addaudithook(_refuse)
