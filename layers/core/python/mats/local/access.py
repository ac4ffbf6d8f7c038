"""Who may use the service: the host names it answers to, and bearer tokens where other machines reach it."""

import hashlib
import hmac
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field

from mats.edge import http

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MIN_TOKEN = 32
"""Characters; `openssl rand -hex 32` gives 64."""
_OPEN = frozenset({"/", "/docs", "/healthz", "/openapi.json"})
_OPEN_BELOW = ("/console/", "/evaluation/", "/docs/assets/", "/static/")
"""Files of the release and the state of the service: the same for every registry."""
_CHALLENGE = 'Bearer realm="mats"'


@dataclass(frozen=True, slots=True)
class Tokens:
    """SHA-256 of the tokens: of equal length, so that comparing them takes the same time for any token."""

    read: bytes = field(repr=False)
    write: bytes = field(repr=False)

    def problem(self, path: str, authorization: Sequence[str]) -> http.Response | None:
        """The error for a request with these `Authorization` headers; None if it may have the path."""
        if path in _OPEN or path.startswith(_OPEN_BELOW):
            return None
        sent = digest(_bearer(authorization))
        may_write, may_read = hmac.compare_digest(sent, self.write), hmac.compare_digest(sent, self.read)
        if may_write or (may_read and not _is_registry(path)):
            return None
        if may_read:
            challenge = {"WWW-Authenticate": f'{_CHALLENGE}, error="insufficient_scope"'}
            return http.problem(403, "this token may only read: send the write token", headers=challenge)
        error = ', error="invalid_token"' if authorization else ""
        detail = "unknown token" if authorization else "no token"
        return http.problem(
            401,
            f"{detail}: send the read or the write token of this service as Authorization: Bearer",
            headers={"WWW-Authenticate": f"{_CHALLENGE}{error}"},
        )


@dataclass(frozen=True, slots=True)
class Access:
    """The host names beside loopback, and the tokens. Without tokens the service is for this machine alone."""

    hosts: frozenset[str] = frozenset()
    tokens: Tokens | None = None

    def knows(self, host: str) -> bool:
        """Whether a `Host` header names this service. No DNS record can make a page have an address as its host."""
        name, _, port = host.rpartition(":") if host[-1:] != "]" and ":" in host else (host, "", "")
        if port and not (port.isascii() and port.isdigit()):
            return False
        bare = name[1:-1] if name[:1] == "[" and name[-1:] == "]" else name
        if (bare == name) is (":" in name):  # IPv6 in brackets, nothing else
            return False
        known = bare.lower() in LOOPBACK | self.hosts
        return known or (self.tokens is not None and _is_address(bare))

    def accepts_origin(self, origin: str, scheme: str, host: str) -> bool:
        """Whether a page of the service itself sends the request; behind a proxy its scheme may be another."""
        schemes = (scheme, "https") if self.tokens else (scheme,)
        return origin.lower() in {f"{one}://{host}".lower() for one in schemes}


THIS_MACHINE = Access()


def digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _bearer(authorization: Sequence[str]) -> str:
    """The token of a single `Authorization: Bearer`; empty, which is nobody's token, without one."""
    if len(authorization) != 1:
        return ""
    scheme, _, token = authorization[0].partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _is_registry(path: str) -> bool:
    return path == "/registry" or path.startswith("/registry/")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
