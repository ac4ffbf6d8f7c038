"""The sums of what callers report, read by those who answer; the key is `id` and `caller`."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mats.adapters.dynamodb.tables import Tables
from mats.adapters.dynamodb.values import Row
from mats.domain.capability.capability import Id
from mats.domain.learning.reliability import Tally

_FIELDS = ("id", "caller", "successes", "failures")
_MOST = 50
"""Values of a key in one statement."""


@dataclass(frozen=True, slots=True)
class DynamoTallies:
    """The port `TallyBook`. One request for up to 50 capabilities: a Query for each would open as many connections."""

    tables: Tables
    table: str

    def tallies(self, ids: Collection[Id]) -> Mapping[Id, Sequence[Tally]]:
        distinct, found = list(dict.fromkeys(ids)), defaultdict[Id, list[Tally]](list)
        for start in range(0, len(distinct), _MOST):
            for row in self.tables.select(self.table, _FIELDS, "id", distinct[start : start + _MOST]):
                found[Id(row["id"]["S"])].append(_tally(row))
        return {id: sorted(tallies, key=lambda each: each.caller) for id, tallies in found.items()}


def _tally(row: Row) -> Tally:
    sums = {name: float(row.get(name, {"N": "0"})["N"]) for name in ("successes", "failures")}
    return Tally(caller=row["caller"]["S"], **sums)
