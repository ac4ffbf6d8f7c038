"""Named bearer tokens of a service: a private file with their scopes and hashes."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter

from mats.bootstrap.local import WriteInProgress, replacing
from mats.domain.errors import DependencyFailed, Fault, NotPossible, StorageUnusable
from mats.domain.learning.outcome import SHARED
from mats.edge.route import TokenScope

TOKENS = "mats.tokens"
OWN = "operator.token"
_MIN_TOKEN = 32  # Characters; `openssl rand -hex 32` gives 64
_PREFIX = "mats_"  # Scanners for secrets recognise it
_SUBJECT = "token:"


@dataclass(frozen=True, slots=True)
class Token:
    """A token; `digest` is its SHA-256: it has 256 random bits, so that no salt and no slow hash are needed."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")
    name: str
    scope: TokenScope
    digest: str = field(repr=False)
    made: str = ""  # ISO 8601; empty: in a file of its own, for everybody who reads it

    @property
    def caller(self) -> str:
        """Its caller in receipts."""
        return caller_of(self.name) if self.made else SHARED


def caller_of(name: str) -> str:
    """The caller in receipts of whoever has the token of this name."""
    return f"{_SUBJECT}{name}"


_TOKENS = TypeAdapter(list[Token])


def _random() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def own_token(home: Path) -> str:
    """The token of whoever may read the folder, with the scope `operate`; made when there is none, in a private file.

    Raises StorageUnusable: the file cannot be read or written, or what it holds is no token. DependencyFailed: another
    start is writing it.
    """
    file = home / OWN
    if not file.exists():
        with _replacing(file) as partial:  # another start may have made it by now
            partial.write_text(file.read_text() if file.exists() else _random())
    try:
        token = file.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise StorageUnusable(f"{file} cannot be read: {error}") from error
    if len(token) < _MIN_TOKEN:
        raise StorageUnusable(f"{file} holds no token: remove it, and the next start makes one")
    return token


@contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    try:
        with replacing(file) as partial:
            yield partial
    except WriteInProgress as error:
        raise DependencyFailed("another process changes the tokens; try again") from error
    except OSError as error:
        raise StorageUnusable(f"{file} cannot be written: {error.strerror}") from error


class TokenBook:
    """The tokens of a folder, which is read again when they change, and `others`. Safe to share between threads.

    Every method raises StorageUnusable: the file cannot be read; nobody has a token then.
    """

    def __init__(self, home: Path, others: Sequence[Token] = ()) -> None:
        self._file, self._others = home / TOKENS, others
        self._read: tuple[object, Sequence[Token]] = (None, ())

    def all(self) -> Sequence[Token]:
        return [*self._others, *self._read_file()]

    def find(self, token: str) -> Token | None:
        """The token, if it is one; the time does not tell how much of it is right."""
        sent = digest(token).encode()
        return next(iter([one for one in self.all() if hmac.compare_digest(one.digest.encode(), sent)]), None)

    def add(self, name: str, scope: TokenScope, made: str) -> str:
        """Make a token, which nothing can show again. Raises NotPossible: the name is taken."""
        token = _random()
        with self._changing() as tokens:
            if name in tokens:
                raise NotPossible([Fault("", f"there is a token {name!r} already: revoke it first")])
            tokens[name] = Token(name, scope, digest(token), made)
        return token

    def revoke(self, name: str) -> None:
        """Withdraw a token; running services refuse it from now on. Raises NotPossible: there is none."""
        with self._changing() as tokens:
            if tokens.pop(name, None) is None:
                raise NotPossible([Fault("", f"no token {name[:80]!r}: `mats token list` shows them")])

    def _read_file(self) -> Sequence[Token]:
        try:
            found = self._file.stat()
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise StorageUnusable(f"{self._file} cannot be read: {error.strerror}") from error
        version, tokens = self._read
        current = (found.st_ino, found.st_size, found.st_mtime_ns)
        if version != current:
            tokens = self._load()
            self._read = current, tokens
        return tokens

    def _load(self) -> Sequence[Token]:
        try:
            return _TOKENS.validate_json(self._file.read_bytes())
        except (OSError, ValueError) as error:
            raise StorageUnusable(f"{self._file} is damaged: remove it, and make the tokens again") from error

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Token]]:
        with _replacing(self._file) as partial:
            tokens = {token.name: token for token in self._read_file()}
            yield tokens
            partial.write_text(json.dumps([asdict(token) for token in tokens.values()]))
