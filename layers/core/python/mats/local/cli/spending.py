"""Cost of models: estimates before a command, usage after it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from mats.bootstrap import AnySystem
from mats.local.cli.output import Exit, complain, err, out, print_result

if TYPE_CHECKING:
    from experiments.baselines.costs import CostBound


def usage_json(system: AnySystem) -> dict[str, Any]:
    """Tokens and dollars by model; empty without language models."""
    if system.models.service is None:
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
        line = f"{model}: {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {dollars(usage.usd)}"
        out.print(Text(line, style="dim"))


def confirm_cost(bounds: "Sequence[CostBound]", *, yes: bool) -> None:
    """Print the most that models will cost; end the command if they are called and `--yes` was not given."""
    if not any(one.calls for one in bounds):
        return
    for one in bounds:
        line = (
            f"{one.what} by {one.model}: at most {one.calls:,} calls, {one.usage.input_tokens:,} tokens in, "
            f"{one.usage.output_tokens:,} out, {dollars(one.usage.usd)}"
        )
        err.print(Text(line), soft_wrap=True)
    known = dollars(sum(one.usage.usd or 0.0 for one in bounds))
    unknown = " and the cost of models without a known price" if any(one.usage.usd is None for one in bounds) else ""
    err.print(
        Text(
            f"total: at most {known}{unknown}; each byte of a prompt counts as a token, and English has about four "
            "bytes a token; replies in the cache cost nothing"
        ),
        soft_wrap=True,
    )
    if not yes:
        complain("no model was called: add --yes to accept the cost")
        raise typer.Exit(Exit.REFUSED)


def dollars(usd: float | None) -> str:
    """A cost to a hundredth of a cent, never rounded down to nothing."""
    if usd is None:
        return "price not known"
    return "< $0.0001" if 0 < usd < 0.0001 else f"${usd:,.4f}"
