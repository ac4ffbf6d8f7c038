"""What a command has spent on models."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from mats.bootstrap import System
from mats.local.cli.console import Exit, complain, err, out

if TYPE_CHECKING:
    from mats.evaluation.systems.costs import Forecast


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


def agree(forecasts: "Sequence[Forecast]", *, yes: bool) -> None:
    """Say what asking models will cost; end the command if that is more than nothing and nobody has agreed to it."""
    if not forecasts:
        return
    for one in forecasts:
        price = f"${one.due.usd:.2f}" if one.due.usd is not None else "price not known"
        line = (
            f"{one.what} by {one.model}: at most {one.calls:,} calls, {one.kept:,} of them kept from before; "
            f"{one.due.input_tokens:,} tokens in, {one.due.output_tokens:,} out, {price}"
        )
        err.print(Text(line), soft_wrap=True)
    known = sum(one.due.usd or 0.0 for one in forecasts)
    unknown = any(one.due.usd is None for one in forecasts)
    total = f"${known:.2f}" + (" and what models without a known price take" if unknown else "")
    err.print(Text(f"in all at most {total}, by {forecasts[0].tokenizer}'s count of tokens"), soft_wrap=True)
    if (known or unknown) and not yes:
        complain("nothing was asked and nothing spent; add --yes to go on")
        raise typer.Exit(Exit.REFUSED)
