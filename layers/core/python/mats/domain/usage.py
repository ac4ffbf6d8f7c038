"""What model calls cost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call or of many, and what they cost; `usd` is None where a price is not known."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0

    def plus(self, other: "Usage") -> "Usage":
        """Both together."""
        known = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            usd=known,
        )

    def minus(self, other: "Usage") -> "Usage":
        """What this has more than an earlier total."""
        known = None if self.usd is None or other.usd is None else self.usd - other.usd
        return Usage(
            input_tokens=self.input_tokens - other.input_tokens,
            output_tokens=self.output_tokens - other.output_tokens,
            usd=known,
        )

    @classmethod
    def total(cls, usages: Iterable["Usage"]) -> "Usage":
        """All of them together."""
        return reduce(cls.plus, usages, cls())


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars per million tokens in and out, by the part of a model's id that tells its family and size."""

    by_model: Mapping[str, tuple[float, float]]

    @classmethod
    def parse(cls, table: Mapping[str, object]) -> Self:
        """Prices as `prices.json` has them: `{"models": {"amazon.nova-micro": [0.035, 0.14]}}`."""
        models = table["models"]
        if not isinstance(models, Mapping):
            raise TypeError("prices need a table of models")
        return cls({name: (float(price[0]), float(price[1])) for name, price in models.items()})

    def usage(self, model: str, input_tokens: int, output_tokens: int) -> Usage:
        """The usage of a call; the longest name that is part of the model's id has its price."""
        name = max((name for name in self.by_model if name in model), key=len, default="")
        price = self.by_model.get(name)
        usd = (input_tokens * price[0] + output_tokens * price[1]) / 1e6 if price else None
        return Usage(input_tokens=input_tokens, output_tokens=output_tokens, usd=usd)
