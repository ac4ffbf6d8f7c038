"""The versions function: deletes old versions of the discovery function."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from mats.bootstrap.versions import prune_versions
from mats.settings import Settings, on_lambda
from mats.usecases.prune_versions import PruneVersions


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """The entry point of the Lambda function."""
    return {**event, "done": True, "deleted": list(_prune()())}


@cache
def _prune() -> PruneVersions:
    """Built once per execution environment."""
    return prune_versions(Settings.from_env(os.environ))


if on_lambda(os.environ):
    _prune()  # during Lambda's init phase
