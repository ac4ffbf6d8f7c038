"""Reading an address that somebody gave: http and https only, bounded in time and size, and nowhere it should not go.

The address a name stands for is looked at before it is connected to, and it is that address that is connected to, so a
name that changes its mind leads nowhere else. No proxy is used and nothing is sent that says who asks.
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin

from mats.local.imports.addresses import Unfetchable, is_private, port_of, refusal, split_url

MAX_BYTES = 20_000_000
TIMEOUT_S = 30.0
_REDIRECTS = 5
_CHUNK = 1 << 16
_MOST_TRIED = 4
"""Addresses of one name."""
_MOVED = (301, 302, 303, 307, 308)


class Answer(NamedTuple):
    """What an address answered."""

    url: str
    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes


def fetch(url: str, *, timeout_s: float = TIMEOUT_S, most: int = MAX_BYTES) -> Answer:
    """What an address holds, over at most a few redirects.

    Raises:
        Unfetchable: it cannot be read in time or in size, answers with an error, or must not be asked.
    """
    with Session(url, timeout_s=timeout_s, most=most) as session:
        for _ in range(_REDIRECTS + 1):
            answer = session.ask("GET", {"Accept": "application/json, application/yaml, text/*, */*"})
            location = answer.headers.get("location", "")
            if answer.status not in _MOVED or not location:
                if answer.status != 200:
                    raise Unfetchable(answer.url, f"answers with status {answer.status}")
                return answer
            session.move_to(urljoin(answer.url, location))
    raise Unfetchable(url, f"redirects more than {_REDIRECTS} times")


@dataclass
class Session:
    """Requests to one address, or to where it redirects to, that share a deadline and a size.

    Only an address that was given may be on this machine or in a private network: what redirects from elsewhere may
    not lead there.
    """

    url: str
    timeout_s: float
    most: int = MAX_BYTES
    _given_private: bool = True
    _expired: bool = False
    _socket: socket.socket | None = None
    _read: int = 0
    _timer: threading.Timer = field(init=False)

    def __enter__(self) -> "Session":
        self._timer = threading.Timer(self.timeout_s, self._expire)
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._timer.cancel()

    def move_to(self, url: str) -> None:
        """Ask another address from now on; one in a private network only from there."""
        here, there = split_url(self.url), split_url(url)
        if here.scheme == "https" and there.scheme == "http":
            raise Unfetchable(self.url, "redirects from https to http")
        self._given_private = self._given_private and here.hostname == there.hostname
        self.url = url

    def ask(self, method: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
        """The answer to one request, with all of its body.

        Raises:
            Unfetchable: there is none in time and size, or the address must not be asked.
        """
        with self.asked(method, headers, body) as response:
            content = b"".join(self.chunks(response))
            return Answer(self.url, response.status, _headers(response), content)

    @contextmanager
    def asked(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer to one request, its body still to be read, by `chunks`."""
        parts = split_url(self.url)
        connector = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = connector(parts.hostname or "", parts.port or port_of(parts), timeout=self.timeout_s)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.sock = self._connected(parts)
            sent = {"Accept-Encoding": "identity", "User-Agent": "mats", "Connection": "close", **headers}
            connection.request(method, target, body=body, headers=sent)
            response = connection.getresponse()
            if response.headers.get("Content-Encoding", "identity").lower() != "identity":
                raise Unfetchable(self.url, "answers in an encoding that was not asked for")
            yield response
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unfetchable(self.url, self._why(error)) from error
        finally:
            connection.close()
            self._socket = None

    def chunks(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """The body as it comes, as long as there is room and time for it."""
        while not self._expired and (chunk := response.read1(_CHUNK)):
            self._read += len(chunk)
            if self._read > self.most:
                raise Unfetchable(self.url, f"answers with more than {self.most:,} bytes")
            yield chunk
        if self._expired:
            raise Unfetchable(self.url, self._late)
        if response.length:
            raise Unfetchable(self.url, "answers with less than it says; it broke off")

    @property
    def _late(self) -> str:
        return f"did not answer within {self.timeout_s:g} seconds"

    def _why(self, error: Exception) -> str:
        if self._expired or isinstance(error, TimeoutError):
            return self._late
        if isinstance(error, ssl.SSLError):
            return f"cannot be asked safely: {error.reason or error}"
        return f"cannot be read: {getattr(error, 'strerror', None) or type(error).__name__}"

    def _expire(self) -> None:
        """End whatever is waited for: a server that sends one byte now and then would never be late otherwise."""
        self._expired = True
        if self._socket is not None:
            _shut(self._socket)

    def _connected(self, parts: SplitResult) -> socket.socket:
        if self._expired:
            raise TimeoutError
        host, port = parts.hostname or "", parts.port or port_of(parts)
        addresses = [info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        for address in addresses:
            if why := refusal(str(address), host, given=self._given_private):
                raise Unfetchable(self.url, why)
        self._given_private = self._given_private and any(is_private(str(a)) for a in addresses)
        plain = _first(addresses, port, self.timeout_s)
        self._socket = plain
        if parts.scheme == "https":
            safe = ssl.create_default_context().wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
            self._socket = safe
            safe.do_handshake()
        return self._socket


def _shut(connection: socket.socket) -> None:
    """Shut a connection that may be shut already."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


def _first(addresses: list[str | int], port: int, timeout_s: float) -> socket.socket:
    """A connection to the first of these that takes one; those that take none share the time."""
    problem: OSError = OSError("no address")
    tried = addresses[:_MOST_TRIED]
    for address in tried:
        try:
            connection = socket.create_connection((str(address), port), timeout=timeout_s / len(tried))
        except OSError as error:
            problem = error
        else:
            connection.settimeout(timeout_s)
            return connection
    raise problem


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}
