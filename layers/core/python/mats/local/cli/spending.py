"""Cost of models: estimates before a command, usage after it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from mats.bootstrap import AnySystem
from mats.local.cli.output import Exit, complain, err, out, print_result

if TYPE_CHECKING:
    from mats.evaluation.systems.costs import CostEstimate


def usage_json(system: AnySystem) -> dict[str, Any]:
    """Tokens and dollars by model; empty without Bedrock."""
    if system.models.bedrock is None:
        return {}
    return {"spent": {model: asdict(usage) for model, usage in system.models.spending().items()}}


def print_with_usage(system: AnySystem, value: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print an outcome as JSON or text, with the usage of models."""
    print_result({**value, **usage_json(system)}, text, as_json=as_json)
    if not as_json:
        print_usage(system)


def print_usage(system: AnySystem) -> None:
    """Print a line per model that was called."""
    for model, usage in system.models.spending().items():
        price = f"${usage.usd:.4f}" if usage.usd is not None else "price not known"
        line = f"{model}: {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {price}"
        out.print(Text(line, style="dim"))


def confirm_cost(estimates: "Sequence[CostEstimate]", *, yes: bool) -> None:
    """Print cost estimates; end the command if there are any and `--yes` was not given."""
    if not any(one.calls for one in estimates):
        return
    from mats.evaluation.systems.costs import TOKENIZER  # noqa: PLC0415 - evaluation's libraries

    for one in estimates:
        price = f"${one.usage.usd:.2f}" if one.usage.usd is not None else "price not known"
        line = (
            f"{one.what} by {one.model}: at most {one.calls:,} calls, about {one.usage.input_tokens:,} tokens in, "
            f"{one.usage.output_tokens:,} out, {price}"
        )
        err.print(Text(line), soft_wrap=True)
    known = sum(one.usage.usd or 0.0 for one in estimates)
    unknown = any(one.usage.usd is None for one in estimates)
    total = f"${known:.2f}" + (" and the cost of models without a known price" if unknown else "")
    err.print(Text(f"total: about {total} (tokens by {TOKENIZER}); replies in the cache cost nothing"), soft_wrap=True)
    if not yes:
        complain("no model was called: add --yes to accept the cost")
        raise typer.Exit(Exit.REFUSED)
