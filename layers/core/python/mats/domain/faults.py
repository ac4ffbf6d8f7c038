"""Converts pydantic's validation errors to faults with a remedy."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from mats.domain.errors import Fault, RequestInvalid


class RequestModel(BaseModel):
    """The body of a request; for `hints` see `faults_of`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    hints: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def parse(cls, body: Any) -> Self:
        """Validate a body.

        Raises:
            RequestInvalid: with every fault.
        """
        if not isinstance(body, dict):
            raise RequestInvalid([Fault("", "the body must be a JSON object with a `query`")])
        try:
            return cls.model_validate(body)
        except ValidationError as error:
            raise RequestInvalid(faults_of(error, cls, cls.hints)) from error


def faults_of(error: ValidationError, model: type[BaseModel], hints: Mapping[str, str]) -> Sequence[Fault]:
    """Every fault of a failed validation, in attribute order.

    The field names of the model and `hints`, by unknown attribute, serve for "did you mean".
    """
    errors = error.errors(include_url=False, include_input=False)
    return sorted(Fault(".".join(map(str, each["loc"])), _message(each, model, hints)) for each in errors)


def _message(error: ErrorDetails, model: type[BaseModel], hints: Mapping[str, str]) -> str:
    text = error["msg"]
    match error["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return _unknown(str(error["loc"][-1]), model, hints)
        case "value_error":
            return text.removeprefix("Value error, ")
        case "string_unicode":
            return "is not valid Unicode text"
        case _:
            return text[:1].lower() + text[1:]


def _unknown(attribute: str, model: type[BaseModel], hints: Mapping[str, str]) -> str:
    if attribute in hints:
        return hints[attribute]
    close = difflib.get_close_matches(attribute, list(model.model_fields), n=1)
    return f"is not a known attribute; did you mean `{close[0]}`?" if close else "is not a known attribute"
