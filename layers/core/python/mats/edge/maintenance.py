"""Maintenance in AWS: each task runs in pieces that fit a function; the output of a piece is the input of the next."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mats.domain.capability.capability import Id
from mats.edge.observers import log_record
from mats.ports import Generations, Outcomes, Registry
from mats.usecases.backfill import Backfill
from mats.usecases.deadline import Progress, in_pages
from mats.usecases.reconcile import Reconcile
from mats.usecases.reindex import Reindex

RESERVE_MS = 120_000
"""A piece ends when less than this is left: a page takes less, even where every call is slow and tried again."""
_ANSWERS = 100  # Answers of a page of `relearn`
PACE_S = 300  # Time between two pieces of a backfill, each of which sends what may be sent in this time


class MaintenanceEvent(BaseModel):
    """A task, and where its last piece ended."""

    model_config = ConfigDict(extra="ignore")

    task: Literal["reconcile", "reindex", "rollback", "retire", "backfill", "relearn", "compact"]
    after: Id | None = None  # The last capability, or of `relearn` the last query id
    stage: Annotated[int, Field(ge=0, le=2)] = 0
    """For `reindex`, 1 while the new index is checked; for `reconcile`, the place that is listed."""
    per_minute: Annotated[int, Field(ge=1, le=100_000)] = 120
    """How many capabilities a backfill sends to enrichment in a minute."""
    counts: dict[str, int] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """The use cases of operators, over the system in AWS. `tidy` is called when everything is compared."""

    reconcile: Reconcile
    reindex: Reindex
    backfill: Backfill
    registry: Registry
    generations: Generations
    tidy: Callable[[], object] = lambda: None
    compact: Callable[[], object] = lambda: None
    outcomes: Outcomes | None = None  # None where nothing is remembered
    send_reports: Callable[[Sequence[str]], None] = lambda query_ids: None
    """Puts the reports on these answers into the event path again, where learning has its own rights and retries."""

    def __call__(self, event: Mapping[str, Any], remaining_ms: Callable[[], float]) -> dict[str, Any]:
        """Run a task until it is done or the time is almost over; the event to go on with, and whether it is `done`.

        Raises ValidationError: there is no such task; NotPossible: what is stored, or the deployment, does not allow
        it; DependencyFailed: a store did not answer; the same event resumes.
        """
        asked = MaintenanceEvent.model_validate(event)
        counts = Counter(asked.counts)
        state: dict[str, Any] = {**asked.model_dump(), "done": True, "wait_s": 0}
        for piece in self._pieces(asked):
            counts.update(piece.counts)
            state |= {"after": piece.after, "stage": piece.stage}
            if piece.wait_s or remaining_ms() < RESERVE_MS:
                state |= {"done": False, "wait_s": piece.wait_s}
                break
        state |= {"counts": dict(counts), "index": self.generations.current()}
        log_record({**state, "event": "maintained"})
        return state

    def _pieces(self, asked: MaintenanceEvent) -> Iterator[Progress]:
        match asked.task:
            case "reconcile":
                return self._reconcile(asked.after, asked.stage)
            case "reindex":
                return self.reindex(asked.after, asked.stage)
            case "backfill":
                return self._backfill(asked.after, asked.per_minute)
            case "relearn":
                return self._relearn(asked.after or "")
            case "rollback":
                self.generations.roll_back()
            case "retire":
                self.generations.retire()
            case "compact":
                self.compact()
        return iter(())

    def _reconcile(self, after: Id | None, stage: int) -> Iterator[Progress]:
        run = self.reconcile.enrich.maker.begin(probe=True)
        for reached, page in self.reconcile.pages(after, stage):
            yield reached._replace(counts=self.reconcile.repair(page, run).counts) if page else reached
        self.tidy()

    def _relearn(self, after: str) -> Iterator[Progress]:
        for page in in_pages(self.outcomes.query_ids(after=after) if self.outcomes else (), _ANSWERS):
            self.send_reports(page)
            yield Progress({"sent": len(page)}, Id(page[-1]))

    def _backfill(self, after: Id | None, per_minute: int) -> Iterator[Progress]:
        sent, limit = 0, per_minute * PACE_S // 60
        for step in self.backfill(self.registry.ids(after=after)):
            sent += step.counts["sent"]
            yield step._replace(wait_s=PACE_S if sent >= limit else 0)
