"""The models an evaluation may ask: the encoder on this machine, and those on Bedrock if they are turned on."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from mats import bootstrap
from mats.domain.usage import Usage
from mats.evaluation.systems.cached_converse import SqliteReplies, kept_by
from mats.evaluation.systems.cached_encoder import cached_encoder
from mats.ports import Chat, Encoder, Reranker, Writer
from mats.settings import DEFAULT_ENCODER, TITAN, Settings

if TYPE_CHECKING:
    from mats.adapters.bedrock.models import Bedrock

_CALLS_AT_ONCE = 8

PAPER_MODELS: Mapping[str, str] = {
    "Nova Micro": "amazon.nova-micro-v1:0",
    "Nova Lite": "amazon.nova-lite-v1:0",
    "Claude 3.5 Haiku": "us.anthropic.claude-3-5-haiku-20241022-v1:0",
    "Claude Sonnet 4": "us.anthropic.claude-sonnet-4-20250514-v1:0",
    "Qwen3 Next": "qwen.qwen3-next-80b-a3b",
    "Mistral Large 3": "mistral.mistral-large-3-675b-instruct",
}
"""The models of the paper's two cross-model tables by their ids for `bedrock-runtime`.

The Claude models are offered through inference profiles only: `us.` stands for the regions of the United States.
"""


class PaperEncoder(NamedTuple):
    """What MATS_ENCODER and MATS_QUERY_PREFIX must be for an encoder of the paper."""

    encoder: str
    query_prefix: str = ""
    note: str = ""


PAPER_ENCODERS: Mapping[str, PaperEncoder] = {
    "MiniLM": PaperEncoder(DEFAULT_ENCODER),
    "BGE-large": PaperEncoder(
        "BAAI/bge-large-en-v1.5", "Represent this sentence for searching relevant passages: ", "pooled by CLS"
    ),
    "ToolBench-IR": PaperEncoder(
        "ToolBench/ToolBench_IR_bert_based_uncased",
        note="if the hub has no model.safetensors of it, name a folder with the weights saved as such",
    ),
    "Titan": PaperEncoder(f"{TITAN}:0", note="on Bedrock"),
}
"""By the paper's name. Any other BERT-style encoder is named likewise, by its name on the hub or by its folder."""


@dataclass(frozen=True)
class Models:
    """What there is. Nothing is asked before a variant does."""

    settings: Settings

    @cached_property
    def encoder(self) -> Encoder | None:
        """The encoder of the settings, remembering documents, patient if it is on Bedrock; none if there is none."""
        return cached_encoder(self.settings, self._bedrock if self.settings.encoder.startswith(TITAN) else None)

    @property
    def offline(self) -> Settings:
        """The settings under which registries are filled: nobody writes or judges."""
        return replace(self.settings, writer_model="none", rerank_model="none")

    @cached_property
    def replies(self) -> SqliteReplies:
        """What models have answered before, in whatever run.

        Raises:
            StorageUnusable: the file cannot be opened.
        """
        return kept_by(self.settings)

    @cached_property
    def _bedrock(self) -> "Bedrock":
        return bootstrap.patient_bedrock(self.settings, self.replies)

    def reranker(self, model: str) -> Reranker:
        """The judge of production, by any Converse model; patient, its replies kept.

        Raises:
            DependencyFailed: boto3 is not installed; NotPermitted if AWS's own settings cannot be used.
        """
        return self._bedrock.reranker(model, bootstrap.prompt("rerank"))

    def chat(self, model: str) -> Chat:
        """A model that converses; patient, its replies kept.

        Raises:
            DependencyFailed: as for `reranker`.
        """
        return self._bedrock.chat(model)

    @cached_property
    def writer(self) -> Writer:
        """The writer of production, by the model of the settings; patient, its replies kept.

        Raises:
            DependencyFailed: as for `reranker`.
        """
        return self._bedrock.writer(self.settings.writer_model, bootstrap.prompt("enrich"))

    def spent(self) -> Mapping[str, Usage]:
        """What was spent in this process by model; what was replayed cost nothing."""
        return self._bedrock.meter.totals() if "_bedrock" in self.__dict__ else {}

    def lacking(self, needs: Collection[str]) -> str:
        """Why a variant with these needs cannot run, and what to do about it; empty if it can."""
        if "llm" in needs and not self.settings.bedrock:
            return "needs an LLM: set MATS_BEDROCK=1 and give AWS credentials"
        if "llm" in needs and self.settings.rerank_model == "none":
            return "needs an LLM: MATS_RERANK_MODEL is none"
        if "encoder" in needs and self.encoder is None:
            return "needs an encoder: MATS_ENCODER is none"
        return ""

    def at_once(self, needs: Collection[str]) -> int:
        """How many queries are asked at once: one where time is measured, more where most of it is waiting."""
        return _CALLS_AT_ONCE if "llm" in needs else 1

    def used(self, needs: Collection[str]) -> dict[str, Any]:
        """Which models a variant with these needs has asked."""
        return {
            "encoder": self.encoder.name if "encoder" in needs and self.encoder else None,
            "llm": self.settings.rerank_model if "llm" in needs else None,
        }
