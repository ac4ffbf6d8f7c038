"""Tokens and cost of model calls."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and cost of one or more calls; `usd` is None if a price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0

    def plus(self, other: "Usage", times: int = 1) -> "Usage":
        """The sum; with -1 `times` the other, an earlier total, the difference to it."""
        return Usage(
            input_tokens=self.input_tokens + times * other.input_tokens,
            output_tokens=self.output_tokens + times * other.output_tokens,
            usd=None if self.usd is None or other.usd is None else self.usd + times * other.usd,
        )

    @classmethod
    def total(cls, usages: Iterable["Usage"]) -> "Usage":
        return reduce(cls.plus, usages, cls())


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million input and output tokens, by a substring of the model's id (family and size)."""

    by_model: Mapping[str, tuple[float, float]]

    @classmethod
    def parse(cls, table: Mapping[str, object]) -> Self:
        """Parse the format of `prices.json`: `{"models": {"amazon.nova-micro": [0.035, 0.14]}}`."""
        models = table["models"]
        if not isinstance(models, Mapping):
            raise TypeError("prices need a table of models")
        return cls({name: (float(price[0]), float(price[1])) for name, price in models.items()})

    def usage(self, model: str, input_tokens: int, output_tokens: int) -> Usage:
        """The usage of a call; the longest name contained in the model's id sets the price."""
        name = max((name for name in self.by_model if name in model), key=len, default="")
        price = self.by_model.get(name)
        usd = (input_tokens * price[0] + output_tokens * price[1]) / 1e6 if price else None
        return Usage(input_tokens=input_tokens, output_tokens=output_tokens, usd=usd)
