"""The context's choice of models: its faults, and how each model is invoked in a region."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from infra.inference_profiles import (
    DIRECT,
    GEOGRAPHIES,
    NOVA,
    InferenceProfile,
    ProfileUnknown,
    matches,
    profile_in,
    regions,
)
from mats.settings import TITAN

if TYPE_CHECKING:
    from infra.context import Context

ENCODER = f"{TITAN}:0"
"""The encoder on Bedrock that mats has a client for."""
_MODEL = re.compile(r"[a-z0-9-]+\.[a-z0-9.:-]+")
_PREFIXES = ("us", "us-gov", "eu", "apac", "jp", "au", "ca", "global")


def language_models(context: Context) -> tuple[str, ...]:
    """The chosen reranker and writer and those that operators may choose instead, each once."""
    chosen = (context.rerank_model, context.writer_model, *context.switch_models)
    return tuple(dict.fromkeys(model for model in chosen if model != "none"))


def is_by_region(context: Context, model: str) -> bool:
    """Whether the region decides how a model is invoked."""
    return not context.inference_profile and model in NOVA


def profile_of(context: Context, model: str, region: str) -> InferenceProfile | None:
    """The profile that a model is invoked through in a region for which there is no fault; none: directly."""
    if is_by_region(context, model):
        return profile_in(region)
    return context.profile


def model_faults(context: Context) -> Iterator[str]:
    """The faults that the choice has in every region."""
    for key, model in (
        ("rerank_model", context.rerank_model),
        ("writer_model", context.writer_model),
        *(("switch_models", model) for model in context.switch_models),
    ):
        if model.split(".")[0] in _PREFIXES:
            yield f"{key} must be without geography, not {model!r}: inference_profile says where"
        elif model != "none" and not _MODEL.fullmatch(model):
            yield f"{key} must be the id of a Bedrock model or none, not {model!r}"
    if context.encoder_model not in (ENCODER, "none"):
        yield (
            f"encoder_model must be {ENCODER} or none, not {context.encoder_model!r}: "
            "mats has no client for another encoder on Bedrock"
        )
    try:
        profile = context.profile
    except ProfileUnknown as error:
        yield f"inference_profile {error}"
        return
    if profile and profile.geography == "global":
        for model in language_models(context):
            if model in NOVA:
                yield f"inference_profile=global: {model} has no global profile; leave inference_profile out"


def region_faults(context: Context, region: str) -> Iterator[str]:
    """The faults that the choice has in this region."""
    nova = [model for model in language_models(context) if model in NOVA]
    chosen = context.inference_profile
    if not chosen and nova and region not in regions():
        yield (
            f"{region} cannot invoke {' and '.join(nova)}, neither directly nor through a known inference profile; "
            f"deploy to one of {', '.join(regions())}, or name a profile and its regions in inference_profile, as in "
            "ca:ca-central-1,ca-west-1, or choose other models"
        )
    if chosen == "none" and nova and region not in DIRECT:
        yield (
            f"inference_profile=none: {region} takes {' and '.join(nova)} through an inference profile only; "
            "leave inference_profile out"
        )
    if chosen in GEOGRAPHIES and not matches(chosen, region):
        yield f"inference_profile={chosen} cannot be called from {region}; leave inference_profile out"
