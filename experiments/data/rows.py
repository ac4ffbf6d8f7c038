"""Rows of a local copy: JSON lines, JSON, parquet.

What cannot be read raises SourceInvalid with file and line.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from mats.domain.errors import Fault, Invalid

SUFFIXES = (".jsonl", ".json", ".parquet", ".jsonl.gz", ".json.gz")
_ABOUT = frozenset({"dataset_infos.json", "dataset_dict.json", "state.json", "dataset_info.json"})
"""Metadata files of the `datasets` library."""


class SourceInvalid(Invalid):
    """A local copy does not have the published format."""


class SourceRow(NamedTuple):
    where: str  # The file and the line or row number, from 1
    values: Mapping[str, Any]

    def fault(self, message: str) -> SourceInvalid:
        return SourceInvalid([Fault(self.where, message)])

    def text(self, name: str) -> str:
        """The string in a required column; a number becomes a string."""
        value = self.values.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str):
            have = ", ".join(map(str, self.values)) or "none"
            raise self.fault(f"needs a string in `{name}`, not {type(value).__name__}; columns: {have[:300]}")
        return value


def files(folder: Path) -> list[Path]:
    """Files with rows under a folder, in order, without hidden and metadata files."""
    if folder.is_file():
        return [folder]
    paths = sorted(
        path
        for path in folder.rglob("*")
        if path.name.endswith(SUFFIXES)
        and path.name not in _ABOUT
        and path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if not paths:
        raise SourceInvalid([Fault(str(folder), f"holds no file that ends in {', '.join(SUFFIXES)}")])
    return paths


def rows(path: Path) -> Iterator[SourceRow]:
    for where, value in _parquet(path) if path.name.endswith(".parquet") else _json(path):
        if not isinstance(value, dict):
            raise SourceInvalid([Fault(where, f"must be a JSON object, not {type(value).__name__}")])
        yield SourceRow(where, value)


def document(path: Path) -> Any:
    return _parse(_text(path), str(path))


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.name.endswith(".gz") else data).decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise SourceInvalid([Fault(str(path), f"cannot be read as UTF-8 text: {error}")]) from error


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceInvalid([Fault(where, f"is not JSON: {error}")]) from error


def _json(path: Path) -> Iterator[tuple[str, Any]]:
    """The rows of JSON lines, of a list, of a single object, or of an object of rows by id."""
    text = _text(path)
    if ".jsonl" in path.name:
        return _lines(path, text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _lines(path, text)  # files of JSON lines are often named .json
    if isinstance(value, dict) and "id" not in value and value and all(isinstance(v, dict) for v in value.values()):
        value = [{"id": id, **row} for id, row in value.items()]
    values = value if isinstance(value, list) else [value]
    return ((f"{path}, row {number}", row) for number, row in enumerate(values, start=1))


def _lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            yield where, _parse(line, where)


def _parquet(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        parquet: Any = import_module("pyarrow.parquet")  # 50 MB, for this format only
    except ImportError as error:
        message = "is parquet, which needs pyarrow (`pip install pyarrow`); or export it as JSON lines"
        raise SourceInvalid([Fault(str(path), message)]) from error
    try:
        table = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's errors are subclasses
        raise SourceInvalid([Fault(str(path), f"cannot be read as parquet: {error}")]) from error
    return ((f"{path}, row {number}", row) for number, row in enumerate(table, start=1))
