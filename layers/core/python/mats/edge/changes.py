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


class _Key(BaseModel):
    """What an event must say of the item that changed; what else it says does not matter."""

    model_config = ConfigDict(extra="ignore")

    namespace: Annotated[str, Field(min_length=1)]
    name: Annotated[str, Field(min_length=1)]


def change_of(message: Mapping[str, Any]) -> Change:
    """The change that one SQS message tells of.

    Raises:
        MessageUnreadable: no EventBridge event with a key in its detail.
    """
    try:
        event = json.loads(message["body"])
        key = _Key.model_validate(event["detail"])
        cause = Cause(event_id=event["id"], time=event["time"])
        return Change(capability_id(key.namespace, key.name), cause)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MessageUnreadable(f"not a change of a capability: {str(message.get('body'))[:200]!r}") from error
