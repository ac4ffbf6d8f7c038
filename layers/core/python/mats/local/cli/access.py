"""The options of `mats serve` that say who may reach it."""

import ipaddress
import re
import socket
from collections.abc import Sequence
from pathlib import Path

import typer

from mats.local.access import LOOPBACK, MIN_TOKEN, Access, Tokens, digest
from mats.settings import Settings, variable_of

_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
"""RFC 6750."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def access_to(
    host: str, *, settings: Settings, allowed: Sequence[str], read_file: Path | None, write_file: Path | None
) -> Access:
    """Who may reach a service that listens on `host`.

    Raises:
        typer.BadParameter: others could reach it without a token; the message says what to set.
    """
    tokens = _tokens(
        _token(settings.read_token, read_file, variable_of("read_token"), "--read-token-file"),
        _token(settings.write_token, write_file, variable_of("write_token"), "--write-token-file"),
    )
    if not tokens and allowed:
        raise typer.BadParameter(f"is for a service that others reach: {_WHAT_TO_SET}", param_hint="--allowed-host")
    if not tokens and not is_loopback(host):
        raise typer.BadParameter(f"{host} can be reached from elsewhere: {_WHAT_TO_SET}", param_hint="--host")
    names = frozenset(_host_name(name) for name in allowed)
    if tokens and not is_loopback(host):
        names |= {socket.gethostname().lower(), host.lower()}
    return Access(names, tokens)


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches a service that listens on this address or name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in LOOPBACK


_WHAT_TO_SET = (
    "set MATS_READ_TOKEN and MATS_WRITE_TOKEN, or give --read-token-file and --write-token-file: two different tokens "
    f"of at least {MIN_TOKEN} characters, such as `openssl rand -hex 32` prints"
)


def _tokens(read: str, write: str) -> Tokens | None:
    if not read and not write:
        return None
    if not (read and write):
        raise typer.BadParameter(f"the {'write' if read else 'read'} token is missing: {_WHAT_TO_SET}")
    if read == write:
        raise typer.BadParameter(f"the tokens are the same: {_WHAT_TO_SET}")
    return Tokens(digest(read), digest(write))


def _token(text: str, file: Path | None, variable: str, option: str) -> str:
    """A token of the environment or of a file; empty if there is neither. No message repeats it."""
    if file is None:
        token, source = text.strip(), variable
    elif text:
        raise typer.BadParameter(f"{variable} is set, too: keep one of them", param_hint=option)
    else:
        token, source = _read_file(file, option), option
    if (token or file) and (len(token) < MIN_TOKEN or not _TOKEN.fullmatch(token)):
        problem = f"holds no token of at least {MIN_TOKEN} letters, digits and -._~+/"
        raise typer.BadParameter(f"{problem}: `openssl rand -hex 32` prints one", param_hint=source)
    return token


def _read_file(file: Path, option: str) -> str:
    try:
        return file.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise typer.BadParameter(f"{file} cannot be read: {reason}", param_hint=option) from error


def _host_name(text: str) -> str:
    name = text.lower().rstrip(".")
    if not _NAME.fullmatch(name):
        raise typer.BadParameter(
            f"{text!r} is no host name: give it without scheme and port", param_hint="--allowed-host"
        )
    return name
