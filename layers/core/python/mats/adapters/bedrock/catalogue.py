"""Models and inference profiles that Bedrock lists in a region; for the command line, not for functions."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any

from mats.adapters.aws import call, client, unexpected_response

_TIMEOUT_S = 20
_ATTEMPTS = 3
_MAX_PAGES = 100


def list_models(region: str) -> dict[str, Any]:
    """The responses of ListFoundationModels and ListInferenceProfiles as one JSON value, times as ISO 8601.

    Raises:
        DependencyFailed: Bedrock did not answer; NotPermitted if an operator has to act.
    """
    bedrock = client(
        "bedrock", region=region, timeout_s=_TIMEOUT_S, attempts=_ATTEMPTS, connections=1, called="Bedrock"
    )
    models = call("Bedrock's list of models", bedrock.list_foundation_models)
    profiles: list[Any] = []
    cursor: dict[str, str] = {}
    for _ in range(_MAX_PAGES):
        page = call(
            "Bedrock's list of inference profiles", partial(bedrock.list_inference_profiles, maxResults=1_000, **cursor)
        )
        profiles += _list(page, "inferenceProfileSummaries")
        if not page.get("nextToken"):
            break
        cursor = {"nextToken": page["nextToken"]}
    summaries = _list(models, "modelSummaries")
    return {"modelSummaries": _json(summaries), "inferenceProfileSummaries": _json(profiles)}


def _list(answer: Mapping[str, Any], key: str) -> list[Any]:
    found = answer.get(key)
    if not isinstance(found, list):
        raise unexpected_response("Bedrock")
    return found


def _json(value: Any) -> Any:
    """The value as JSON; botocore parses times into `datetime`."""
    match value:
        case datetime():
            return value.isoformat()
        case dict():
            return {key: _json(inner) for key, inner in value.items()}
        case list():
            return [_json(inner) for inner in value]
        case _:
            return value
