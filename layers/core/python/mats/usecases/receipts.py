"""Leave a receipt of each answer, for reports on it."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from mats.domain.errors import DependencyFailed
from mats.domain.learning.outcome import Receipt, pack_vector
from mats.domain.search.query import Query
from mats.domain.search.shortlist import Shortlist
from mats.ports import Receipts
from mats.usecases.found import Found
from mats.usecases.stages import Run

_STAGE = "receipt"
_BUDGET_MS = 50  # Counted from when the candidates are known: only an answer that is ready sooner waits for it


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveReceipt:
    """Stores receipts while and after answers are made."""

    later: Receipts  # Takes a receipt at once and stores it in the background
    early: Receipts | None = None
    """Stores one that may be shown once the candidates are known, for where nothing is sure to run after the answer."""
    texts: bool = True  # Whether queries are stored

    def begin(
        self, query_id: str, query: Query, found: Found, caller: str, audiences: Collection[str], run: Run
    ) -> Callable[[Shortlist], Shortlist]:
        """Start storing the receipt of an answer whose candidates are known.

        The function that is returned stores what is shown, and returns the answer, degraded by `receipt` if it cannot.
        """
        vector, others = found.vector, query.namespaces or query.tags or query.effects or query.holds
        begun = Receipt(
            query_id=query_id,
            text=query.text if self.texts else "",
            caller=caller,
            audiences=frozenset(audiences),
            at=run.stages.clock.now(),
            shown=tuple(profile.id for profile in found.profiles),
            narrowed=bool(query.kinds or others),
            kinds=() if others else query.kinds,
            vector=pack_vector(vector) if vector is not None else None,
        )
        early = self.early
        stage = run.start(_STAGE, lambda: early.put(begun), budget_ms=_BUDGET_MS) if early else None

        def complete(shortlist: Shortlist) -> Shortlist:
            trace = shortlist.trace
            best = shortlist.ranked[0] if shortlist.ranked else None
            receipt = replace(
                begun,
                shown=tuple(result.id for result in shortlist.results),
                verdict=shortlist.verdict,
                nearest=best.id if best else None,
                encoder=trace.encoder or "" if begun.vector else "",
            )
            if stage:
                stage.finish()
            try:
                self.later.put(receipt)
            except DependencyFailed as error:
                if not stage:  # else the early one is stored, or its failure is in the trace
                    trace.lose(_STAGE, f"{_STAGE}: {error}")
            return shortlist

        return complete
