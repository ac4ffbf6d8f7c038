"""What the use cases need of the world, in domain words. No implementation."""

from mats.ports.chat import ANY, FREE, Chat, Message, Told, Tool, ToolCall, Turn
from mats.ports.events import Change, Clock, Event, Ids
from mats.ports.metrics import Measure, Metrics
from mats.ports.models import Encoder, Reranker, RerankResult, Writer, Written
from mats.ports.replies import Kept, Replies
from mats.ports.search import Generations, Hit, SearchIndex, Target
from mats.ports.stores import Item, ProfileStore, Registry, Stored, TrustBook
from mats.ports.vectors import Vector

__all__ = [
    "ANY",
    "FREE",
    "Change",
    "Chat",
    "Clock",
    "Encoder",
    "Event",
    "Generations",
    "Hit",
    "Ids",
    "Item",
    "Kept",
    "Measure",
    "Message",
    "Metrics",
    "ProfileStore",
    "Registry",
    "Replies",
    "RerankResult",
    "Reranker",
    "SearchIndex",
    "Stored",
    "Target",
    "Told",
    "Tool",
    "ToolCall",
    "TrustBook",
    "Turn",
    "Vector",
    "Writer",
    "Written",
]
