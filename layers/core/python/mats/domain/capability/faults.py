"""Converts pydantic's validation errors to faults with a remedy."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from mats.domain.errors import Fault, RequestInvalid


class RequestModel(BaseModel):
    """The body of a request; for `hints` see `faults_of`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    hints: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def parse(cls, body: Any) -> Self:
        """Validate a body. Raises RequestInvalid: with every fault."""
        if not isinstance(body, dict):
            required = next((name for name, field in cls.model_fields.items() if field.is_required()), "query")
            raise RequestInvalid([Fault("", f"the body must be a JSON object with a `{required}`")])
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


_MESSAGES: Mapping[str, str] = {
    "missing": "is required",
    "string_unicode": "is not valid Unicode text",
    "string_type": "must be text",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "finite_number": "must be a finite number",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
    "none_required": "must be null",
    "union_tag_invalid": "must have one of {expected_tags} as {discriminator}",
    "union_tag_not_found": "must have {discriminator}",
    "model_attributes_type": "must be an object",
    **dict.fromkeys(("int_type", "int_parsing", "int_parsing_size", "int_from_float"), "must be a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    **dict.fromkeys(("tuple_type", "list_type", "set_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "model_type"), "must be an object"),
}
"""By pydantic's type of error, with its context."""
_SINGULAR = re.compile(r"(\b1 (?:character|entr))(?:s|ies)\b")


def _model_at(location: Sequence[int | str], model: type[BaseModel]) -> type[BaseModel] | None:
    """The model whose attribute the last step of a location names; None if the steps before it name no single model."""
    found: type[BaseModel] | None = model
    for step in location[:-1]:
        if isinstance(step, str) and found:
            field = found.model_fields.get(step)
            models = _models_in(field.annotation) if field else []
            found = models[0] if len(models) == 1 else None
    return found


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    own = [annotation] if isinstance(annotation, type) and issubclass(annotation, BaseModel) else []
    return [*own, *(model for part in get_args(annotation) for model in _models_in(part))]


_FEW = 12  # Attributes that a message lists


def _message(error: ErrorDetails, model: type[BaseModel], hints: Mapping[str, str]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        attribute = str(error["loc"][-1])
        inner = _model_at(error["loc"], model)
        names = list(inner.model_fields) if inner else []
        close = difflib.get_close_matches(attribute, names, n=1)
        few = f"; known are {', '.join(names)}" if 0 < len(names) <= _FEW else ""
        nearest = f"; did you mean `{close[0]}`?" if close else few
        known = hints if inner is model else {}
        return known.get(attribute, f"is not a known attribute{nearest}")
    if kind in ("string_too_short", "too_short") and context.get("min_length") == 1:
        return "must not be empty"
    if kind in ("value_error", "assertion_error"):
        return error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if kind in _MESSAGES:
        return _SINGULAR.sub(r"\1", _MESSAGES[kind].format_map(context))
    text = error["msg"]
    return (text[:1].lower() + text[1:]).replace("input should", "must").replace(" should ", " must ")
