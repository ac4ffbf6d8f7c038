"""Answers of Agentic Resource Discovery against its published schema."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

SCHEMA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
CODES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RATE_LIMIT_EXCEEDED",
         500: "INTERNAL_ERROR"}  # fmt: skip
"""The codes that the specification has."""


def valid(name: str, answer: str | Any) -> Any:
    """The JSON of an answer, which is valid as the schema of this name."""
    document = json.loads(answer) if isinstance(answer, str) else answer
    schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}
    Draft202012Validator(schema, format_checker=FormatChecker()).validate(document)
    return document
