"""The core layer ships what the functions import, and little else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.core_layer import LEFT_OUT, SOURCE
from tests.aws.core_layer import copy_core_layer

FUNCTIONS = Path(__file__).parents[2] / "functions"
NEVER_TAKEN = {
    ("mats.bootstrap", "mats.bootstrap.local"),  # only without MATS_INDEX_ENDPOINT
    ("mats.bootstrap.models", "mats.adapters.encoder"),  # only without a Titan encoder
    ("mats.bootstrap.models", "mats.adapters.encoder.local"),
    ("mats.bootstrap.models", "mats.adapters.encoder.multilingual"),
}
"""Imports of what is left out, on branches that no deployed function takes."""


def modules(python: Path) -> dict[str, Path]:
    """The modules below a folder of packages."""
    names = {path: ".".join(path.relative_to(python).with_suffix("").parts) for path in python.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items()}


DECLARING = ("mats/edge/routes.py", "mats/edge/ard/__init__.py")  # Modules that declare routes


def imports(path: Path) -> Iterator[str]:
    """The imports of a module anywhere but for type checkers, as modules or names in them.

    Routes name modules below `mats.edge` in strings, which their first request imports.
    """
    nodes = [ast.parse(path.read_text("utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and any(map(path.match, DECLARING)):
            yield f"mats.edge.{node.value}"
        nodes += ast.iter_child_nodes(node)


def with_packages(name: str, known: dict[str, Path]) -> Iterator[str]:
    """The module of a name and the packages around it."""
    parts = name.split(".")
    yield from (module for end in range(1, len(parts) + 1) if (module := ".".join(parts[:end])) in known)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory) -> dict[str, Path]:
    return modules(copy_core_layer(tmp_path_factory.mktemp("layer") / "core"))


@pytest.fixture(scope="module")
def imported(shipped) -> set[tuple[str, str]]:
    """Every import that starting from the functions leads to: the importing and the imported module."""
    known = modules(SOURCE / "python")
    waiting = [(f"functions.{path.parent.name}", path) for path in FUNCTIONS.glob("*/handler.py")]
    found: set[tuple[str, str]] = set()
    done: set[str] = set()
    while waiting:
        importer, path = waiting.pop()
        for module in (module for name in imports(path) for module in with_packages(name, known)):
            found.add((importer, module))
            if module in shipped and module not in done:
                done.add(module)
                waiting.append((module, shipped[module]))
    return found


def test_functions_import_only_what_is_shipped(shipped, imported):
    assert {(importer, module) for importer, module in imported if module not in shipped} == NEVER_TAKEN


def test_at_most_150_shipped_lines_are_never_imported(shipped, imported):
    unused = set(shipped) - {module for _, module in imported}
    lines = {name: len(shipped[name].read_text("utf-8").splitlines()) for name in unused}
    assert sum(lines.values()) <= 150, lines


def test_everything_left_out_exists():
    assert [path for path in LEFT_OUT if not (SOURCE / "python" / "mats" / path).exists()] == []
