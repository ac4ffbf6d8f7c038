"""The tree keeps the shape that the documentation says it has."""

import ast
import os
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers/core/python/mats"


def test_what_the_stacks_import_of_mats_is_there():
    """Types of `infra` are checked with the CDK only."""
    nodes = [node for path in (ROOT / "infra").rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    imports = [(node.module, name.name) for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names]
    ours = {(module, name) for module, name in imports if module and module.partition(".")[0] == "mats"}
    assert len(ours) > 20
    lacking = {(module, name) for module, name in ours if not hasattr(import_module(module), name)}
    assert {f"{module}.{name}" for module, name in lacking if not find_spec(f"{module}.{name}")} == set()


def sources() -> list[Path]:
    return [path for folder in (CORE, ROOT / "functions", ROOT / "infra") for path in folder.rglob("*.py")]


def test_every_package_that_the_readme_names_is_pinned_for_a_deployment_and_imported():
    """Those of functions are in their layer, too."""
    built_with = (ROOT / "README.md").read_text().partition("\nBuilt with")[2].partition("\n\n")[0]
    named = {*re.findall(r"`([a-z0-9-]+)`", built_with)}
    assert named == {"aws-cdk-lib", "constructs", "boto3", "aws-lambda-powertools", "opensearch-py", "rank-bm25"}
    pins = re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    layer = re.findall(r"^([a-z0-9-]+)==", (ROOT / "layers/vendor/requirements.txt").read_text(), re.MULTILINE)
    assert named <= {*pins}
    assert {"boto3", "aws-lambda-powertools", "opensearch-py"} <= {*layer}
    modules = {"aws-cdk-lib": "aws_cdk", "opensearch-py": "opensearchpy"}
    text = "".join(path.read_text() for path in sources())
    absent = [
        each for each in named if not re.search(rf"(from|import) {modules.get(each, each.replace('-', '_'))}\b", text)
    ]
    assert absent == []


def test_only_the_settings_spell_an_environment_variable():
    spelled = {p.relative_to(ROOT) for p in sources() if re.search(r"[\"'](MATS_[A-Z_]+)[\"']", p.read_text())}
    assert spelled == set()  # they derive each from the name of its setting


def test_nothing_is_connected_or_read_when_a_module_is_imported():
    at_import = re.compile(r"^[A-Za-z_]+ = .*(connect\(|environ|open\(|read_text\(|client\()", re.MULTILINE)
    assert [p for p in sources() if at_import.search(p.read_text())] == []


def test_no_tracked_text_names_a_machine_or_a_registry_host():
    texts = [
        p for p in _ours() if p.suffix in (".py", ".md", ".txt", ".toml", ".json", ".jsonl") and p != Path(__file__)
    ]
    pattern = re.compile(r"/(?:root|home)/\w|(?:pypi|files\.pythonhosted|registry\.npmjs)\.(?:org|com)")
    assert len(texts) > 500
    assert [p for p in texts if pattern.search(p.read_text(errors="replace"))] == []


def _ours() -> Iterator[Path]:
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name != "build" and not name.startswith(".")]
        yield from (Path(folder, name) for name in files if not name.startswith("."))
