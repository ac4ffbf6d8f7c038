"""Prices of AWS services and models, and lines of a bill."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from infra.traffic import CannotEstimate
from infra.vendor import ROOT
from mats.domain.prompts.usage import Prices

_MODEL_PRICES = ROOT / "layers" / "core" / "python" / "mats" / "prices.json"
_PRICES = Path(__file__).with_name("prices.json")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the bill. `usd` is `quantity` × `price` / `per`."""

    service: str
    quantity: float
    unit: str
    price: float
    per: int
    why: str
    fixed: bool = False

    @property
    def usd(self) -> float:
        """Dollars a month."""
        return self.quantity * self.price / self.per

    @property
    def formula(self) -> str:
        """The formula as text."""
        quantity = f"{self.quantity:,.0f}" if self.quantity >= 100 else f"{self.quantity:.3g}"
        price = f"{self.price:.10f}".rstrip("0").rstrip(".")
        return f"{quantity} {self.unit} × ${price}" + (f" / {self.per:,}" if self.per != 1 else "")


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices with their source."""

    table: Mapping[str, Any]
    models: Prices

    @classmethod
    def load(cls) -> Self:
        """Load the prices in the repository."""
        return cls(load_json(_PRICES), Prices.parse(load_json(_MODEL_PRICES)))

    def line(self, key: str, quantity: float, why: str, *, fixed: bool = False) -> Line:
        """A line at the price of this key.

        Raises:
            CannotEstimate: it has no price.
        """
        if key not in self.table["prices"]:
            raise CannotEstimate(f"{_PRICES.name} has no price of {key}")
        price = self.table["prices"][key]
        return Line(price["service"], quantity, price["unit"], price["usd"], price["per"], why, fixed)

    def tokens(self, model: str, calls: int, per_call: tuple[float, float], why: str) -> Iterator[Line]:
        """Lines for the input and output tokens of a model."""
        names = ("tokens in", "tokens out")
        for name, each, one in zip(names, per_call, ((10**6, 0), (0, 10**6)), strict=True):
            million = self.models.usage(model, *one).usd
            if million is None:
                raise CannotEstimate(f"the price of {model} is not known; add it to mats/prices.json")
            if each:
                yield Line(f"Bedrock {model}", calls * each, name, million, 10**6, f"{calls:,} × {each:,.0f} {why}")


def load_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))
