"""What a command has spent on models."""

from typing import Any

from rich.text import Text

from local.cli.console import out
from mats.bootstrap import Local


def spent_json(local: Local) -> dict[str, Any]:
    """Tokens and dollars by model, for scripts; nothing at all where no models are turned on."""
    if local.bedrock is None:
        return {}
    spent = {
        model: {"input_tokens": u.input_tokens, "output_tokens": u.output_tokens, "usd": u.usd}
        for model, u in local.spent().items()
    }
    return {"spent": spent}


def show_spent(local: Local) -> None:
    """One line for each model that was asked."""
    for model, usage in local.spent().items():
        price = f"${usage.usd:.4f}" if usage.usd is not None else "price not known"
        line = f"{model}: {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out, {price}"
        out.print(Text(line, style="dim"))
