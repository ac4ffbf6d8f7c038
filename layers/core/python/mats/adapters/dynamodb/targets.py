"""The list of indices that every write goes to: one row of the profiles table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from mats.adapters.dynamodb.tables import Tables
from mats.adapters.dynamodb.values import from_row, to_row
from mats.domain.errors import DependencyFailed
from mats.ports import Target

_KEY = {"namespace": {"S": "~system"}, "name": {"S": "targets"}}  # no capability: tildes are escaped in namespaces
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class DynamoTargets:
    """The list of targets, oldest first, with optimistic locking."""

    tables: Tables
    table: str

    def __call__(self) -> Sequence[Target]:
        """The current targets, by a consistent read."""
        return self._load()[0]

    def change(self, change: Callable[[Sequence[Target]], Sequence[Target]]) -> Sequence[Target]:
        """Replace the list by `change` of it; retried where another writer came first.

        Raises:
            DependencyFailed: the table did not answer, or every attempt lost against another writer.
        """
        for _ in range(_ATTEMPTS):
            before, rev = self._load()
            after = change(before)
            if list(after) == list(before) or self._write(after, rev):
                return after
        raise DependencyFailed("the list of indices changes too often: check whether another reindex is running")

    def _load(self) -> tuple[Sequence[Target], int]:
        answer = self.tables.ask(self.table, "get_item", Key=_KEY, ConsistentRead=True)
        row = from_row(answer.get("Item", {}))
        return [Target(**each) for each in row.get("targets", ())], row.get("rev", 0)

    def _write(self, targets: Sequence[Target], rev: int) -> bool:
        stored: list[dict[str, Any]] = [each._asdict() for each in targets]
        item = {**_KEY, **to_row({"targets": stored, "rev": rev + 1, "row": "targets"})}
        try:
            self.tables.ask(
                self.table,
                "put_item",
                Item=item,
                ConditionExpression="attribute_not_exists(#rev) OR #rev = :rev",
                ExpressionAttributeNames={"#rev": "rev"},
                ExpressionAttributeValues={":rev": {"N": str(rev)}},
            )
        except ClientError:
            return False
        return True
