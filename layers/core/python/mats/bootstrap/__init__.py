"""Wiring: the only production module that imports adapters."""

from mats.adapters.dynamodb.values import to_row as dynamodb_row
from mats.bootstrap.calibration import RERANKED, Calibration, calibrated
from mats.bootstrap.models import (
    PATIENCE,
    bedrock,
    encoder,
    patient_bedrock,
    prices,
    prompt,
    rehearsal,
    user_cache,
)
from mats.bootstrap.system import Discovery, Enrichment, System
from mats.settings import Settings

__all__ = [
    "PATIENCE",
    "RERANKED",
    "Calibration",
    "Discovery",
    "Enrichment",
    "System",
    "bedrock",
    "calibrated",
    "discovery",
    "dynamodb_row",
    "encoder",
    "enrichment",
    "opened",
    "patient_bedrock",
    "prices",
    "prompt",
    "rehearsal",
    "user_cache",
]


def opened(settings: Settings) -> System:
    """The system that settings name: the one in an AWS account if they say where its index is, else the local one.

    Raises:
        StorageUnusable: the local registry cannot be opened; the message says what to do.
        NotPermitted: AWS's own settings cannot be used.
    """
    if settings.in_aws:
        from mats.bootstrap.cloud import Cloud  # noqa: PLC0415 - boto3 and opensearch-py, for those who use AWS

        return Cloud(settings)
    from mats.bootstrap.local import Local  # noqa: PLC0415 - sqlite3, which the functions in AWS do not need

    return Local(settings)


def discovery(settings: Settings) -> Discovery:
    """What the discovery function serves."""
    return opened(settings).discovery


def enrichment(settings: Settings) -> Enrichment:
    """What the enrichment function runs."""
    return opened(settings).enrichment
