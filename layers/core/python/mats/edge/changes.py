"""Reading SQS batches of EventBridge events: which capabilities changed."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.capability import capability_id
from mats.domain.profile import Cause
from mats.ports import Change


class MessageUnreadable(ValueError):
    """A message is not one of ours; it belongs in the dead-letter queue."""


class _Text(BaseModel):
    """A string as DynamoDB types it."""

    model_config = ConfigDict(extra="forbid")

    S: Annotated[str, Field(min_length=1)]


class _Keys(BaseModel):
    """The key of the item that changed."""

    model_config = ConfigDict(extra="ignore")

    namespace: _Text
    name: _Text


class _Detail(BaseModel):
    """What an event must say; what else it says does not matter."""

    model_config = ConfigDict(extra="ignore")

    keys: _Keys


def change_of(message: Mapping[str, Any]) -> Change:
    """The change that one SQS message tells of.

    Raises:
        MessageUnreadable: no EventBridge event with a key in its detail.
    """
    try:
        event = json.loads(message["body"])
        keys = _Detail.model_validate(event["detail"]).keys
        cause = Cause(event_id=event["id"], time=event["time"])
        return Change(capability_id(keys.namespace.S, keys.name.S), cause)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MessageUnreadable(f"not a change of a capability: {str(message.get('body'))[:200]!r}") from error
