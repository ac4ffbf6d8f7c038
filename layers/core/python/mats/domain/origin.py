"""Fingerprints: how a change of a registration, of a prompt or of a model is recognised."""

import hashlib
import json
from dataclasses import dataclass

from mats.domain.registration import Registration

SCHEMA = 1
"""Grows when the texts derived from a registration change, so that every profile is made anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What turns a registration into a profile: writer model, prompt hash, encoder. Empty where there is none."""

    writer: str = ""
    prompt: str = ""
    encoder: str = ""

    def origin(self, registration: Registration) -> str:
        """The `origin` fingerprint: equal means that neither the writer nor the encoder would see anything new."""
        return f"{_text_fingerprint(registration)}-{fingerprint([self.writer, self.prompt, self.encoder])}"


NOT_TEXT = ("version", "endpoint", "lifecycle", "visible_to")
"""What no writer and no encoder reads of a registration; a profile carries it over."""


def same_text(origin: str, registration: Registration) -> bool:
    """Whether an origin is of this registration's text, whatever models it names."""
    return origin.startswith(f"{_text_fingerprint(registration)}-")


def _text_fingerprint(registration: Registration) -> str:
    """What a writer and an encoder can read of a registration."""
    return fingerprint([SCHEMA, registration.model_dump(mode="json", exclude=set(NOT_TEXT), exclude_defaults=True)])


def fingerprint(value: object) -> str:
    """128 bits of SHA-256 over canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
