"""Interfaces of the use cases to stores, index, models and clock, in domain terms. No implementation."""

from mats.ports.clock import Clock, Ids
from mats.ports.exposure import Exposure, ExposureLog, ProviderExposure
from mats.ports.listing import ListedProfile, Listing, ProfileChanges
from mats.ports.metrics import NO_DIMENSIONS, Measure, Metrics
from mats.ports.models import NO_LABELS, Encoder, Labels, Reranker, RerankResult, Writer, Written
from mats.ports.queue import Change, DeadLetter, QueuedChange, QueueDepth, QueueMonitor
from mats.ports.search import CandidateIndex, Generations, Hit, SearchIndex, Target
from mats.ports.stores import (
    ConditionalRegistry,
    Item,
    Precondition,
    ProfileStore,
    Registry,
    Stored,
    TaggedItem,
    TrustBook,
)
from mats.ports.switch import OFF, ModelChoice, ModelSwitch, SwitchedRole
from mats.ports.vectors import Vector

__all__ = [
    "NO_DIMENSIONS",
    "NO_LABELS",
    "OFF",
    "CandidateIndex",
    "Change",
    "Clock",
    "ConditionalRegistry",
    "DeadLetter",
    "Encoder",
    "Exposure",
    "ExposureLog",
    "Generations",
    "Hit",
    "Ids",
    "Item",
    "Labels",
    "ListedProfile",
    "Listing",
    "Measure",
    "Metrics",
    "ModelChoice",
    "ModelSwitch",
    "Precondition",
    "ProfileChanges",
    "ProfileStore",
    "ProviderExposure",
    "QueueDepth",
    "QueueMonitor",
    "QueuedChange",
    "Registry",
    "RerankResult",
    "Reranker",
    "SearchIndex",
    "Stored",
    "SwitchedRole",
    "TaggedItem",
    "Target",
    "TrustBook",
    "Vector",
    "Writer",
    "Written",
]
