"""Wiring: the only production module that imports adapters."""

from typing import TYPE_CHECKING

from mats.adapters.dynamodb.values import to_row as dynamodb_row
from mats.bootstrap.calibration import RERANKED, Calibration, calibrated
from mats.bootstrap.models import (
    batch_bedrock,
    bedrock,
    encoder,
    prices,
    prompt,
    user_cache,
)
from mats.bootstrap.system import System
from mats.edge.app import Application
from mats.settings import Settings

if TYPE_CHECKING:
    from mats.edge.changes import ChangeProcessor

__all__ = [
    "RERANKED",
    "Calibration",
    "System",
    "application",
    "batch_bedrock",
    "bedrock",
    "calibrated",
    "change_processor",
    "dynamodb_row",
    "encoder",
    "opened",
    "prices",
    "prompt",
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


def application(settings: Settings) -> Application:
    """The application that the discovery function serves."""
    return opened(settings).application


def change_processor(settings: Settings) -> "ChangeProcessor":
    """The processor of the enrichment function."""
    return opened(settings).change_processor
