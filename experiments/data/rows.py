"""Rows of a local copy: JSON lines, JSON, parquet.

What cannot be read raises SourceInvalid with file and line.
"""

import gzip
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from mats.domain.capability.faults import faults_of
from mats.domain.errors import Fault, Invalid

SUFFIXES = (".jsonl", ".json", ".parquet", ".jsonl.gz", ".json.gz")
_ABOUT = frozenset({"dataset_infos.json", "dataset_dict.json", "state.json", "dataset_info.json"})
"""Metadata files of the `datasets` library."""
_Parsed = TypeVar("_Parsed")


class SourceInvalid(Invalid):
    """A local copy does not have the published format."""


def files(folder: Path) -> list[Path]:
    """Files with rows under a folder, in order, without hidden and metadata files."""
    paths = sorted(
        path
        for path in folder.rglob("*")
        if path.name.endswith(SUFFIXES)
        and path.name not in _ABOUT
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    if not paths:
        raise SourceInvalid([Fault(str(folder), f"holds no file that ends in {', '.join(SUFFIXES)}")])
    return paths


def rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file, each with where it is: the file and the line or the row, from 1."""
    if ".jsonl" in path.name:
        lines = ((f"{path}, line {n}", line) for n, line in enumerate(_text(path).split("\n"), start=1) if line.strip())
        values = ((where, _json(line, where)) for where, line in lines)
    else:
        table = _parquet(path) if path.suffix == ".parquet" else document(path)
        values = ((f"{path}, row {n}", row) for n, row in enumerate(parse(list[Any], table, str(path)), start=1))
    return ((where, parse(dict[str, Any], value, where)) for where, value in values)


def parse(kind: type[_Parsed], value: object, where: str) -> _Parsed:
    """A value as a type that pydantic knows. Raises SourceInvalid: with every fault."""
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        faults = faults_of(error, BaseModel, {})
        raise SourceInvalid([Fault(where, str(fault)) for fault in faults]) from error


def document(path: Path) -> Any:
    return _json(_text(path), str(path))


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise SourceInvalid([Fault(str(path), f"cannot be read as UTF-8 text: {error}")]) from error


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceInvalid([Fault(where, f"is not JSON: {error}")]) from error


def _parquet(path: Path) -> Any:
    try:
        parquet: Any = import_module("pyarrow.parquet")  # 50 MB, for this format only
    except ImportError as error:
        message = "is parquet, which needs pyarrow (`pip install pyarrow`); or export it as JSON lines"
        raise SourceInvalid([Fault(str(path), message)]) from error
    try:
        return parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's errors are subclasses
        raise SourceInvalid([Fault(str(path), f"cannot be read as parquet: {error}")]) from error
