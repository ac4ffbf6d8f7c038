"""Names: functions are verbs or nouns, and a class name stands for one thing in its package."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("layers/core/python/mats", "functions", "infra")
VERBS = {"cut", "fit", "hit", "let", "put", "read", "run", "seed", "set", "split", "spread"}
"""Words that are verbs in the present tense as well."""
STATES = {"degraded", "deprecated"}  # Attributes of the API under the same name
IRREGULAR = set(
    """begun borne bought broken brought built caught chosen done drawn driven fallen felt forgotten found given gone
    got grown heard held hidden kept known laid led left lent lost made meant met paid read ridden risen said seen
    sent shown shut sold spent spoken stolen stood struck sung swum taken taught thought thrown told understood
    woken won worn written bound born cast""".split()
)
NOT_PARTICIPLES = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"}


@cache
def _trees() -> dict[str, ast.Module]:
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in paths}


def _nodes(*kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    return ((path, node) for path, tree in _trees().items() for node in ast.walk(tree) if isinstance(node, kinds))


def report(offenders: list[str]) -> None:
    assert not offenders, "\n" + "\n".join(offenders)


def is_participle(name: str) -> bool:
    word = name.strip("_")
    if "_" in word or word in VERBS | STATES | NOT_PARTICIPLES:
        return False
    return word in IRREGULAR or word.endswith("ed")


@pytest.mark.parametrize(("name", "expected"), [
    ("told", True), ("_shown", True), ("listed", True), ("__refused", True),
    ("put", False), ("embed", False), ("read_rows", False), ("load", False), ("degraded", False),
])  # fmt: skip
def test_a_verb_is_no_participle(name: str, expected: bool):
    assert is_participle(name) is expected


def test_no_function_is_named_by_a_bare_participle():
    functions = _nodes(ast.FunctionDef, ast.AsyncFunctionDef)
    report([f"{path}:{node.lineno} {node.name}" for path, node in functions if is_participle(node.name)])


def test_no_public_class_name_stands_twice_in_a_package():
    places = defaultdict(list)
    for path, node in _nodes(ast.ClassDef):
        if not node.name.startswith("_"):
            places[Path(path).parent, node.name].append(f"{path}:{node.lineno}")
    report([f"{name}: {where}" for (_, name), where in places.items() if len(where) > 1])
