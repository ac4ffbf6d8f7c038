"""Formatters of the local log: lines for people, or JSON with the names that the functions in AWS use."""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from mats.domain.text.fence import escape_hidden

_CONTROLS = {code: f"\\x{code:02x}" for code in range(32) if chr(code) != "\t"}
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime"}  # Attributes of every `LogRecord`


def record_fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a wide record; none of any other."""
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _ascii_json(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields).replace("\x7f", "\\u007f")


class LineFormatter(logging.Formatter):
    """A record begins a line; further lines of its message or traceback are indented, so that no text forges a record.

    A wide record's message is its fields as JSON. Hidden and control characters are escaped.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - a method of `logging.Formatter`
        if fields := record_fields(record):
            record.message = _ascii_json(fields)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record).splitlines()
        return "\n    ".join(escape_hidden(line.translate(_CONTROLS)) for line in lines)


class JsonLines(logging.Formatter):
    """A record is one line: a JSON object in ASCII; the fields of a wide record stand beside the others."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"level": record.levelname, "message": record.getMessage(), "timestamp": time, "logger": record.name}
        if record.exc_info and record.exc_info[0]:
            line |= {"exception": self.formatException(record.exc_info), "exception_name": record.exc_info[0].__name__}
        return _ascii_json({**line, **record_fields(record)})
