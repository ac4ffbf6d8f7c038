"""The stores and the index of a system, each built at first use."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from mats.domain.profile.profile import Profile
from mats.ports import (
    Generations,
    Memory,
    ModelSwitch,
    Outcomes,
    ProfileStore,
    Receipts,
    Registry,
    SearchIndex,
    TallyBook,
    TrustBook,
)

if TYPE_CHECKING:
    from mats.usecases.spread_change import SpreadChange


class Stores(Protocol):
    """The stores and the index of one system."""

    @property
    def registry(self) -> Registry:
        """The registrations."""
        ...

    @property
    def trust(self) -> TrustBook:
        """The trust that operators assigned."""
        ...

    @property
    def profiles(self) -> ProfileStore:
        """The profiles."""
        ...

    @property
    def index(self) -> SearchIndex:
        """The search index."""
        ...

    @property
    def memory(self) -> Memory | None:
        """The remembered requests; None where there are none."""
        ...

    @property
    def generations(self) -> Generations:
        """The generations of the index."""
        ...

    @property
    def audiences_of(self) -> Callable[[str], frozenset[str]] | None:
        """Look up the audiences of an IAM principal by its ARN; None where tokens carry them."""
        ...

    @property
    def model_switch(self) -> ModelSwitch | None:
        """The operators' choice of models; None where there is none."""
        ...

    @property
    def receipts(self) -> Receipts | None:
        """Takes receipts and stores them in the background; None where answers leave none."""
        ...

    @property
    def early_receipts(self) -> Receipts | None:
        """Stores a receipt before its answer is complete, where nothing is sure to run afterwards; else None."""
        ...

    @property
    def outcomes(self) -> Outcomes | None:
        """The reported outcomes; None where feedback has a function of its own."""
        ...

    @property
    def tally_book(self) -> TallyBook | None:
        """The sums of what callers reported, for those who answer; None where there are none."""
        ...

    @property
    def spread(self) -> "SpreadChange | None":
        """Spreads the change of a namespace's row; None where the store itself announces every capability there."""
        ...

    def openers(self) -> Sequence[Callable[[], object]]:
        """Opens connections to the stores that answers need."""
        ...

    def announce_rejections(self, rejected: Sequence[Profile]) -> None:
        """Announce rejected registrations, if there is an event bus.

        Raises:
            DependencyFailed: not all were announced.
        """
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...
