"""`mats switch`."""

from typing import Annotated

import typer

from mats.bootstrap import open_system
from mats.domain.errors import Fault, RequestInvalid
from mats.local.cli.output import AsJson, print_result
from mats.ports import ModelSwitch
from mats.settings import Settings

_CONFIGURED = "default"
_MODEL = "A Converse model id or ARN, `none` to turn it off, or `default` for the configured model."


def switch(
    context: typer.Context,
    rerank: Annotated[str | None, typer.Option(metavar="MODEL", help=f"The reranker: {_MODEL}")] = None,
    writer: Annotated[str | None, typer.Option(metavar="MODEL", help=f"The writer: {_MODEL}")] = None,
    show: Annotated[bool, typer.Option("--show", help="Show the choice and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Turn off or replace a model of the system in AWS without a deployment. Takes effect within a minute.

    The functions' roles must allow the model; otherwise answers are degraded, and the log names the cause. After a
    switch of the writer, `mats backfill` renews the profiles of the one before.
    """
    if show and (rerank or writer):
        raise typer.BadParameter("--show changes nothing: leave out --rerank and --writer")
    settings: Settings = context.obj
    choices = _open(settings)
    if rerank is not None:
        choices.choose("rerank", _model(rerank, "--rerank"))
    if writer is not None:
        choices.choose("writer", _model(writer, "--writer"))
    chosen = choices.load()
    switched = {"rerank_model": chosen.rerank, "writer_model": chosen.writer}
    configured = {"rerank_model": settings.rerank_model, "writer_model": settings.writer_model}
    models = {name: model or configured[name] for name, model in switched.items()}
    text = "\n".join(
        f"{name}: {model} ({'switched' if switched[name] else 'as configured'})" for name, model in models.items()
    )
    print_result({**models, "switched": switched}, text, as_json=as_json)


def _open(settings: Settings) -> ModelSwitch:
    found = open_system(settings).stores.model_switch if settings.in_aws else None
    if found is None:
        fault = "works in AWS only: set MATS_SWITCHES_TABLE and the other settings of the functions"
        raise RequestInvalid([Fault("", f"mats switch {fault}; elsewhere, set MATS_RERANK_MODEL or MATS_WRITER_MODEL")])
    return found


def _model(text: str, option: str) -> str | None:
    """The choice for the text of an option; None for the configured model."""
    if not text.strip():
        raise RequestInvalid([Fault(option, "must be a model id, `none` or `default`")])
    return None if text == _CONFIGURED else text.strip()
