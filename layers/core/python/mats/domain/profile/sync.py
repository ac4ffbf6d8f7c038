"""Sources of registrations, and what a sync does with one entry: docs/decisions/0042."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from mats.domain.profile.origin import fingerprint

Item: TypeAlias = Mapping[str, Any]
DESCRIBING = (
    "description", "tags", "type_tags", "examples", "negative_examples", "provider", "lifecycle", "visible_to",
)  # fmt: skip
"""Attributes that are merged one by one; the others belong together, since they say how a capability is called."""
_PART = 16  # Hexadecimal digits of the fingerprint of one attribute
GUARD = 5  # A prune that would remove more than one in so many of a source's entries needs `--force`


class SourceKind(StrEnum):
    """How a source is read."""

    DOCUMENT = "document"  # A file, a folder or an address of a known format
    MCP = "mcp"  # A live MCP server: its address, or the command that starts it
    MCP_REGISTRY = "mcp-registry"
    MCP_CARD = "mcp-card"
    ARD = "ard"
    A2A = "a2a"
    BEDROCK = "bedrock"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedSource:
    """A source that `mats sync` reads again."""

    name: str
    kind: SourceKind
    location: tuple[str, ...] = ()  # An address, a path, or a command with its arguments
    namespace: str = ""
    live: bool = False  # True if the servers that the file of an MCP client names are asked for their tools
    timeout_s: float = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRun:
    """The outcome of the latest syncs of a source; times in ISO 8601, empty if there was none."""

    tried: str = ""
    succeeded: str = ""
    error: str = ""  # Of the latest sync; empty if it succeeded
    cursor: str = ""  # Of a source that lists what changed since
    namespace: str = ""  # The source's own at that time; in another one, everything is listed again


class TrackedEntry(NamedTuple):
    """An entry of a source as it was synced last."""

    digest: str = ""  # Of the content that sync wrote; empty if sync never wrote this entry
    previous: str = ""
    """Of the content before, while a write is under way: after a crash, the registry has one of the two."""
    gone: bool = False  # True if the source no longer lists it

    def wrote(self, digest: str) -> bool:
        """True if sync wrote this content, and nobody has changed it since."""
        whole = digest.partition(" ")[0]
        return bool(whole) and whole in (self.digest.partition(" ")[0], self.previous.partition(" ")[0])


class Step(StrEnum):
    """The action of a sync for an entry that its source lists."""

    WRITE = "write"
    KEEP = "keep"  # The registry has this content
    EDITED = "edited"  # Someone else wrote other content under this id, which stays
    ELSEWHERE = "elsewhere"  # Another source that lists this id wrote it


def next_step(
    listed: str, stored: str | None, own: TrackedEntry | None, others: Collection[TrackedEntry] = (), *, first: bool
) -> Step:
    """The step for an entry with digest `listed`, where the registry has one with digest `stored` (None: nothing).

    `own` is the entry as this source's last sync left it, `others` are those of other sources under the same id. The
    `first` sync of a source writes over what is registered: see `take_over`.
    """
    own = own or TrackedEntry()
    if not own.digest and any(other.digest and not other.gone for other in others):
        return Step.ELSEWHERE
    if stored == listed:
        return Step.KEEP
    if stored is None or own.wrote(stored) or (first and not own.digest):
        return Step.WRITE
    inherited = not own.digest and any(other.wrote(stored) for other in others)
    return Step.WRITE if inherited else Step.EDITED


def merge(listed: Item, stored: Item, own: TrackedEntry) -> Item | None:
    """What a source lists, with the attributes that someone else has changed since its last sync as they are stored.

    None if that cannot be told, or if more was changed than `DESCRIBING`: then the whole entry is someone else's.
    """
    known, now = [_parts(digest) for digest in (own.digest, own.previous) if digest], _parts(content_digest(stored))
    edited = {name for name in ("", *DESCRIBING) if all(now.get(name) != parts.get(name) for parts in known)}
    if not known or "" in edited:
        return None
    return {**{n: v for n, v in listed.items() if n not in edited}, **{n: stored[n] for n in edited & stored.keys()}}


def take_over(listed: Item, stored: Item) -> Item:
    """The item of a source at its first sync, completed with attributes of `DESCRIBING` that only the registry has."""
    return {**{name: stored[name] for name in DESCRIBING if name in stored}, **listed}


def exceeds_guard(gone: int, total: int) -> bool:
    """True if a prune would remove more than a fifth of a source's entries."""
    return gone * GUARD > total


def content_digest(item: Mapping[str, Any]) -> str:
    """Fingerprints of an item, of each attribute of `DESCRIBING` that it has, and of the rest.

    They do not depend on the store: a table has no attributes that are None, and 1.0 is 1 there.
    """
    plain = {name: _plain(value) for name, value in item.items() if value is not None}
    rest = {name: value for name, value in plain.items() if name not in DESCRIBING}
    each = [f"{name}={fingerprint(plain[name])[:_PART]}" for name in DESCRIBING if name in plain]
    return " ".join([fingerprint(plain), f"={fingerprint(rest)[:_PART]}", *each])


def _parts(digest: str) -> dict[str, str]:
    """The fingerprints of a digest by attribute, that of the rest under the empty name; none in an older digest."""
    return dict(part.split("=") for part in digest.split(" ")[1:])


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
