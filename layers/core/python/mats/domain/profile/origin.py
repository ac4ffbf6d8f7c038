"""Fingerprints that detect a changed registration, prompt or model, and the effect of a put on an id.

Registries, dry runs, previews and the console's check all use `place`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from mats.domain.capability.registration import Registration
from mats.domain.protocols.descriptors import title_of, without_call
from mats.domain.protocols.operation_words import spoken_operation
from mats.domain.text.words import plain


class Placed(StrEnum):
    """The effect of a put on an id."""

    NEW = "new"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    OTHER_KIND = "other kind"
    """Rejected: a capability of another kind has the id, and the kind under an id cannot change."""

    @property
    def writes(self) -> bool:
        """True if the item is written."""
        return self in (Placed.NEW, Placed.CHANGED)


class Version(NamedTuple):
    """The kind of an item, if it has one, and its fingerprint."""

    kind: str | None
    digest: str


def version_of(item: Mapping[str, Any]) -> Version:
    return Version(item.get("kind"), fingerprint(item))


def place(before: Version | None, after: Version) -> Placed:
    """The effect of putting `after` over `before` (None: no item is stored)."""
    if before is None:
        return Placed.NEW
    if before.kind is not None and before.kind != after.kind:
        return Placed.OTHER_KIND
    return Placed.UNCHANGED if before.digest == after.digest else Placed.CHANGED


SCHEMA = 3  # Version of the texts derived from a registration; an increment makes stale the profiles that it concerns


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The models that make a profile: writer, prompt hash, encoder; each empty if there is none."""

    writer: str = ""
    prompt: str = ""
    encoder: str = ""

    def origin(self, registration: Registration) -> str:
        """The `origin` fingerprint: equal means equal input for the same writer and encoder."""
        return f"{_text_fingerprint(registration)}-{fingerprint([self.writer, self.prompt, self.encoder])}"


NOT_TEXT = ("version", "endpoint", "lifecycle", "visible_to")
"""Attributes that neither the writer nor the encoder reads; a profile copies them."""


def same_text(origin: str, registration: Registration) -> bool:
    """True if an origin was made from this registration's text, by any models."""
    return origin.startswith(f"{_text_fingerprint(registration)}-")


def _text_fingerprint(registration: Registration) -> str:
    """Fingerprint of the attributes that the writer and the encoder read.

    Version 2 treats titles and markup in another way than version 1, and version 3 says operations in words; other
    registrations keep their fingerprints and profiles.
    """
    text = registration.model_dump(mode="json", exclude=set(NOT_TEXT), exclude_defaults=True)
    if registration.descriptor:
        read = without_call(registration.descriptor)
        text = {**text, "descriptor": read} if read else {key: text[key] for key in text if key != "descriptor"}
    concerned = title_of(registration.descriptor) or plain(registration.description) != registration.description
    version = SCHEMA if spoken_operation(registration) else 2 if concerned else 1
    return fingerprint([version, text])


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)


def fingerprint(value: object) -> str:
    """128 bits of SHA-256 over canonical JSON."""
    return hashlib.sha256(_CANONICAL.encode(value).encode()).hexdigest()[:32]
