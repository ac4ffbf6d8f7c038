"""The models that settings name: on Bedrock, or an encoder on this machine."""

import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mats.domain.errors import DependencyFailed
from mats.domain.prompt import Prompt
from mats.domain.usage import Prices
from mats.ports import Encoder
from mats.settings import TITAN, Settings
from mats.usecases.stages import Budgets

if TYPE_CHECKING:
    from boto3.session import Session

    from mats.adapters.bedrock.factory import Bedrock

BUDGETS = Budgets()


BATCH_BUDGETS = Budgets(encode_ms=60_000, retrieve_ms=60_000, rerank_ms=120_000)
"""Timeouts of an evaluation, for which a lost answer is worse than a late one."""
_BATCH_ATTEMPTS = 8


def bedrock(settings: Settings, session: "Session | None" = None) -> "Bedrock | None":
    """The models on Bedrock as the service asks them, if the settings turn them on; they share this session.

    Raises:
        DependencyFailed: boto3 is not installed.
    """
    return _bedrock(settings, BUDGETS, session=session) if settings.bedrock else None


def batch_bedrock(settings: Settings) -> "Bedrock":
    """The models on Bedrock with long timeouts and many attempts, for an evaluation.

    Raises:
        DependencyFailed: boto3 is not installed.
    """
    return _bedrock(settings, BATCH_BUDGETS, attempts=_BATCH_ATTEMPTS)


def prices() -> Prices:
    """What models cost."""
    return Prices.parse(json.loads(resource("prices.json")))


def _bedrock(settings: Settings, budgets: Budgets, **more: Any) -> "Bedrock":
    try:
        from mats.adapters.bedrock.factory import Bedrock  # noqa: PLC0415 - boto3, for those who use Bedrock
    except ModuleNotFoundError as error:
        raise DependencyFailed(
            f"Bedrock needs {error.name}, which is not installed: pip install 'mats[aws]'"
        ) from error
    return Bedrock(
        prices(),
        region=settings.region,
        rerank_ms=budgets.rerank_ms,
        encode_ms=budgets.encode_ms,
        concurrency=settings.writer_calls,
        **more,
    )


def bedrock_catalogue(settings: Settings) -> dict[str, Any]:
    """What Bedrock lists in the region of these settings; AWS's own credentials are enough, no model is called.

    Raises:
        DependencyFailed: boto3 is not installed, or Bedrock did not answer.
    """
    try:
        from mats.adapters.bedrock import catalogue  # noqa: PLC0415 - boto3, for those who use Bedrock
    except ModuleNotFoundError as error:
        raise DependencyFailed(
            f"Bedrock needs {error.name}, which is not installed: pip install 'mats[aws]'"
        ) from error
    return catalogue.list_models(settings.region)


def prompt(name: str) -> Prompt:
    """A prompt of `prompts/`."""
    return Prompt.parse(resource(f"prompts/{name}.md"))


def resource(path: str) -> str:
    """A text file that comes with the code."""
    return resources.files("mats").joinpath(path).read_text("utf-8")


def encoder(settings: Settings, models: "Bedrock | None" = None) -> Encoder | None:
    """The encoder these settings name; none if they say `none`.

    Raises:
        DependencyFailed: it is not installed, cannot be fetched, or AWS's own settings cannot be used.
    """
    if settings.encoder == "none":
        return None
    if settings.encoder.startswith(TITAN):
        models = models or bedrock(settings)
        return models.encoder(settings.encoder) if models else None
    from mats.adapters.encoder.local import LocalEncoder  # noqa: PLC0415 - onnxruntime, for commands that encode

    return LocalEncoder.load(
        settings.encoder,
        cache=settings.cache or user_cache(),
        precision="fp32" if settings.encoder_precision == "fp32" else "int8",
        query_prefix=settings.query_prefix,
    )


def user_cache() -> Path:
    """The folder for what can be made again."""
    return Path.home() / ".cache" / "mats"
