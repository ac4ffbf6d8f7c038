"""Tokens and dollars by model."""

import threading
from collections import defaultdict

from mats.domain.prompts.usage import Prices, Usage


class Meter:
    """Usage of this process by model; safe to use from several threads."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._totals: dict[str, Usage] = defaultdict(Usage)
        self._lock = threading.Lock()

    def add(self, model: str, input_tokens: object, output_tokens: object = 0) -> Usage:
        """Count one call; a value that is not a number of tokens counts as 0."""
        usage = self._prices.usage(model, to_count(input_tokens), to_count(output_tokens))
        with self._lock:
            self._totals[model] = self._totals[model].plus(usage)
        return usage

    def totals(self) -> dict[str, Usage]:
        """The usage of every model that was called."""
        with self._lock:
            return dict(self._totals)


def to_count(tokens: object) -> int:
    """A number of tokens; 0 for anything but a positive integer."""
    return tokens if isinstance(tokens, int) and not isinstance(tokens, bool) and tokens > 0 else 0
