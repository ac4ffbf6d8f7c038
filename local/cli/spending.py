"""What a command has spent on models."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from local.cli.console import out
from mats.domain.usage import Usage


def spent_json(spent: Mapping[str, Usage]) -> dict[str, dict[str, Any]]:
    """Tokens and dollars by model, for scripts."""
    return {
        model: {"input_tokens": u.input_tokens, "output_tokens": u.output_tokens, "usd": u.usd}
        for model, u in spent.items()
    }


def show_spent(spent: Mapping[str, Usage]) -> None:
    """One line for each model that was asked."""
    for model, usage in spent.items():
        price = f"${usage.usd:.4f}" if usage.usd is not None else "price not known"
        line = f"{model}: {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {price}"
        out.print(Text(line, style="dim"))
