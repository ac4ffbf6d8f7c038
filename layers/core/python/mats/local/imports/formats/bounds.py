"""Limits of documents, and the error for a document that exceeds them."""

from mats.domain.errors import Fault, Invalid

MAX_BYTES = 20_000_000
"""Size of a document; the largest published OpenAPI documents have 12 MB as JSON."""
MAX_YAML_BYTES = 8_000_000
"""Parsing YAML takes some twenty times as long."""
MAX_VALUES = 1_500_000
MAX_DEPTH = 60
"""Levels of nesting. An item may have 32, and a document has a few above its items."""
TOO_DEEP = f"is nested more than {MAX_DEPTH} levels deep"


class Undecodable(Invalid):
    """A document that is malformed or beyond the bounds."""

    def __init__(self, message: str) -> None:
        super().__init__([Fault("", message)])
        self.message = message


class YamlInvalid(Undecodable):
    """A text that is not YAML, as opposed to one beyond the bounds."""
