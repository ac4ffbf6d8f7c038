"""Base of values whose JSON leaves out what is unknown."""

from typing import Any

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Compact(BaseModel):
    """Frozen; empty attributes are absent from its JSON, and `in_` is `in`."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    @model_serializer(mode="wrap")
    def _leave_out_empty(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        given: dict[str, Any] = serialize(self)
        return {name.removesuffix("_"): value for name, value in given.items() if value not in ("", None, (), [])}
