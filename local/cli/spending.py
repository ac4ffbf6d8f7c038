"""What a command has spent on models."""

from dataclasses import asdict
from typing import Any

from rich.text import Text

from local.cli.console import out
from mats.bootstrap import System


def spent_json(system: System) -> dict[str, Any]:
    """Tokens and dollars by model, for scripts; nothing at all where no models are turned on."""
    if system.bedrock is None:
        return {}
    return {"spent": {model: asdict(usage) for model, usage in system.spent().items()}}


def show_spent(system: System) -> None:
    """One line for each model that was asked."""
    for model, usage in system.spent().items():
        price = f"${usage.usd:.4f}" if usage.usd is not None else "price not known"
        line = f"{model}: {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {price}"
        out.print(Text(line, style="dim"))
