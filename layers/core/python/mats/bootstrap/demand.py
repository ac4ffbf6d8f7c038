"""Demand over the stores of one machine."""

from datetime import datetime, timedelta

from mats.bootstrap.local import LocalSystem
from mats.usecases.find_demand import Demand, FindDemand


def find_demand(local: LocalSystem, days: int) -> Demand:
    """The demand of the last days, answers that were given until now included.

    Raises:
        DependencyFailed: the file cannot be used.
    """
    from mats.adapters.grouping import group_by_similarity  # noqa: PLC0415 - numpy, for those who ask for demand

    stores = local.stores
    if stores.receipts:
        stores.receipts.flush()
    find = FindDemand(
        receipts=stores.receipt_log, outcomes=stores.outcomes, index=stores.index, group=group_by_similarity
    )
    since = datetime.fromisoformat(local.clock.now()) - timedelta(days=days)
    return find(since.isoformat(timespec="seconds"))
