"""Where the stages of an answer run, and how many retrievals run at once."""

import os
from concurrent.futures import ThreadPoolExecutor

from mats.adapters.threads import CallersThread, DaemonThreads, FirstComeGate
from mats.bootstrap.models import budgets_of
from mats.ports import Clock
from mats.settings import TITAN, Settings
from mats.usecases.stages import Stages

_THREADS = 256
"""Threads start on demand, and an idle one is cheap."""
_REMOTE_ENCODERS_PER_CORE = 16
"""Concurrent retrievals per core where most of a retrieval is waiting for a remote encoder; otherwise 1."""


def stages_of(settings: Settings, clock: Clock) -> Stages:
    """What waits for a network has threads and a budget; what only computes runs in the answer's own thread."""
    models = DaemonThreads(_THREADS, "model")
    return Stages(
        clock=clock,
        executor=ThreadPoolExecutor(_THREADS, "stage") if settings.in_aws else CallersThread(),
        models={
            "encode": models if settings.in_aws or _has_remote_encoder(settings) else CallersThread(),
            "rerank": models,
        },
        budgets=budgets_of(settings),
    )


def retrieval_gate(settings: Settings) -> FirstComeGate:
    """The limit of concurrent retrievals."""
    per_core = _REMOTE_ENCODERS_PER_CORE if _has_remote_encoder(settings) else 1
    return FirstComeGate((os.cpu_count() or 1) * per_core)


def _has_remote_encoder(settings: Settings) -> bool:
    return settings.encoder.startswith(TITAN)
