"""The models an evaluation may ask: the encoder on this machine, and those on Bedrock if they are turned on."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evaluation.cache import cached
from mats.ports import Encoder
from mats.settings import Settings

_CALLS_AT_ONCE = 8


@dataclass(frozen=True)
class Models:
    """What there is. Nothing is asked before a variant does."""

    settings: Settings

    @cached_property
    def encoder(self) -> Encoder | None:
        """The encoder of the settings, remembering documents; none if there is none."""
        return cached(self.settings)

    @property
    def offline(self) -> Settings:
        """The settings under which registries are filled: nobody writes or judges."""
        return replace(self.settings, writer_model="none", rerank_model="none")

    def lacking(self, needs: Collection[str]) -> str:
        """Why a variant with these needs cannot run, and what to do about it; empty if it can."""
        if "llm" in needs and not self.settings.bedrock:
            return "needs an LLM: set MATS_BEDROCK=1 and give AWS credentials"
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
