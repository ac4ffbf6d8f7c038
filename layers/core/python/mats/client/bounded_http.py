"""Fetch an address: http and https only, bounded in time and size, protected against SSRF.

A host name is resolved once and every address of it is checked; the connection goes to a checked address, so a name
that resolves differently a moment later (DNS rebinding) is harmless. No proxy, cookie or credential is used.
"""

import os
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urljoin

import anyio
import httpcore2
import httpx2

from mats.domain.protocols.addresses import AddressRefused, Unfetchable, check_address, is_private, split_url

MAX_BYTES = 20_000_000
TIMEOUT_S = 30.0
_MAX_REDIRECTS = 5
_MAX_ADDRESSES = 4  # Addresses tried per name; they share the timeout
_MAX_HEADERS = 100
_HTTP, _HTTPS = 80, 443
_REDIRECTS = (301, 302, 303, 307, 308)
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "mats"}  # Headers of every request


def fetch(url: str, *, timeout_s: float = TIMEOUT_S, max_bytes: int = MAX_BYTES) -> bytes:
    """The body at an address, over at most five redirects.

    Raises Unfetchable: it exceeds the timeout or the size, answers with an error, or is blocked.
    """
    split_url(url)
    try:
        request = httpx2.Request("GET", url, headers={**HEADERS, "Accept": "application/json, application/yaml, */*"})
    except httpx2.InvalidURL as error:
        raise Unfetchable(url, "is not a valid address: give one that begins with https:// and a host") from error
    status, _, body = send(request, timeout_s=timeout_s, max_bytes=max_bytes, private=True)
    if status != 200:
        raise Unfetchable(url, f"answers with status {status}")
    return body


def send(request: httpx2.Request, *, timeout_s: float, max_bytes: int, private: bool) -> tuple[int, str, bytes]:
    """The status, media type and body of the response to a request that has been read, whatever its status.

    Redirects are followed where they repeat the request at the same host, or without its headers a GET or HEAD
    elsewhere. `private` is as for `BoundedTransport`. Raises as `fetch` does.
    """
    return anyio.run(_send, request, timeout_s, max_bytes, private)


async def _send(request: httpx2.Request, timeout_s: float, max_bytes: int, private: bool) -> tuple[int, str, bytes]:
    url = str(request.url)
    async with BoundedTransport(url, timeout_s=timeout_s, max_bytes=max_bytes, private=private) as transport:
        try:
            with anyio.fail_after(timeout_s):
                for _ in range(_MAX_REDIRECTS + 1):
                    response = await transport.handle_async_request(request)
                    following = _follow(request, response)
                    if following is None:
                        body = b"".join([chunk async for chunk in response.aiter_raw()])
                        return response.status_code, response.headers.get("content-type", ""), body
                    await response.aclose()
                    request = following
        except httpx2.InvalidURL as error:
            raise Unfetchable(url, "is not a valid address: give one that begins with https:// and a host") from error
        except TimeoutError as error:
            raise Unfetchable(url, timeout_reason(timeout_s)) from error
    raise Unfetchable(url, f"redirects more than {_MAX_REDIRECTS} times")


def _follow(request: httpx2.Request, response: httpx2.Response) -> httpx2.Request | None:
    """The request that a redirect leads to; None if it is not followed."""
    location, reads = response.headers.get("location", ""), request.method in ("GET", "HEAD")
    if response.status_code not in _REDIRECTS or not location:
        return None
    there = urljoin(str(request.url), location)
    split_url(there)
    to = httpx2.URL(there)
    if request.url.scheme == "https" and to.scheme == "http":
        raise Unfetchable(str(request.url), "redirects from https to http")
    if (to.scheme, to.host, to.port) != (request.url.scheme, request.url.host, request.url.port):
        return httpx2.Request(request.method, to, headers=HEADERS) if reads else None
    if reads or response.status_code in (307, 308):
        return httpx2.Request(request.method, to, headers=request.headers, content=request.content)
    return None


def timeout_reason(timeout_s: float) -> str:
    """The reason of an `Unfetchable` after a timeout."""
    return f"did not answer within {timeout_s:g} seconds"


class _CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses only.

    This machine and private networks are allowed only for the host and port given, not for redirects to others; a
    redirect from http to https may change the port.
    """

    def __init__(self, host: str, port: int, timeout_s: float, private: bool) -> None:
        self._host, self._ports, self._timeout_s = host, {port, _HTTPS} if port == _HTTP else {port}, timeout_s
        self._may_be_private = private
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that accepts, within shares of our own timeout."""
        self._may_be_private = self._may_be_private and host == self._host and port in self._ports
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(info[4][0]) for info in found]
        for address in addresses:
            check_address(address, host, may_be_private=self._may_be_private)
        self._may_be_private = self._may_be_private and any(map(is_private, addresses))
        tried = addresses[:_MAX_ADDRESSES]
        problem: Exception = OSError("no address")
        for address in tried:
            try:
                return await self._backend.connect_tcp(address, port, self._timeout_s / len(tried))
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
        raise problem


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Requests to one address and its redirects, with one timeout and one limit of bytes for all of them."""

    def __init__(self, url: str, *, timeout_s: float, max_bytes: int = MAX_BYTES, private: bool = True) -> None:
        """`private`: the address itself may be of this machine or of a private network."""
        self._timeout_s, self._max_bytes, self._left = timeout_s, max_bytes, max_bytes
        self.failure: Unfetchable | None = None  # The first failure, for callers whose library hides it
        self.post_status = 0  # The status of the last response to a POST, for the same
        parts = split_url(url)
        port = parts.port or (_HTTPS if parts.scheme == "https" else _HTTP)
        backend = _CheckedBackend(parts.hostname or "", port, timeout_s, private)
        self._pool = httpcore2.AsyncConnectionPool(ssl.create_default_context(), network_backend=backend)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the body of the response is read within the limit."""
        url = request.url
        target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        sent = httpcore2.Request(request.method, target, headers=request.headers.raw, content=request.stream)
        with self._translate_errors(str(url)):
            response = await self._pool.handle_async_request(sent)
        if request.method == "POST":
            self.post_status = response.status
        body = _BoundedBody(self._read_body(str(url), response), response)
        result = httpx2.Response(response.status, headers=response.headers, stream=body, request=request)
        if len(response.headers) > _MAX_HEADERS:
            raise self.fail(str(url), f"cannot be read: more than {_MAX_HEADERS} header fields")
        if result.headers.get("content-encoding", "identity").lower() != "identity":
            raise self.fail(str(url), "answers in a content encoding that was not requested")
        return result

    async def aclose(self) -> None:
        await self._pool.aclose()

    def fail(self, url: str, reason: str) -> Unfetchable:
        """The error of an address; stored in `failure` if it is the first."""
        error = Unfetchable(url, reason)
        self.failure = self.failure or error
        return error

    async def _read_body(self, url: str, response: httpcore2.Response) -> AsyncIterator[bytes]:
        with self._translate_errors(url, "response truncated or malformed"):
            async for chunk in response.aiter_stream():
                self._left -= len(chunk)
                if self._left < 0:
                    raise self.fail(url, f"answers with more than {self._max_bytes:,} bytes")
                yield chunk

    @contextmanager
    def _translate_errors(self, url: str, protocol_error: str = "no HTTP response") -> Iterator[None]:
        try:
            yield
        except httpcore2.ProtocolError as error:
            raise self.fail(url, f"cannot be read: {protocol_error}") from error
        except (AddressRefused, OSError, ValueError, httpcore2.NetworkError, httpcore2.TimeoutException) as error:
            raise self.fail(url, self._reason(error)) from error

    def _reason(self, error: BaseException) -> str:
        if isinstance(error, AddressRefused):
            return str(error)
        if isinstance(error, TimeoutError | httpcore2.TimeoutException):
            return timeout_reason(self._timeout_s)
        error = _innermost(error)
        if isinstance(error, ssl.SSLError):
            reason = error.reason or error
            return (
                f"cannot be read over TLS: {reason}; its server may have http alone, or a certificate not trusted here"
            )
        errno = error.errno if isinstance(error, OSError) else None
        text = os.strerror(errno) if errno and errno > 0 else getattr(error, "strerror", None)
        return f"cannot be read: {text or type(error).__name__}; check the address, and that its server runs"


def _innermost(error: BaseException) -> BaseException:
    """The first cause. The library removes `__cause__` from its errors; their argument is the error they wrap."""
    argument = error.args[0] if error.args else None
    inner = error.__cause__ or (argument if isinstance(argument, BaseException) else None)
    return _innermost(inner) if inner else error


class _BoundedBody(httpx2.AsyncByteStream):
    """The body of a response, as a stream of httpx2."""

    def __init__(self, chunks: AsyncIterator[bytes], response: httpcore2.Response) -> None:
        self._chunks, self._response = chunks, response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._response.aclose()
