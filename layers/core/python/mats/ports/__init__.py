"""What the use cases need of the world, in domain words. No implementation."""

from mats.ports.events import Change, Clock, Event, Ids
from mats.ports.metrics import Measure, Metrics
from mats.ports.models import Encoder, Opinion, Reranker, Writer, Written
from mats.ports.search import Generations, Hit, SearchIndex, Target
from mats.ports.stores import Item, Placed, ProfileStore, Registry, Stored, TrustBook
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
    "Opinion",
    "Placed",
    "ProfileStore",
    "Registry",
    "Reranker",
    "SearchIndex",
    "Stored",
    "Target",
    "TrustBook",
    "Vector",
    "Writer",
    "Written",
]
