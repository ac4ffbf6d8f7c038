"""The instructions of a skill, as they are served."""

from mats.domain.capability.capability import Kind
from mats.domain.capability.registration import Registration

MAX_INSTRUCTIONS_BYTES = 64_000
"""Longer instructions are truncated: they would fill a model's context."""


def instructions_of(registration: Registration) -> str:
    """A skill's instructions, cut off after MAX_INSTRUCTIONS_BYTES with a line that says so."""
    text = (registration.descriptor or {}).get("instructions")
    if registration.kind is not Kind.SKILL or not isinstance(text, str):
        return ""
    whole = text.strip()
    kept = whole.encode()[:MAX_INSTRUCTIONS_BYTES].decode(errors="ignore")
    return whole if kept == whole else f"{kept}\n\n[truncated: {len(kept):,} of {len(whole):,} characters]"
