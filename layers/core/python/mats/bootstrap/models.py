"""The models that settings name: on Bedrock, or an encoder on this machine. Each is built at first use."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mats.domain.errors import DependencyFailed
from mats.domain.prompt import Prompt
from mats.domain.usage import Prices, Usage
from mats.ports import Encoder, Reranker, Writer
from mats.settings import TITAN, Settings
from mats.usecases.stages import Budgets

if TYPE_CHECKING:
    from boto3.session import Session

    from mats.adapters.bedrock.factory import Bedrock

BUDGETS = Budgets()
BATCH_BUDGETS = Budgets(encode_ms=60_000, retrieve_ms=60_000, rerank_ms=120_000)
"""Timeouts of an evaluation, for which a lost answer is worse than a late one."""
_BATCH_ATTEMPTS = 8


@dataclass(frozen=True)
class ConfiguredModels:
    """The models of a system; None for a model that is not configured or cannot be loaded."""

    load_bedrock: Callable[[], "Bedrock | None"]
    load_encoder: Callable[[], Encoder | None]
    load_writer: Callable[[], Writer | None]
    load_reranker: Callable[[], Reranker | None]
    make_writer: Callable[[str], Writer | None]
    """The writer of a model id; None without Bedrock."""
    make_reranker: Callable[[str], Reranker | None]
    """The reranker of a model id; None without Bedrock."""

    @cached_property
    def bedrock(self) -> "Bedrock | None":
        """The models on Bedrock, if the settings turn them on.

        Raises:
            NotPermitted: AWS's own settings cannot be used.
        """
        return self.load_bedrock()

    @cached_property
    def _encoder_or_reason(self) -> tuple[Encoder | None, str]:
        try:
            found = self.load_encoder()
        except DependencyFailed as error:
            return None, str(error)
        return found, "" if found else "MATS_ENCODER is none"

    @property
    def encoder(self) -> Encoder | None:
        """The encoder; if there is none, `without_encoder` has the reason."""
        return self._encoder_or_reason[0]

    @property
    def encoder_name(self) -> str:
        """The name of the encoder; empty if there is none."""
        return self.encoder.name if self.encoder else ""

    @property
    def without_encoder(self) -> str:
        """Why there is no encoder; empty if there is one."""
        return self._encoder_or_reason[1]

    @cached_property
    def writer(self) -> Writer | None:
        """The model that writes the five fields."""
        return self.load_writer()

    @cached_property
    def reranker(self) -> Reranker | None:
        """The model that scores candidates."""
        return self.load_reranker()

    def openers(self) -> Sequence[Callable[[], object]]:
        """Functions that open connections to the models that answers need."""
        return self.bedrock.openers() if self.bedrock else ()

    def spending(self) -> dict[str, Usage]:
        """Tokens and dollars of this process, by model."""
        return self.bedrock.meter.totals() if self.bedrock else {}


def configured_models(
    settings: Settings,
    session: "Session | None" = None,
    *,
    encoder: Encoder | None = None,
    writer: Writer | None = None,
) -> ConfiguredModels:
    """The models that settings name; a model given as an argument replaces the named one."""

    @cache
    def runtime() -> "Bedrock | None":
        return bedrock(settings, session)

    def make_writer(model: str) -> Writer | None:
        named = model != "none" and runtime()
        return named.writer(model, prompt("enrich")) if named else None

    def make_reranker(model: str) -> Reranker | None:
        named = model != "none" and runtime()
        return named.reranker(model, prompt("rerank")) if named else None

    return ConfiguredModels(
        load_bedrock=runtime,
        load_encoder=lambda: encoder or load_encoder(settings, runtime()),
        load_writer=lambda: writer or make_writer(settings.writer_model),
        load_reranker=lambda: make_reranker(settings.rerank_model),
        make_writer=make_writer,
        make_reranker=make_reranker,
    )


def bedrock(settings: Settings, session: "Session | None" = None) -> "Bedrock | None":
    """The models on Bedrock with the service's timeouts, if the settings turn them on; they share this session.

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
    """Prices per token of the models."""
    return Prices.parse(json.loads(packaged_text("prices.json")))


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
    """The models and inference profiles in the region of these settings; needs AWS credentials, calls no model.

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
    return Prompt.parse(packaged_text(f"prompts/{name}.md"))


def packaged_text(path: str) -> str:
    """A text file that comes with the code."""
    return resources.files("mats").joinpath(path).read_text("utf-8")


def load_encoder(settings: Settings, models: "Bedrock | None" = None) -> Encoder | None:
    """The encoder that settings name; none if they say `none`.

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
    """The folder for files that can be built again."""
    return Path.home() / ".cache" / "mats"
