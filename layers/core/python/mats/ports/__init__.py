"""What the use cases need of the world, in domain words. No implementation."""

from mats.ports.events import Change, Clock, Event, Ids
from mats.ports.metrics import Measure, Metrics
from mats.ports.models import Encoder, Reranker, RerankResult, Writer, Written
from mats.ports.search import Generations, Hit, SearchIndex, Target
from mats.ports.stores import Item, ProfileStore, Registry, Stored, TrustBook
from mats.ports.vectors import Vector

__all__ = [
    "Change",
    "Clock",
    "Encoder",
    "Event",
    "Generations",
    "Hit",
    "Ids",
    "Item",
    "Measure",
    "Metrics",
    "ProfileStore",
    "Registry",
    "RerankResult",
    "Reranker",
    "SearchIndex",
    "Stored",
    "Target",
    "TrustBook",
    "Vector",
    "Writer",
    "Written",
]
