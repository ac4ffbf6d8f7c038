"""The operator's choice of models: the item `models` of a table with the key `name`."""

from dataclasses import dataclass
from typing import Any

from mats.adapters.dynamodb.tables import Tables
from mats.adapters.dynamodb.values import from_row
from mats.ports import ModelChoice, SwitchedRole

_KEY = {"name": {"S": "models"}}


@dataclass(frozen=True, slots=True)
class DynamoModelSwitch:
    """The port `ModelSwitch`: attributes `rerank_model` and `writer_model`, either absent for the configured model."""

    tables: Tables
    table: str

    def load(self) -> ModelChoice:
        answer = self.tables.ask(self.table, "get_item", Key=_KEY, ConsistentRead=True)
        item = from_row(answer.get("Item", {}))
        return ModelChoice(_text(item.get("rerank_model")), _text(item.get("writer_model")))

    def choose(self, role: SwitchedRole, model: str | None) -> None:
        update: dict[str, Any] = {"UpdateExpression": "REMOVE #model"}
        if model is not None:
            values = {":model": {"S": model}}
            update = {"UpdateExpression": "SET #model = :model", "ExpressionAttributeValues": values}
        names = {"#model": f"{role}_model"}
        self.tables.ask(self.table, "update_item", Key=_KEY, ExpressionAttributeNames=names, **update)


def _text(value: object) -> str | None:
    """The text that people may have typed into the item; None if there is none."""
    return value.strip() or None if isinstance(value, str) else None
