"""An encoder for experiments that ask the same queries many times."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from mats.ports import Encoder, Vector


@dataclass(frozen=True, slots=True)
class QueryCache:
    """An encoder that encodes each query once."""

    encoder: Encoder
    vectors: dict[str, Vector] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def dimension(self) -> int:
        return self.encoder.dimension

    def encode_query(self, text: str) -> Vector:
        if text not in self.vectors:
            self.vectors[text] = self.encoder.encode_query(text)
        return self.vectors[text]

    def encode_documents(self, texts: Sequence[str]) -> Sequence[Vector | None]:
        return self.encoder.encode_documents(texts)
