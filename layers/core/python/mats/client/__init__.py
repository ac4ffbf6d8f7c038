"""A client of the API: typed answers, SigV4 or bearer authentication, retries.

    from mats.client import Client

    with Client("http://127.0.0.1:8080") as mats:
        for result in mats.discover("refund a card payment", limit=3).results:
            print(result.id, result.relevance)

Every error of the API is a `MatsError`: see `mats.client.errors`. What is found is called by `call`.
"""

from mats.domain.errors import CapabilityError, command_to_install

try:
    import urllib3  # noqa: F401 - an installation may lack the extra
except ModuleNotFoundError as error:
    message = f"{error.name} is not installed: {command_to_install('client')}"
    raise ModuleNotFoundError(message, name=error.name) from error

from mats.client.auth import Auth, Bearer, SigV4
from mats.client.calls import Called, Caller, call
from mats.client.client import Client, Retries
from mats.client.errors import Busy, MatsError, NotAllowed, NotFound, NotUnderstood, Refused, Unreachable, WrongRequest
from mats.domain.capability.capability import Kind
from mats.domain.learning.outcome import Event
from mats.edge.feedback import FeedbackAnswer
from mats.edge.schema import Answer, Capability, Format, Instructions, ListedCapability, Problem
from mats.edge.tools.formats import ReadyMade

__all__ = [
    "Answer", "Auth", "Bearer", "Busy", "Called", "Caller", "Capability", "CapabilityError", "Client", "Event",
    "FeedbackAnswer", "Format", "Instructions", "Kind", "ListedCapability", "MatsError", "NotAllowed", "NotFound",
    "NotUnderstood", "Problem", "ReadyMade", "Refused", "Retries", "SigV4", "Unreachable", "WrongRequest", "call",
]  # fmt: skip
