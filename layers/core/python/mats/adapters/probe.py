"""Looks at an endpoint: the handshake of its protocol or HEAD, never a call.

A host name is resolved once and every address of it is checked, as for imports (`domain/protocols/addresses`); the
connection goes to a checked address and follows no redirect. No credential is sent.
"""

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from mats.domain.errors import Invalid
from mats.domain.protocols.addresses import AddressRefused, check_address, split_url
from mats.domain.shortlist.fitness import Life, Sighting, Target

_MAX_BYTES, _CHUNK = 65_536, 4_096
_MAX_ADDRESSES = 4  # Addresses tried per name; they share the timeout
_HEADERS = {"User-Agent": "mats-probe", "Accept-Encoding": "identity"}
_JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_INITIALIZE = {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "mats-probe", "version": "1"},
}  # fmt: skip
_METHODS = {"mcp": ("initialize", _INITIALIZE), "a2a": ("agent/getAuthenticatedExtendedCard", {})}
"""The first request of MCP, and A2A's for a card; a server without it answers with an error of JSON-RPC."""
_GATED, _BUSY, _BROKEN = (401, 402, 403, 407), (408, 425, 429), (410, 502, 503, 504, *range(520, 531))


@dataclass(frozen=True, slots=True)
class ProbeClient:
    """Looks at endpoints; addresses of this machine and of private networks only if `private`."""

    private: bool = False
    timeout_s: float = 5.0

    def __call__(self, target: Target) -> Sighting | None:
        """What the endpoint shows of life; None for a blocked address, at which nothing is looked."""
        try:
            with closing(self._connect(target.url)) as connection:
                cut = threading.Timer(self.timeout_s, _shut_down, (connection.sock,))
                cut.start()
                try:
                    seen, session = _look(connection, target)
                finally:
                    cut.cancel()
            if session:
                with closing(self._connect(target.url)) as connection:
                    connection.request("DELETE", _path(target.url), headers={**_HEADERS, "Mcp-Session-Id": session})
            return seen
        except (AddressRefused, Invalid):
            return None
        except ssl.SSLError as error:
            return Sighting(Life.MISSED, f"TLS: {error.reason or type(error).__name__}")
        except socket.gaierror:
            return Sighting(Life.MISSED, "its host name does not resolve")
        except TimeoutError:
            return Sighting(Life.MISSED, f"no answer within {self.timeout_s:g} seconds")
        except (OSError, ValueError, http.client.HTTPException) as error:
            return Sighting(Life.MISSED, getattr(error, "strerror", None) or type(error).__name__)

    def _connect(self, url: str) -> http.client.HTTPConnection:
        parts = split_url(url)
        host, is_tls = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if is_tls else 80)
        addresses = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        for address in addresses:
            check_address(address, host, may_be_private=self.private)
        connection = http.client.HTTPConnection(host, port, timeout=self.timeout_s)
        connection.sock = _connect_to_first(addresses[:_MAX_ADDRESSES], port, self.timeout_s)
        if is_tls:
            try:
                context = ssl.create_default_context()
                connection.sock = context.wrap_socket(connection.sock, server_hostname=host)
            except OSError:
                connection.close()
                raise
        connection.default_port = 443 if is_tls else 80  # the header Host has no port then
        return connection


def _shut_down(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


def _connect_to_first(addresses: Sequence[str], port: int, timeout_s: float) -> socket.socket:
    for address in addresses[:-1]:
        with suppress(OSError):
            return socket.create_connection((address, port), timeout_s / len(addresses))
    return socket.create_connection((addresses[-1], port), timeout_s / len(addresses))


def _path(url: str) -> str:
    return f"/{url.split('/', 3)[3]}" if url.count("/") > 2 else "/"


def _look(connection: http.client.HTTPConnection, target: Target) -> tuple[Sighting, str]:
    """What one request shows, and the session that it opened."""
    path = _path(target.url)
    if target.method not in _METHODS:
        connection.request("HEAD", path, headers=_HEADERS)
        return _of_status(connection.getresponse().status) or Sighting(Life.ALIVE), ""
    method, params = _METHODS[target.method]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    connection.request("POST", path, body, {**_HEADERS, **_JSON})
    response = connection.getresponse()
    if seen := _of_status(response.status):
        return seen, ""
    if _speaks_json_rpc(response):
        return Sighting(Life.ALIVE), response.getheader("Mcp-Session-Id") or ""
    return Sighting(Life.MISSED, f"no {target.method.upper()} at this address: status {response.status}"), ""


def _of_status(status: int) -> Sighting | None:
    """What a status alone says of an endpoint; redirects come from living servers."""
    if status in _GATED:
        return Sighting(Life.GATED, f"status {status}")
    if status in _BROKEN:
        return Sighting(Life.MISSED, f"status {status}")
    return Sighting(Life.ALIVE) if status in _BUSY or 300 <= status < 400 else None


def _speaks_json_rpc(response: http.client.HTTPResponse) -> bool:
    """True if a body, or the beginning of a stream of events, has a message of JSON-RPC."""
    read = b""
    while len(read) < _MAX_BYTES and (chunk := response.read1(_CHUNK)):
        read += chunk
        if b'"jsonrpc"' in read:
            return True
    return False
