"""Cost of models: a budget before a command, usage after it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from mats import bootstrap
from mats.bootstrap import AnySystem
from mats.local.cli.output import Exit, complain, out, print_result

if TYPE_CHECKING:
    from mats.evaluation.systems.models import Models


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


MaxUsd = Annotated[
    float | None, typer.Option("--max-usd", help="The most that language models may cost; replies in the cache cost 0.")
]
MaxCalls = Annotated[
    int | None, typer.Option("--max-calls", help="The most calls of language models, for models without a known price.")
]


def limit_spending(models: "Models", called: Sequence[str], max_usd: float | None, max_calls: int | None) -> None:
    """Set the limits of a run that calls models by these names; end the command if there is none to enforce.

    Recorded models cost nothing and need no limit.
    """
    if models.recordings:
        return
    unpriced = [model for model in called if bootstrap.prices().usage(model, 1, 1).usd is None]
    if max_usd is None and max_calls is None:
        complain("no model was called: set --max-usd, the most that they may cost, or --max-calls")
        raise typer.Exit(Exit.REFUSED)
    if max_calls is None and unpriced:
        complain(f"the price of {' and '.join(unpriced)} is not known: limit the calls with --max-calls")
        raise typer.Exit(Exit.REFUSED)
    models.budget.max_usd, models.budget.max_calls = max_usd, max_calls


def dollars(usd: float | None) -> str:
    """A cost to a hundredth of a cent, never rounded down to nothing."""
    if usd is None:
        return "price not known"
    return "< $0.0001" if 0 < usd < 0.0001 else f"${usd:,.4f}"
