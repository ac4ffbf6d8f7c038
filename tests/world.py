"""A registry in memory from which a test takes what it is about: its offline path, its online path, or an application.

`World(*profiles, encoder=…, writer=…, reranker=…)` holds fakes of every port. Profiles given are indexed as they are;
`register` sends a registration through enrichment; `ask` calls the application as API Gateway does. Whatever else a
test needs is a field of it, or a keyword of `tests.builders.a_discover`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mats.domain.capability.capability import Id
from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import Cause, ChangeResult, Enrichment, Profile
from mats.domain.search.query import Filter
from mats.edge.app import Application
from mats.edge.feedback import FeedbackService
from mats.edge.observers import LogObserver, MeasureObserver, Observers
from mats.ports import Change, RerankResult, Stored, Written
from mats.usecases.discover import Discover
from mats.usecases.drafts import Pass, ProfileMaker
from mats.usecases.enrich import Enrich
from mats.usecases.learn import RecordFeedback
from mats.usecases.look_up import LookUp
from mats.usecases.receipts import LeaveReceipt
from tests.aws_events import call
from tests.builders import a_discover, a_profile
from tests.fakes import (
    AtOnce,
    FakeClock,
    FakeEncoder,
    MemoryIndex,
    MemoryProfiles,
    MemoryRegistry,
    MemoryTrust,
    ScriptedReranker,
    ScriptedWriter,
)
from tests.learning import MemoryOutcomes, MemoryReceipts

ENCODER = FakeEncoder()
REFUND = a_profile(name="refund", description="give money back to a customer")
GEOCODE = a_profile(name="geocode", description="turn an address into coordinates")
MAIL = a_profile(name="mail", description="send a message to a customer")
THREE = (REFUND, GEOCODE, MAIL)
SECRET = a_profile(name="secret", description="give money back", visible_to=("finance",))
ANN, BOB = (f"arn:aws:sts::111122223333:assumed-role/{name}/session" for name in ("ann", "bob"))
FIVE = Enrichment(
    summary="Gives money back.",
    action="Refund a payment",
    keywords=("refund",),
    positive_examples=("refund an order",),
    negative_examples=("cancel a subscription",),
)


def indexed(*profiles: Profile) -> MemoryIndex:
    """An index of these profiles, each with the vector of its name and description."""
    index = MemoryIndex()
    index.put(
        [
            Stored(
                profile.model_copy(update={"rev": 1}),
                ENCODER.encode_query(f"{profile.name} {profile.source.description}"),
            )
            for profile in profiles
        ]
    )
    return index


def discover_over(index: MemoryIndex, **changes: Any) -> Discover:
    """The online path over an index with ENCODER."""
    return a_discover(index, **{"encoder": ENCODER, **changes})


def an_application(*profiles: Profile, **online: Any) -> Application:
    """Search and look-up over an index of these profiles; `online` as in `discover_over`."""
    index = indexed(*profiles)
    return Application(discover_over(index, **online), LookUp(index))


def a_writer(reply: Written | Exception = Written(enrichment=FIVE), **more: Any) -> ScriptedWriter:  # noqa: B008
    """A writer that gives this reply to everything."""
    return ScriptedWriter(lambda registration: reply, **more)


def scored(*scores: float, intent: str | None = None) -> ScriptedReranker:
    """A reranker that gives the candidates these scores, in their order."""
    return ScriptedReranker(lambda query, candidates: RerankResult(scores=scores[: len(candidates)], intent=intent))


class World:
    """See the module."""

    def __init__(
        self, *given: Profile, encoder: FakeEncoder | None = None, writer: ScriptedWriter | None = None, **online: Any
    ) -> None:
        self.registry, self.trust, self.clock = MemoryRegistry(), MemoryTrust(), FakeClock()
        self.profiles, self.index = MemoryProfiles(), indexed(*given)
        self.receipts, self.outcomes = MemoryReceipts(), MemoryOutcomes()
        self.measured: list[Any] = []
        self.enrich = Enrich(
            registry=self.registry,
            trust=self.trust,
            profiles=self.profiles,
            index=self.index,
            maker=ProfileMaker(encoder=encoder, writer=writer),
            writer_threads=AtOnce(),
            **dict.fromkeys(("on_wait", "on_reject", "on_refuse"), lambda *_: None),
        )
        record = RecordFeedback(receipts=self.receipts, outcomes=self.outcomes, days=30)
        self.service = FeedbackService(record, self.observer())
        self.application = Application(
            discover_over(self.index, **online),
            LookUp(self.index),
            receipts=LeaveReceipt(later=self.receipts),
            feedback=self.service,
        )

    def change(self, id: Id, event: str = "e1") -> Change:
        return Change(id, Cause(event_id=event, time=self.clock.now()))

    def use(self, **models: Any) -> None:
        """Change the models of enrichment."""
        self.enrich = replace(self.enrich, maker=replace(self.enrich.maker, **models))

    def deliver(self, *ids: Id, event: str = "e1", run: Pass | None = None) -> dict[Id, ChangeResult]:
        """Hand events to enrichment."""
        return dict(self.enrich([self.change(id, event) for id in ids], run=run))

    def register(self, registration: Registration, *, event: str = "e1") -> ChangeResult:
        """Put a registration and hand its event to enrichment."""
        self.registry.put([registration])
        return self.deliver(registration.id, event=event)[registration.id]

    def profile(self, id: Id) -> Profile:
        """The stored profile."""
        return self.profiles.kept[id].profile

    def found(self, *terms: str) -> list[Id]:
        """What a lexical search finds, best first."""
        return list(self.index.lexical(terms, Filter(), depth=10))

    def observer(self, *, spell_out: bool = True) -> Observers:
        """Observers that log, and put measures into `measured`."""
        emit = MeasureObserver(lambda measures, dimensions=None: self.measured.append(measures))
        return Observers([LogObserver(spell_out), emit])

    def ask(
        self,
        path: str,
        body: object = None,
        *,
        method: str = "",
        arn: str = ANN,
        headers: Mapping[str, str] | None = None,
        audiences: Iterable[str] = (),
    ) -> tuple[int, Any]:
        """The status and JSON of a call: a POST if it has a body."""
        method = method or ("GET" if body is None else "POST")
        context: dict[str, Any] = {"identity": {"userArn": arn}, "requestId": "request 1"}
        response = call(self.application, method, path, body, headers=headers, audiences=audiences, **context)
        return response.status, json.loads(response.body)
