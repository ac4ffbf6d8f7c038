"""Two encoders in one vector: the default one for English, another for what that does not read. docs/decisions/0084."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mats.adapters.encoder.local import LocalEncoder
from mats.adapters.encoder.universal import UniversalEncoder
from mats.domain.search.lookups import Vector

_WEIGHT = 2.0
"""Of the second part of a document: its cosines are lower, and words say little of a request in another language."""


@dataclass(frozen=True, slots=True)
class MultilingualEncoder:
    """A document has a part of each encoder; a query has zeros in one, so that its product is that of the other alone.

    Safe to share between threads.
    """

    english: LocalEncoder
    others: UniversalEncoder

    @classmethod
    def load(cls, *, cache: Path) -> Self:
        """Both encoders. Raises EncoderMissing: one is not installed and cannot be downloaded, or is damaged."""
        return cls(LocalEncoder.load(cache=cache), UniversalEncoder.load(cache=cache))

    @property
    def name(self) -> str:
        return f"multilingual-{self.english.name}-{self.others.name}"

    @property
    def dimension(self) -> int:
        return self.english.dimension + self.others.dimension

    def reads(self, text: str) -> bool:
        return self.english.reads(text) or self.others.reads(text)

    def has_words(self, text: str) -> bool:
        return self.english.has_words(text) or self.others.has_words(text)

    def encode_query(self, text: str) -> Vector:
        if self.english.reads(text):
            return self.english.encode_query(text) + array("f", bytes(4 * self.others.dimension))
        return array("f", bytes(4 * self.english.dimension)) + self.others.encode_query(text)

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector]:
        parts = zip(self.english.encode_documents(texts), self.others.encode_documents(texts), strict=True)
        return [first + array("f", (_WEIGHT * component for component in second)) for first, second in parts]
