"""An encoder for experiments that ask the same queries many times."""

from dataclasses import dataclass, field

from mats.ports import Vector
from mats.usecases.models import WrappedEncoder


@dataclass(frozen=True, slots=True)
class QueryCache(WrappedEncoder):
    """An encoder that encodes each query once."""

    vectors: dict[str, Vector] = field(default_factory=dict)

    def encode_query(self, text: str) -> Vector:
        if text not in self.vectors:
            self.vectors[text] = self.encoder.encode_query(text)
        return self.vectors[text]
