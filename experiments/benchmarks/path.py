"""Benchmark of the code's own weight: files and functions of `mats` that a query, and a change, pass on one machine."""

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import mats
from mats.bootstrap import models
from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import Cause
from mats.edge.http import Request
from mats.edge.routes import respond
from mats.evaluation.data.datasets import sample
from mats.evaluation.systems.workbench import index_changes, registry_of
from mats.ports import Change
from mats.settings import Settings

_ROOT = f"{Path(mats.__file__).parent}/"
_QUERY = Request(method="POST", path="/discover", body=json.dumps({"query": "refund a card payment"}).encode())
_TOOL = {"namespace": "org.example", "kind": "tool", "description": "Counts the cups in a cupboard.", "tags": ["home"]}


def path(data: Path, settings: Settings) -> dict[str, Any]:
    """Of a query that was asked before, over the sample registry, and of a capability from its event to the index."""
    dataset, encoder = sample(), models.load_encoder(settings)
    cups, mugs = (Registration.parse({**_TOOL, "name": name}) for name in ("cups", "mugs"))
    with registry_of(dataset.registrations, settings, encoder=encoder, trust=dataset.trust) as local:
        for _ in range(2):
            respond(local.application, _QUERY)
        query = _passed(lambda: respond(local.application, _QUERY))
        local.stores.registry.put([cups, mugs])
        index_changes(local, [cups.id])
        changes = {"1": Change(mugs.id, Cause(event_id="1", time=local.clock.now()))}
        processor = local.change_processor
        return {"query": query, "event": _passed(lambda: processor.process(changes))}


def _passed(work: Callable[[], object]) -> dict[str, int | list[str]]:
    """The files below `mats` and the number of functions in them that a call runs, in threads that it starts, too.

    Lambdas, comprehensions and what dataclasses generate are not counted.
    """
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_ROOT):
            codes.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    named = [code for code in codes if not code.co_name.startswith("<")]
    files = sorted({code.co_filename.removeprefix(_ROOT) for code in named})
    return {"files": len(files), "functions": len(named), "names": files}
