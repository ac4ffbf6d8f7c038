"""Reading an address that somebody gave: http and https only, bounded in time and size, and nowhere it should not go.

The address a name stands for is looked at before it is connected to, and it is that address that is connected to, so a
name that changes its mind leads nowhere else. No proxy is used and nothing is sent that says who asks.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import SplitResult, urljoin, urlsplit

from mats.domain.errors import Fault, Invalid

MAX_BYTES = 20_000_000
TIMEOUT_S = 30.0
_REDIRECTS = 5
_CHUNK = 1 << 16
_MOST_TRIED = 4
"""Addresses of one name."""
_MOVED = (301, 302, 303, 307, 308)

_NEVER = tuple(
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8", "100.100.100.200/32", "169.254.0.0/16", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15",
        "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32", "::/128", "64:ff9b:1::/48", "100::/64",
        "2001::/32", "2002::/16", "fe80::/10", "fd00:ec2::/32", "ff00::/8",
    )
)  # fmt: skip
"""Link-local and metadata addresses of clouds, and those that stand for other ones or for nothing."""

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""What IPv4 addresses are called in networks that have none (RFC 6052)."""


class Unfetchable(Invalid):
    """An address cannot be read, or must not be."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__([Fault(shown(url), why)])


class Answer(NamedTuple):
    """What an address answered."""

    url: str
    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes


def is_address(text: str) -> bool:
    """Whether somebody means an address and not a file."""
    return text.lower().startswith(("http://", "https://"))


def shown(url: str) -> str:
    """An address without what may be secret in it."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return url[:200]
    return f"{parts.scheme}://{host}{port}{parts.path}"[:200]


def kept(url: str) -> str:
    """As much of an address as may be registered for everybody to read: a query often holds a key or a token."""
    return url.partition("#")[0].partition("?")[0]


def fetched(url: str, *, timeout_s: float = TIMEOUT_S, most: int = MAX_BYTES) -> Answer:
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
        here, there = _parts(self.url), _parts(url)
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
        parts = _parts(self.url)
        connector = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = connector(parts.hostname or "", parts.port or _port(parts), timeout=self.timeout_s)
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
        host, port = parts.hostname or "", parts.port or _port(parts)
        addresses = [info[4][0] for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
        for address in addresses:
            if why := _forbidden(str(address), host, given=self._given_private):
                raise Unfetchable(self.url, why)
        self._given_private = self._given_private and any(_is_private(str(a)) for a in addresses)
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


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise Unfetchable(url, "is no address") from error
    if not usable or any(ord(c) <= 32 or ord(c) > 126 for c in url):
        raise Unfetchable(url, "is no address that can be asked: http or https, in ASCII")
    if parts.username or parts.password:
        raise Unfetchable(url, "has a name or password in it, which is not sent")
    return parts


def _port(parts: SplitResult) -> int:
    return 443 if parts.scheme == "https" else 80


def _forbidden(address: str, host: str, *, given: bool) -> str:
    """Why this address is not asked; empty if it may be."""
    ip = _plain(address)
    if any(ip in network for network in _NEVER if network.version == ip.version):
        return f"is at {ip}, an address that is never asked: link-local, of a cloud's metadata, or of no host"
    if ip.is_loopback and not (given and _names_loopback(host)):
        return f"leads to this machine ({ip}), which is only asked when it is given as localhost or by its address"
    if _is_private(address) and not given:
        return f"leads into a private network ({ip}) from outside"
    return ""


def _names_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_private(address: str) -> bool:
    return not _plain(address).is_global


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address that is meant: an IPv6 one may hold an IPv4 one, mapped or translated."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip in _TRANSLATED:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return (isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped) or ip


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}
