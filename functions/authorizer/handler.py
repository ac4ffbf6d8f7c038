"""The authorizer function: API Gateway token events to policies."""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any

from mats.edge.authorizer import IssuerKeys, authorize
from mats.settings import Settings


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    return authorize(event, *_settings_and_keys())


@cache
def _settings_and_keys() -> tuple[Settings, IssuerKeys]:
    settings = Settings.from_env(os.environ)
    return settings, IssuerKeys(settings.jwt_issuer)
