"""HTTP/1.1 with limits: of connections, of the bytes of a head, and of the time that a request or an answer may take.

uvicorn sets none of these: its `limit_concurrency` accepts and keeps the connections beyond it, h11 limits a head only
while it is incomplete, and no timer covers a request that never ends or an answer that is never read.
"""

import asyncio
import resource
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from mats.edge import http

MAX_HEAD_BYTES = 32_768
"""Of the target and all headers together."""
_MOST_CONNECTIONS, _MOST_BACKLOG = 1_000, 2_048

_LINGER_S = 1.0
"""A refused client has this long to read the answer and close."""

_ARRIVING = (h11.IDLE, h11.SEND_BODY)
"""States of a client whose request is not complete."""


class Capacity(NamedTuple):
    """Connections that are open, and those that wait to be accepted."""

    connections: int
    backlog: int

    @classmethod
    def of_process(cls) -> "Capacity":
        """At most half of the open files that the process may have, and a quarter: the database needs the rest."""
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files == resource.RLIM_INFINITY:
            return cls(_MOST_CONNECTIONS, _MOST_BACKLOG)
        return cls(min(_MOST_CONNECTIONS, files // 2), min(_MOST_BACKLOG, files // 4))


class BoundedProtocol(H11Protocol):
    """One connection. A request beyond a limit gets a problem document, and the connection is closed."""

    most_connections = _MOST_CONNECTIONS
    patience_s = 30.0
    """Seconds until the last byte of a request, from its first or, for the first request, from the connection; also
    until a client reads on."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn: _StrictConnection = _StrictConnection(h11.SERVER, MAX_HEAD_BYTES)
        self.waits_since = 0.0
        """Time of the loop at which this connection began to wait for a request."""
        self._deadline: asyncio.TimerHandle | None = None
        self._is_refused = False

    @property
    def is_waiting(self) -> bool:
        """Whether no request is complete and unanswered."""
        return not self.transport.is_closing() and (self._is_refused or self.conn.their_state in _ARRIVING)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect(self._give_up)
        if len(self.connections) > self.most_connections:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._settle()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        super().data_received(data)
        if self._is_refused:
            return
        if self.conn.their_state not in _ARRIVING:
            self._settle()
        elif self._deadline is None:
            self._expect(self._give_up)

    def on_response_complete(self) -> None:
        self.waits_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect(self.transport.abort)

    def resume_writing(self) -> None:
        self._settle()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that h11 rejects; called while its error is handled."""
        error = sys.exception()
        status = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        if status == 431:
            msg = f"the target and the headers are larger than {MAX_HEAD_BYTES:,} bytes: send less"
        elif error:
            msg = f"not a valid HTTP request: {error}"
        self._refuse(status, msg)

    def _expect(self, on_late: Callable[[], None], seconds: float | None = None) -> None:
        self._settle()
        if not self.transport.is_closing():
            self.waits_since = self.loop.time()
            self._deadline = self.loop.call_later(self.patience_s if seconds is None else seconds, on_late)

    def _settle(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if self.conn.has_begun:
            self._refuse(408, f"the request was not complete after {self.patience_s:g} seconds: send it again")
        else:
            self.transport.close()

    def _make_room(self) -> None:
        """Close the connection that has waited longest for its request; this one if all others have theirs."""
        waiting = [one for one in self.connections if isinstance(one, BoundedProtocol) and one.is_waiting]
        oldest = min(waiting, key=lambda one: one.waits_since, default=self)
        if oldest is self:
            self._refuse(503, "too many connections: try again")
        else:
            oldest.transport.close()

    def _refuse(self, status: int, detail: str) -> None:
        """Send a problem document, unless a response was begun, and close the connection.

        What the client still sends is read for a moment and dropped: else the system resets the connection, and the
        client may lose the answer.
        """
        self._settle()
        if self.transport.is_closing() or self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.close()
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        answer = http.problem(status, detail, headers={"Retry-After": "1"} if status == 503 else None)
        body = answer.body.encode()
        headers = [*answer.headers.items(), ("Content-Length", str(len(body))), ("Connection", "close")]
        self._send(h11.Response(status_code=status, headers=headers))
        if not self.conn.is_head:
            self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())
        self._is_refused = True
        self.transport.write_eof()
        self._expect(self.transport.abort, _LINGER_S)

    def _send(self, event: h11.Event) -> None:
        self.transport.write(self.conn.send(event) or b"")


class _StrictConnection(h11.Connection):
    """Refuses heads that are too large, and bodies with two lengths, which a proxy may read differently."""

    is_head = False

    @property
    def has_begun(self) -> bool:
        """Whether a part of a request has arrived."""
        return self.their_state is not h11.IDLE or bool(self.trailing_data[0])

    def next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.is_head = event.method == b"HEAD"
            names = {name for name, _ in event.headers}
            if len(event.target) + sum(len(name) + len(value) + 4 for name, value in event.headers) > MAX_HEAD_BYTES:
                raise h11.RemoteProtocolError("the head is too large", error_status_hint=431)
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("Content-Length and Transfer-Encoding exclude each other")
        return event
