"""Leave the receipt of an answer, without delaying it: docs/decisions/0047."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import Receipt, pack_vector
from mats.domain.ranking.query import Query
from mats.domain.shortlist.rank import Shortlist
from mats.ports import Receipts
from mats.usecases.retrieve import Retrieved
from mats.usecases.stages import Stage, Stages, finish

_STAGE = "receipt"
_BUDGET_MS = 50
"""Counted from when the candidates are known: only an answer that is ready sooner waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveReceipt:
    """Stores receipts while and after answers are made.

    `later` takes a receipt at once and stores it in the background. `early` stores one that may be shown as soon as the
    candidates are known, for where nothing is sure to run after the answer. `texts`: whether queries are stored.
    """

    later: Receipts
    early: Receipts | None = None
    texts: bool = True

    def begin(
        self, query_id: str, query: Query, found: Retrieved, caller: str, audiences: Collection[str], stages: Stages
    ) -> "PendingReceipt":
        """Start storing the receipt of an answer whose candidates are known."""
        receipt = Receipt(
            query_id=query_id,
            text=query.text if self.texts else "",
            caller=caller,
            audiences=frozenset(audiences),
            at=stages.clock.now(),
            shown=tuple(profile.id for profile in found.profiles),
            narrowed=bool(query.kinds or query.namespaces or query.tags),
            vector=pack_vector(found.vector) if found.vector is not None else None,
        )
        early = self.early
        stage = stages.start(_STAGE, lambda: early.put(receipt), budget_ms=_BUDGET_MS) if early else None
        return PendingReceipt(receipt, stage, self.later)


@dataclass(frozen=True, slots=True)
class PendingReceipt:
    """The receipt of one answer; `stage` stores it if it is stored early."""

    receipt: Receipt
    stage: Stage[None] | None
    later: Receipts

    def complete(self, shortlist: Shortlist) -> Shortlist:
        """Store what is shown; returns the answer, which is degraded by `receipt` if it cannot be stored."""
        trace = shortlist.trace
        best = shortlist.ranked[0] if shortlist.ranked else None
        receipt = replace(
            self.receipt,
            shown=tuple(result.id for result in shortlist.results),
            verdict=shortlist.verdict,
            nearest=best.id if best else None,
            relevance=best.relevance if best else None,
            encoder=trace.encoder or "" if self.receipt.vector else "",
        )
        if self.stage:
            finish(self.stage, trace)
        try:
            self.later.put(receipt)
        except DependencyFailed as error:
            if not self.stage:  # else the early one is stored, or its failure is in the trace
                trace.lose(_STAGE, f"{_STAGE}: {error}")
        return shortlist
