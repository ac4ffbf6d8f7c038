"""The discovery application: one object behind HTTP, MCP, ARD and the command line."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mats.domain.capability.capability import Id
from mats.domain.errors import CapabilityError, CapabilityNotFound, DependencyFailed, Invalid
from mats.domain.profile.profile import Profile
from mats.domain.search.query import ANYWHERE, Filter, Query, Scope
from mats.domain.search.shortlist import Shortlist
from mats.edge.http import Caller
from mats.edge.observers import LOG
from mats.edge.schema import Health
from mats.ports import Answered, Observer, OperationFailed
from mats.usecases.discover import Discover
from mats.usecases.look_up import LookUp, Page
from mats.usecases.receipts import LeaveReceipt
from mats.usecases.stages import NOT_ASKED

if TYPE_CHECKING:
    from mats.edge.feedback import FeedbackService


@dataclass(frozen=True, slots=True)
class Application:
    """Discovery as callers may use it: each operation is authorized and observed here and nowhere else.

    One that reads raises DependencyFailed if the index did not answer or the caller's audiences cannot be looked up.
    """

    discover: Discover
    look_up: LookUp
    audiences_of: Callable[[str], frozenset[str]] | None = None
    """The audiences of an IAM principal by its ARN; None where callers bring theirs with them."""
    observe: Observer = LOG
    receipts: LeaveReceipt | None = None  # None where answers leave none
    feedback: "FeedbackService | None" = None  # None where answers leave no receipts, or feedback goes elsewhere
    digest: Callable[[frozenset[str]], str] | None = None
    check_stores: Callable[[], None] = lambda: None  # Raises DependencyFailed: writes are not stored
    faults: dict[str, str] = field(default_factory=dict)  # By stage, why the last answers were degraded

    def search(self, caller: Caller, query: Query, scope: Scope = ANYWHERE) -> Shortlist:
        """The shortlist of a query, among what the caller may see.

        If the caller's audiences cannot be looked up, only public capabilities are searched, and the answer is
        degraded by `audiences`.

        Raises RequestInvalid: `limit` is above the number of candidates; DependencyFailed: retrieval cannot be done
        now.
        """
        with self._failures_recorded("search", caller):
            try:
                audiences, failure = self._audiences(caller), ""
            except DependencyFailed as error:
                audiences, failure = frozenset[str](), f"audiences: {error}"
            shortlist = self.discover.answer(
                query, audiences, scope, caller=caller.name, request_id=caller.request_id, receipts=self.receipts
            )
        if failure:
            shortlist = shortlist.degrade("audiences", failure)
        if not shortlist.trace.degraded:
            self.faults.clear()
        for fault in shortlist.trace.faults:
            stage = fault.partition(":")[0]
            if not fault.endswith(NOT_ASKED) or stage not in self.faults:  # else the reason before it tells more
                self.faults[stage] = fault
        self.observe(Answered(shortlist=shortlist, audiences=audiences, scope=scope, request_id=caller.request_id))
        return shortlist

    def get(self, caller: Caller, id: Id) -> Profile:
        """The profile of a capability. Raises CapabilityNotFound: it does not exist, or not for this caller."""
        with self._failures_recorded("get", caller):
            return self.look_up(id, self._audiences(caller))

    def summary(self, caller: Caller) -> str:
        """What this caller may find, in a few words; empty if that cannot be told now."""
        with suppress(DependencyFailed):
            return self.digest(self._audiences(caller)) if self.digest else ""
        return ""

    def get_or_suggest(self, caller: Caller, id: Id) -> Profile:
        """As `get`; CapabilityNotFound names the nearest ids that the caller may see."""
        try:
            return self.get(caller, id)
        except CapabilityNotFound as error:
            raise CapabilityNotFound(id, self.look_up.nearest(id, self._audiences(caller))) from error

    def browse(
        self, caller: Caller, admitted: Filter, wanted: Callable[[Profile], bool], *, after: Id | None, limit: int
    ) -> Page:
        """A page of the capabilities the caller may see, in order of id."""
        with self._failures_recorded("browse", caller):
            visible = replace(admitted, audiences=self._audiences(caller))
            return self.look_up.browse(visible, wanted, after=after, limit=limit)

    def health(self, caller: Caller) -> Health:
        """The state, for operators with what fails.

        Raises DependencyFailed: the index did not answer, or what was written last could not be stored.
        """
        index, encoder, reranker = self.discover.index, self.discover.encoder, self.discover.rerank.reranker
        with self._failures_recorded("health"):
            self.check_stores()
            index.page(Filter(), after=None, limit=1)  # reads what is stored; words may be in memory
        return Health(
            status="ok",
            index=index.name,
            encoder=encoder.name if encoder else None,
            reranker=reranker.name if reranker else None,
            weights=dict(self.discover.scoring.weights),
            faults=list(self.faults.values()) if caller.sees_internal_errors else [],
        )

    def _audiences(self, caller: Caller) -> frozenset[str]:
        """Audiences from the caller's token, and those of its IAM principal.

        Raises DependencyFailed: the table of callers did not answer.
        """
        mapped = self.audiences_of(caller.arn) if self.audiences_of and caller.arn else frozenset[str]()
        return caller.audiences | mapped

    @contextmanager
    def _failures_recorded(self, operation: str, caller: Caller | None = None) -> Iterator[None]:
        """Observe errors that are not the caller's own."""
        try:
            yield
        except (Invalid, CapabilityNotFound):
            raise
        except CapabilityError as error:
            request_id = caller.request_id if caller else ""
            self.observe(OperationFailed(operation=operation, error=error, request_id=request_id))
            raise
