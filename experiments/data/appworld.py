"""AppWorld (Trivedi et al. 2024) from a local copy of its data: API documents as tools or apps as agents, and tasks.

Read are `api_docs/standard/APP.json` (`{API: {app_name, api_name, method, path, description, parameters, …}}`, or a
list of such), `tasks/ID/specs.json` (`instruction`), `tasks/ID/ground_truth/required_apis.json` and
`required_apps.json`, and `datasets/SPLIT.txt`. Tasks without ground truth, which is published for train and dev only,
are counted.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.data.rows import SourceInvalid, document
from mats.domain.errors import Fault
from mats.evaluation.data.datasets import JudgedSet

HELPERS = frozenset({"api_docs", "supervisor", "admin"})
"""Helper apps of an agent; not capabilities that a query looks for."""


def appworld(folder: Path, *, agents: bool = False) -> JudgedSet:
    """AppWorld's tasks over its APIs, or over its apps as agents.

    Raises:
        SourceInvalid: a file does not have the published format; the fault names it.
    """
    data = folder / "data" if (folder / "data").is_dir() else folder
    counts: Counter[str] = Counter()
    apis = dict(_apis(data, counts))
    corpus = _apps(apis) if agents else {id: _tool(api) for id, api in apis.items()}
    queries: dict[str, dict[str, Any]] = {}
    qrels: dict[tuple[str, str], int] = {}
    splits = _splits(data)
    for task in sorted(specs.parent for specs in (data / "tasks").glob("*/specs.json")):
        labels = _labels(task, "required_apps.json" if agents else "required_apis.json")
        gold = {label for label in labels if label.split(".")[0] not in HELPERS}
        counts["label of a helper app"] += len(labels) - len(gold)
        text = _instruction(task)
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


def _apis(data: Path, counts: Counter[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The document of every API outside the helper apps, by `app.api`."""
    folder = next((f for f in (data / "api_docs" / "standard", data / "api_docs", data) if any(f.glob("*.json"))), None)
    if folder is None:
        raise SourceInvalid([Fault(str(data), "holds no api_docs/standard/APP.json")])
    for path in sorted(folder.glob("*.json")):
        for app, name, api in _documents(path):
            if app in HELPERS:
                counts["API of a helper app"] += 1
            else:
                yield f"{app}.{name}", {**api, "app_name": app, "api_name": name}


def _documents(path: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Each document with the names of app and API in it, else the file's and the key's."""
    value = document(path)
    if isinstance(value, list):
        value = {str(i): api for i, api in enumerate(value)}
    if not isinstance(value, dict):
        raise SourceInvalid([Fault(str(path), f"must hold API documents, not {type(value).__name__}")])
    for at, api in value.items():
        if not isinstance(api, dict):
            raise SourceInvalid([Fault(f"{path}, {at}", f"must be an API document, not {type(api).__name__}")])
        app, name = api.get("app_name", path.stem), api.get("api_name", at)
        if not isinstance(app, str) or not isinstance(name, str) or not app or not name:
            raise SourceInvalid([Fault(f"{path}, {at}", "`app_name` and `api_name` must be strings")])
        yield app, name, api


def _tool(api: Mapping[str, Any]) -> dict[str, Any]:
    """A corpus row; the app is part of the name, because several apps have a `login`."""
    row: dict[str, Any] = {
        "type": "tool",
        "name": f"{api['app_name']}.{api['api_name']}",
        "description": _description(api),
        "provider": api["app_name"],
        "source": "appworld",
    }
    parameters = api.get("parameters")
    if isinstance(parameters, list):
        row["parameters"] = _schema(parameters)
    elif parameters:
        row["parameters"] = parameters
    return row | {name: api[name] for name in ("method", "path") if isinstance(api.get(name), str)}


def _description(api: Mapping[str, Any]) -> str:
    description = api.get("description")
    return description if isinstance(description, str) else ""


def _schema(parameters: list[Any]) -> dict[str, Any]:
    valid = [p for p in parameters if isinstance(p, dict) and isinstance(p.get("name"), str)]
    return {
        "type": "object",
        "properties": {
            p["name"]: {key: p[key] for key in ("type", "description", "default") if p.get(key) is not None}
            for p in valid
        },
        "required": [p["name"] for p in valid if p.get("required") is True],
    }


def _apps(apis: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    apps: dict[str, list[Mapping[str, Any]]] = {}
    for id in sorted(apis):
        apps.setdefault(apis[id]["app_name"], []).append(apis[id])
    return {
        app: {
            "type": "agent",
            "name": app,
            "description": "\n".join(f"{api['api_name']}: {_description(api)}" for api in own),
            "provider": app,
            "skills": [{"name": api["api_name"], "description": _description(api)} for api in own],
            "source": "appworld",
        }
        for app, own in apps.items()
    }


def _instruction(task: Path) -> str:
    specs = document(task / "specs.json")
    if not isinstance(specs, dict) or not isinstance(specs.get("instruction"), str):
        raise SourceInvalid([Fault(str(task / "specs.json"), "needs a string in `instruction`")])
    return str(specs["instruction"])


def _labels(task: Path, name: str) -> list[str]:
    """The labels of a task; empty where the ground truth is not published."""
    path = task / "ground_truth" / name
    if not path.exists():
        return []
    labels = document(path)
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise SourceInvalid([Fault(str(path), "must hold a list of names")])
    return labels


def _splits(data: Path) -> dict[str, str]:
    """The split of every task in `datasets`; the first by name if there are several."""
    splits: dict[str, str] = {}
    for path in sorted((data / "datasets").glob("*.txt")):
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            if line.strip():
                splits.setdefault(line.strip(), path.stem)
    return splits
