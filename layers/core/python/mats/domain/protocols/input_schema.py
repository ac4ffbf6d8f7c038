"""The JSON Schema of a capability's input, as a profile carries it."""

import json

from mats.domain.capability.registration import Registration

MAX_SCHEMA_BYTES = 32_000
"""A larger input schema is left out: too large for a model's context."""


def input_schema_of(registration: Registration) -> str:
    """The input schema as JSON text, so that stores need not nest it and ranking need not parse it."""
    described = (registration.descriptor or {}).get("inputSchema")
    schema = registration.input_schema or (described if isinstance(described, dict) else None)
    text = json.dumps(schema, separators=(",", ":"), ensure_ascii=False) if schema else ""
    return text if len(text.encode()) <= MAX_SCHEMA_BYTES else ""
