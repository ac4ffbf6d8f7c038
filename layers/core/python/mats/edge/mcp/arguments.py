"""The arguments of a tool as models send them."""

from typing import Any, Self

from mats.domain.capability.faults import RequestModel


class Arguments(RequestModel):
    """The base of the arguments of every tool."""

    @classmethod
    def parse(cls, body: Any) -> Self:
        """Models send null for absent arguments."""
        return super().parse({name: value for name, value in body.items() if value is not None})
