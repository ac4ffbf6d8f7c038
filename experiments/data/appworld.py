"""AppWorld (Trivedi et al. 2024) from a local copy of its data: API documents as tools or apps as agents, and tasks.

Read are `api_docs/standard/APP.json` (`{API: {app_name, api_name, method, path, description, parameters, …}}`, or a
list of such), `tasks/ID/specs.json` (`instruction`), `tasks/ID/ground_truth/required_apis.json` and
`required_apps.json`, and `datasets/SPLIT.txt`. Tasks without ground truth, which is published for train and dev only,
are counted.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from experiments.data.rows import SourceInvalid, document, parse
from mats.domain.errors import Fault
from mats.evaluation.data.datasets import JudgedSet

HELPERS = frozenset({"api_docs", "supervisor", "admin"})
"""Helper apps of an agent; not capabilities that a query looks for."""


class _Parameter(BaseModel):
    name: str
    type: Any = None
    description: Any = None
    default: Any = None
    required: bool = False


class _Api(BaseModel):
    app_name: str
    api_name: str
    method: str | None = None
    path: str | None = None
    description: str = ""
    parameters: list[_Parameter] = []


class _Specs(BaseModel):
    instruction: str


def appworld(folder: Path, *, agents: bool = False) -> JudgedSet:
    """AppWorld's tasks over its APIs, or over its apps as agents.

    Raises:
        SourceInvalid: a file does not have the published format; the fault names it.
    """
    data = folder / "data" if (folder / "data").is_dir() else folder
    counts: Counter[str] = Counter()
    apis = _apis(data, counts)
    corpus = _apps(apis) if agents else {id: _tool(id, api) for id, api in apis.items()}
    queries: dict[str, dict[str, Any]] = {}
    qrels: dict[tuple[str, str], int] = {}
    splits = _splits(data)
    for task in sorted(specs.parent for specs in (data / "tasks").glob("*/specs.json")):
        labels = _labels(task, "required_apps.json" if agents else "required_apis.json")
        gold = {label for label in labels if label.split(".")[0] not in HELPERS}
        counts["label of a helper app"] += len(labels) - len(gold)
        text = parse(_Specs, document(task / "specs.json"), str(task / "specs.json")).instruction
        if not (gold and text.strip()):
            counts["task without text" if gold else "task without a label"] += 1
            continue
        queries[task.name] = {"text": text, "source": splits.get(task.name, "appworld")}
        qrels.update({(task.name, label): 1 for label in gold})
    if not queries:
        raise SourceInvalid([Fault(str(data / "tasks"), "holds no task with specs.json and ground truth")])
    return JudgedSet(
        corpus=corpus, queries=queries, qrels=qrels, left_out={k: n for k, n in sorted(counts.items()) if n}
    )


def _apis(data: Path, counts: Counter[str]) -> dict[str, _Api]:
    """Every API outside the helper apps, by `app.api`: several apps have a `login`."""
    apis = {}
    for path in sorted((data / "api_docs" / "standard").glob("*.json")):
        value = document(path)
        for api in parse(list[_Api], list(value.values()) if isinstance(value, dict) else value, str(path)):
            if api.app_name in HELPERS:
                counts["API of a helper app"] += 1
            else:
                apis[f"{api.app_name}.{api.api_name}"] = api
    if not apis:
        raise SourceInvalid([Fault(str(data), "holds no api_docs/standard/APP.json")])
    return apis


def _tool(id: str, api: _Api) -> dict[str, Any]:
    """A corpus row."""
    row = {"type": "tool", "name": id, "description": api.description, "provider": api.app_name, "source": "appworld"}
    about = {"type", "description", "default"}
    schema = {
        "type": "object",
        "properties": {each.name: each.model_dump(include=about, exclude_none=True) for each in api.parameters},
        "required": [each.name for each in api.parameters if each.required],
    }
    return {**row, "parameters": schema, **api.model_dump(include={"method", "path"}, exclude_none=True)}


def _apps(apis: Mapping[str, _Api]) -> dict[str, dict[str, Any]]:
    apps: dict[str, list[_Api]] = {}
    for id in sorted(apis):
        apps.setdefault(apis[id].app_name, []).append(apis[id])
    return {
        app: {
            "type": "agent",
            "name": app,
            "description": "\n".join(f"{api.api_name}: {api.description}" for api in own),
            "provider": app,
            "skills": [{"name": api.api_name, "description": api.description} for api in own],
            "source": "appworld",
        }
        for app, own in apps.items()
    }


def _labels(task: Path, name: str) -> list[str]:
    """The labels of a task; empty where the ground truth is not published."""
    path = task / "ground_truth" / name
    return parse(list[str], document(path), str(path)) if path.exists() else []


def _splits(data: Path) -> dict[str, str]:
    """The split of every task in `datasets`; the first by name if there are several."""
    paths = sorted((data / "datasets").glob("*.txt"), reverse=True)
    return {task: path.stem for path in paths for task in path.read_text(encoding="utf-8").split()}
