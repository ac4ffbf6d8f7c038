"""Model servers on loopback: as strict as the services that they stand for, and they play whatever a test needs."""

import itertools
import json
import os
import select
import socket
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from tests.aws.bedrock_model import Exchange
from tests.aws.bedrock_rules import Refused
from tests.aws.listening import LoopbackServer, QuietConnection


@dataclass(frozen=True)
class Answer:
    """This JSON. A wrong shape is a mistake of the test unless it is `loose`."""

    body: Any
    delay_s: float = 0.0
    loose: bool = False


@dataclass(frozen=True)
class Raw:
    """These bytes, whatever they are, under their true length."""

    content: bytes
    status: int = 200
    delay_s: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refuse:
    """A service error; its HTTP status is the one the service gives this code."""

    code: str
    message: str = "The service refused."
    status: int | None = None
    delay_s: float = 0.0


@dataclass(frozen=True)
class Cut:
    """The first `at` bytes under the length of all, then the end of the connection: in order, or by a TCP reset."""

    content: bytes
    at: int
    how: Literal["close", "reset"] = "close"


@dataclass(frozen=True)
class Stall:
    """Headers and `sent` (nothing at all if `before_headers`), then silence, then the end of the connection."""

    seconds: float
    sent: bytes = b""
    before_headers: bool = False


@dataclass(frozen=True)
class Drip:
    content: bytes
    every_s: float


Act: TypeAlias = Answer | Raw | Refuse | Cut | Stall | Drip
Play: TypeAlias = Callable[[Exchange], Act | None]
"""The outcome of a request; None leaves it to the model. Called from many threads at once."""


class ModelServer(ABC):
    """Serves while it is entered; entered again, it is back on the same port.

    `delay_s` is how long the model takes for an answer of its own; acts have their own delays.
    What goes wrong in a play is answered with a 500 and kept in `mistakes`; leaving raises the first of them.
    """

    fault = "InternalServerException"  # The code of a mistake in a play

    def __init__(self, play: Play | None = None, *, delay_s: float = 0.0, port: int = 0, record: bool = True) -> None:
        self.play = play
        self.exchanges: list[Exchange] = []
        self.rejected: list[str] = []
        self.mistakes: list[BaseException] = []
        self._delay_s, self._port, self._record = delay_s, port, record
        self._numbers, self._lock = itertools.count(1), threading.Lock()

    @abstractmethod
    def read(self, method: str, path: str, headers: Message, content: bytes) -> tuple[str, str, dict[str, Any]]:
        """Operation, model and JSON body of a request.

        Raises:
            Refused: the service would not take it.
        """

    @abstractmethod
    def own_answer(self, exchange: Exchange) -> Answer:
        """What the model answers where a test has nothing to play."""

    @abstractmethod
    def complaint_about(self, exchange: Exchange, body: Any) -> str:
        """What the service could not say in a reply; empty if it could."""

    @abstractmethod
    def refusal(self, act: Refuse) -> Raw:
        """An error as the service sends it."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._listener = _Listener(self, self._port)
        self._port = self._listener.server_address[1]
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.__exit__(kind, error, trace)

    def decide(self, method: str, path: str, headers: Message, content: bytes) -> Act:
        try:
            exchange = self._arrived(*self.read(method, path, headers, content))
            play = self.play
            return self._checked(play(exchange) if play else None, exchange)
        except Refused as refused:
            self.rejected.append(str(refused))
            return Refuse(refused.code, str(refused))
        except Exception as mistake:
            self.mistakes.append(mistake)
            return Refuse(self.fault, f"the stand-in failed: {mistake!r}")

    def _arrived(self, operation: str, model: str, body: dict[str, Any]) -> Exchange:
        with self._lock:
            exchange = Exchange(operation, model, body, next(self._numbers))
            if self._record:
                self.exchanges.append(exchange)
        return exchange

    def _checked(self, act: Act | None, exchange: Exchange) -> Act:
        act = self.own_answer(exchange) if act is None else act
        assert isinstance(act, Act), f"{act!r} is no act"
        if isinstance(act, Answer) and not act.loose:
            complaint = self.complaint_about(exchange, act.body)
            assert not complaint, complaint
        return act


class _Listener(LoopbackServer):
    def __init__(self, owner: ModelServer, port: int) -> None:
        self.owner = owner
        super().__init__(_Handler, port=port, mistakes=owner.mistakes)


class _Handler(QuietConnection, BaseHTTPRequestHandler):
    server: _Listener

    def do_POST(self) -> None:
        act = self.server.owner.decide(self.command, self.path, self.headers, self.content())
        if self._waited(getattr(act, "delay_s", 0.0)):
            self._perform(act)

    def do_GET(self) -> None:
        self.do_POST()

    def _perform(self, act: Act) -> None:
        match act:
            case Answer(body):
                self._send(json.dumps(body).encode())
            case Raw(content, status, _, headers):
                self._send(content, status=status, headers=headers)
            case Refuse():
                self._perform(self.server.owner.refusal(act))
            case Cut(content, at, how):
                self._send(content[:at], promised=len(content))
                self._end(reset=how == "reset")
            case Stall(seconds, sent, before_headers):
                if not before_headers:
                    self._send(sent, promised=len(sent) + 1)
                self._waited(seconds)
                self._end()
            case Drip(content, every_s):
                self._send(b"", promised=len(content))
                for i in range(len(content)):
                    if self._waited(every_s):
                        self.wfile.write(content[i : i + 1])

    def _send(
        self,
        content: bytes,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        promised: int | None = None,
    ) -> None:
        fields = {"Content-Type": "application/json", "x-amzn-RequestId": "local", **(headers or {})}
        self.reply(status, content, fields if promised is None else {**fields, "Content-Length": promised})

    def _waited(self, seconds: float) -> bool:
        """Wait; False as soon as the connection is over, by the client or by the server's end."""
        if seconds <= 0:
            return True
        end = select.poll()
        end.register(self.connection, select.POLLIN)
        self.close_connection |= bool(end.poll(min(seconds * 1000, 2**31 - 1)))
        return not self.close_connection

    def _end(self, *, reset: bool = False) -> None:
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())
