"""The models that settings name, built at first use, and the calibration that belongs to index and encoder."""

import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mats.domain.errors import DependencyFailed, NotInstalled, command_to_install
from mats.domain.prompts.prompt import Prompt
from mats.domain.prompts.usage import Prices, Usage
from mats.domain.search.scale import Scale
from mats.domain.search.trace import CalibrationSource
from mats.domain.search.verdict import Thresholds
from mats.ports import Encoder, Reranker, Writer
from mats.settings import MULTILINGUAL, Settings, variable_of
from mats.usecases.stages import Budgets

if TYPE_CHECKING:
    from boto3.session import Session

    from mats.adapters.bedrock.factory import Bedrock
    from mats.adapters.chat_completions.client import ChatCompletions
    from mats.adapters.llm import LanguageModels

LOGGER = logging.getLogger("mats")


@contextmanager
def needed_by(what: str, extra: str) -> Iterator[None]:
    """Import a package that is optional. Raises NotInstalled: it is missing; the `extra` has it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise NotInstalled(f"{what} needs {error.name}, which is not installed: {command_to_install(extra)}") from error


@dataclass(frozen=True)
class ConfiguredModels:
    """The models of a system; None for a model that is not configured or cannot be loaded."""

    settings: Settings
    session: "Session | None" = None
    given_encoder: Encoder | None = None  # Replaces the one that the settings name
    given_writer: Writer | None = None  # Replaces the one that the settings name

    @cached_property
    def _bedrock(self) -> "Bedrock | None":
        return bedrock(self.settings, session=self.session) if self.settings.bedrock else None

    @cached_property
    def service(self) -> "LanguageModels | None":
        """The runtime of the language models, if the settings name it.

        Raises NotPermitted: AWS's own settings cannot be used.
        """
        settings = self.settings
        return server(settings, budgets_of(settings)) if settings.llm_url else self._bedrock

    @cached_property
    def _encoder_or_reason(self) -> tuple[Encoder | None, str]:
        try:
            found = self.given_encoder or load_encoder(self.settings, self._bedrock)
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
        model = self.settings.writer_model
        if self.given_writer or model == "none" or not self.service:
            return self.given_writer
        return self.service.writer(_name(self.settings, model), prompt("enrich"))

    @cached_property
    def reranker(self) -> Reranker | None:
        return self.make_reranker(self.settings.rerank_model)

    def make_reranker(self, model: str) -> Reranker | None:
        """The reranker of a model id; None without a service, or for `none`."""
        service = None if model == "none" else self.service
        return service.reranker(_name(self.settings, model), prompt("rerank")) if service else None

    def openers(self) -> Sequence[Callable[[], object]]:
        """Functions that open connections to the models that answers need."""
        return self.service.openers() if self.service else ()

    def spending(self) -> dict[str, Usage]:
        """Tokens and dollars of this process, by model."""
        return dict(self.service.meter.totals()) if self.service else {}


def _name(settings: Settings, model: str) -> str:
    return settings.llm_for(model) if settings.llm_url and model != "none" else model


def model_names(settings: Settings) -> dict[str, str]:
    """The language model of each role, or `none`; makes no model."""
    configured = {"reranker": settings.rerank_model, "writer": settings.writer_model}
    return {role: _name(settings, model) if settings.has_llm else "none" for role, model in configured.items()}


def budgets_of(settings: Settings) -> Budgets:
    return Budgets(rerank_ms=settings.rerank_ms)


def server(settings: Settings, budgets: Budgets) -> "ChatCompletions":
    """The server of MATS_LLM_URL with these timeouts. Raises DependencyFailed: urllib3 is not installed."""
    with needed_by(variable_of("llm_url"), "local"):
        from mats.adapters.chat_completions.client import ChatCompletions  # noqa: PLC0415 - urllib3
        from mats.adapters.chat_completions.form import Output  # noqa: PLC0415
    return ChatCompletions(
        prices(),
        url=settings.llm_url,
        key=settings.llm_key,
        output=None if settings.llm_output == "auto" else Output(settings.llm_output),
        rerank_ms=budgets.rerank_ms,
        concurrency=settings.writer_calls,
    )


def prices() -> Prices:
    return Prices.parse(json.loads(packaged_text("prices.json")))


def bedrock(settings: Settings, budgets: Budgets | None = None, **more: Any) -> "Bedrock":
    """The models on Bedrock, by default with the timeouts of the service. Raises DependencyFailed: boto3 is missing."""
    budgets = budgets or budgets_of(settings)
    with needed_by("Bedrock", "aws"):
        from mats.adapters.bedrock.factory import Bedrock  # noqa: PLC0415 - boto3, for those who use Bedrock
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

    Raises DependencyFailed: boto3 is not installed, or Bedrock did not answer.
    """
    with needed_by("Bedrock", "aws"):
        from mats.adapters.bedrock.factory import list_models  # noqa: PLC0415 - boto3, for those who use Bedrock
    return list_models(settings.region)


def prompt(name: str) -> Prompt:
    return Prompt.parse(packaged_text(f"prompts/{name}.md"))


def packaged_text(path: str) -> str:
    return resources.files("mats").joinpath(path).read_text("utf-8")


def load_encoder(settings: Settings, models: "Bedrock | None" = None) -> Encoder | None:
    """The encoder that settings name; none if they say `none`.

    Raises DependencyFailed: it is not installed, cannot be fetched or stored, or AWS's own settings cannot be used.
    """
    if settings.encoder == "none":
        return None
    if settings.has_bedrock_encoder:
        return (models or bedrock(settings)).encoder(settings.encoder)
    cache = settings.cache or user_cache()
    try:
        if settings.encoder == MULTILINGUAL:
            from mats.adapters.encoder.multilingual import MultilingualEncoder  # noqa: PLC0415 - onnxruntime, as below

            return MultilingualEncoder.load(cache=cache)
        from mats.adapters.encoder.local import LocalEncoder  # noqa: PLC0415 - onnxruntime, for commands that encode

        return LocalEncoder.load(settings.encoder, cache=cache)
    except OSError as error:
        reason = "it is a file" if isinstance(error, FileExistsError) else error.strerror or error
        message = f"the encoder's files cannot be kept in {cache} ({reason}): name a folder for them with MATS_CACHE"
        raise DependencyFailed(message) from error


def user_cache() -> Path:
    """The folder for files that can be built again."""
    return Path.home() / ".cache" / "mats"


@dataclass(frozen=True, slots=True)
class Calibration:
    """Scale and thresholds for one index and encoder, and whose they are."""

    scale: Scale
    thresholds: Thresholds
    source: CalibrationSource


RERANKED = Thresholds(match=0.7, weak=0.4)
"""For relevance by the scores of a reranker, which are absolute by themselves; not fitted to one model."""


_BUILD = re.compile(r"-([0-9a-f]{8}-.+|\d+)$")
"""What the name of an encoder has after its model: the digest of its weights and their precision, or its dimension."""


def model_of(encoder: str) -> str:
    """The model of an encoder: its name without weights, precision and dimension."""
    return _BUILD.sub("", encoder)


def load_calibration(index: str, encoder: str) -> Calibration:
    """The constants for an index and an encoder, by the encoder's model: with any weights, precision and dimension.

    Fallback for a pair without calibration, with a warning: the same index with another encoder, else the first entry.
    `make calibrate` adds a pair.
    """
    table = json.loads(packaged_text("calibration.json"))
    wanted = f"{index}/{encoder}"
    fitted = next((key for key in (wanted, f"{index}/{model_of(encoder)}") if key in table), None)
    known = fitted or next((key for key in table if key.startswith(f"{index}/")), next(iter(table)))
    row = table[known]
    if fitted is None:
        LOGGER.warning("no calibration for %s; using that of %s", wanted, known)
    source = CalibrationSource(name=known, fitted=fitted is not None)
    return Calibration(Scale(**row["scale"]), Thresholds(**row["thresholds"]), source)
