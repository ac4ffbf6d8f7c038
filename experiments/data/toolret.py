"""ToolRet (Shi et al. 2025) from a local copy of `mangopy/ToolRet-Queries` and, if wanted, `mangopy/ToolRet-Tools`.

Queries: `id`, `query`, `labels` (a list of `{id, doc, relevance}`, or that list as JSON text), often `instruction` and
`category`. Tools: `id` and `documentation` (a document, or its JSON text). The columns tell the two apart.
The paper does not say how its registry was made: ours holds each tool once that labels embed (docs/evaluation-data.md).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.data.rows import SourceInvalid, SourceRow, files, rows
from mats.domain.errors import Fault
from mats.evaluation.data.datasets import JudgedSet

MAX_LABELS = 10_000  # Labels of one query; a file with more is broken
_FEW_LABELS = 5  # Sources with fewer labels are not judged
_PROVIDERS = ("provider", "api_provider", "tool_name", "server", "package", "domain")
"""Entries of a document that may name the provider of a tool; the first with text counts."""


@dataclass(slots=True)
class _LocalCopy:
    queries: dict[str, dict[str, Any]] = field(default_factory=dict)
    labels: dict[tuple[str, str], int] = field(default_factory=dict)
    embedded: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # The first document of each label
    published: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # Documents of ToolRet-Tools
    counts: Counter[str] = field(default_factory=Counter)


def toolret(folder: Path, *, whole: bool = False) -> JudgedSet:
    """ToolRet's queries over their gold tools, or with `whole` over every published tool.

    Raises:
        SourceInvalid: a file does not have the published format; the fault names file and line.
    """
    copy = _load(folder)
    if not copy.queries:
        raise SourceInvalid([Fault(str(folder), "holds no query: a row with `id`, `query` and `labels`")])
    broken = _broken_sources(copy)
    documents = _documents(copy, whole)
    ids, alias = _deduplicate(copy, documents, broken)
    corpus = {id: {"type": "tool", **_tool(id, documents[id])} for id in ids}
    suspicions = tuple(
        f"{source}: most labels embed one document, so they are meaningless; only the first is registered"
        for source in sorted(broken)
    )
    return JudgedSet(
        corpus=corpus, queries=copy.queries, qrels=_rename(copy.labels, alias),
        left_out=dict(sorted(copy.counts.items())), suspicions=suspicions,
    )  # fmt: skip


def agents(tools: JudgedSet) -> JudgedSet:
    """The Agents view: tools of one source and one provider become one agent, every other tool an agent of its own."""
    groups: dict[str, list[str]] = defaultdict(list)
    for id, row in tools.corpus.items():
        groups[f"{row['source']}/{row['provider']}" if row.get("provider") else id].append(id)
    agent_of = {id: name for name, ids in groups.items() for id in ids}
    corpus = {name: _agent([tools.corpus[id] for id in sorted(ids)]) for name, ids in groups.items()}
    left_out = {**tools.left_out, "tools grouped into an agent with others": len(tools.corpus) - len(corpus)}
    return replace(tools, corpus=corpus, qrels=_rename(tools.qrels, agent_of), left_out=left_out)


def _rename(qrels: Mapping[tuple[str, str], int], names: Mapping[str, str]) -> dict[tuple[str, str], int]:
    """Grades under the new names of labels; where two become one, the higher grade."""
    renamed: dict[tuple[str, str], int] = {}
    for (query, label), grade in qrels.items():
        at = query, names.get(label, label)
        renamed[at] = max(grade, renamed.get(at, 0))
    return renamed


def _agent(tools: list[Mapping[str, Any]]) -> dict[str, Any]:
    first = tools[0]
    if len(tools) == 1:
        return {**first, "type": "agent"}
    skills = [{"name": tool["name"], "description": tool["description"]} for tool in tools]
    return {
        "type": "agent",
        "name": first["provider"],
        "description": "\n".join(f"{skill['name']}: {skill['description']}" for skill in skills)[:100_000],
        "provider": first["provider"],
        "skills": skills,
        "source": first["source"],
    }


def _load(folder: Path) -> _LocalCopy:
    copy = _LocalCopy()
    for path in files(folder):
        for row in rows(path):
            if "query" in row.values or "labels" in row.values:
                _take_query(copy, row, path)
            elif "documentation" in row.values or "doc" in row.values:
                _take_tool(copy, row)
            else:
                have = ", ".join(map(str, row.values))[:300]
                raise row.fault(
                    f"is neither a query (id, query, labels) nor a tool (id, documentation); columns: {have}"
                )
    return copy


def _take_query(copy: _LocalCopy, row: SourceRow, path: Path) -> None:
    id, text = row.text("id"), row.text("query")
    labels = list(_labels(row))
    if id in copy.queries:
        copy.counts["query with an id that was there before"] += 1
        return
    if not text.strip():
        copy.counts["query without text"] += 1
        return
    relevant = [(label, doc, grade) for label, doc, grade in labels if grade > 0]
    copy.counts["label of relevance 0"] += len(labels) - len(relevant)
    if not relevant:
        copy.counts["query without a relevant label"] += 1
        return
    copy.queries[id] = {"text": text, "source": _source(row, id, "_query_", path)} | {
        name: row.values[name] for name in ("instruction", "category") if isinstance(row.values.get(name), str)
    }
    for label, doc, grade in relevant:
        copy.labels[id, label] = grade
        if doc is not None:
            copy.embedded.setdefault(label, doc)


def _take_tool(copy: _LocalCopy, row: SourceRow) -> None:
    id = row.text("id")
    if id in copy.published:
        copy.counts["tool with an id that was there before"] += 1
        return
    doc = row.values.get("documentation", row.values.get("doc"))
    copy.published[id] = _document(row, doc, "documentation")


def _labels(row: SourceRow) -> Iterable[tuple[str, Mapping[str, Any] | None, int]]:
    value = row.values.get("labels")
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise row.fault(f"`labels` is not JSON: {error}") from error
    if not isinstance(value, list):
        raise row.fault(f"`labels` must be a list of labels, not {type(value).__name__}")
    if len(value) > MAX_LABELS:
        raise row.fault(f"`labels` has {len(value):,} entries; a query may have {MAX_LABELS:,}")
    return [_label(row, i, label) for i, label in enumerate(value)]


def _label(row: SourceRow, at: int, label: object) -> tuple[str, Mapping[str, Any] | None, int]:
    if not isinstance(label, dict) or not isinstance(label.get("id"), str | int):
        raise row.fault(f"`labels.{at}` must be an object with an `id`")
    grade = label.get("relevance", 1)
    try:
        grade = int(grade)
    except (TypeError, ValueError) as error:
        raise row.fault(f"`labels.{at}.relevance` must be a whole number, not {grade!r}"[:300]) from error
    doc = label.get("doc")
    return str(label["id"]), None if doc is None else _document(row, doc, f"labels.{at}.doc"), grade


def _document(row: SourceRow, value: object, where: str) -> Mapping[str, Any]:
    """A document; text that is not a JSON object is its description."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            parsed = None
        value = parsed if isinstance(parsed, dict) else {"description": value}
    if not isinstance(value, dict):
        raise row.fault(f"`{where}` must be an object or text, not {type(value).__name__}")
    return value


def _source(row: SourceRow, id: str, between: str, path: Path) -> str:
    """The subset of a row: by its column, its id, or its file."""
    metadata = row.values.get("metadata")
    for subset in (row.values.get("subset"), metadata.get("subset") if isinstance(metadata, dict) else None):
        if isinstance(subset, str) and subset:
            return subset
    if between in id:
        return id.split(between, maxsplit=1)[0]
    name = path.name.split(".", maxsplit=1)[0]
    return path.parent.name if name.startswith(("queries", "train", "test")) else name


def _documents(copy: _LocalCopy, whole: bool) -> dict[str, Mapping[str, Any]]:
    """The document of every tool to register: the label's, else the published one."""
    documents = dict(copy.published) if whole else {}
    for label in {label for _, label in copy.labels}:
        doc = copy.embedded.get(label, copy.published.get(label))
        if doc is not None:
            documents[label] = doc
        else:
            copy.counts["label of a tool that no file describes"] += 1
    return documents


def _broken_sources(copy: _LocalCopy) -> dict[str, str]:
    """Sources where most labels embed one document, with that document."""
    by_source: dict[str, dict[str, str]] = defaultdict(dict)
    for query, label in copy.labels:
        if label in copy.embedded:
            by_source[copy.queries[query]["source"]][label] = _content(copy.embedded[label])
    shared = {source: shared_document(labels) for source, labels in by_source.items()}
    return {source: str(document) for source, document in shared.items() if document is not None}


def shared_document(labels: Mapping[Any, Hashable]) -> Hashable | None:
    """The document that more than half of a source's labels embed; None if there is none, or fewer than five labels."""
    if len(labels) < _FEW_LABELS:
        return None
    document, count = Counter(labels.values()).most_common(1)[0]
    return document if 2 * count > len(labels) else None


def _deduplicate(
    copy: _LocalCopy, documents: Mapping[str, Mapping[str, Any]], broken: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The first id of every document, and the id that replaces each of the others.

    Labels of a broken source have no replacement: the shared document is not theirs.
    """
    first: dict[str, str] = {}
    alias: dict[str, str] = {}
    broken_documents = set(broken.values())
    for id in sorted(documents):
        content = _content(documents[id])
        if content not in first:
            first[content] = id
        elif content in broken_documents:
            copy.counts["label of a broken source, not registered"] += 1
        else:
            alias[id] = first[content]
            copy.counts["tool with the document of another, one of them kept"] += 1
    return sorted(first.values()), alias


def _content(doc: Mapping[str, Any]) -> str:
    return json.dumps(doc, sort_keys=True, ensure_ascii=False, default=str)


def _tool(id: str, doc: Mapping[str, Any]) -> dict[str, Any]:
    """A corpus row; entries without an attribute of ours go under `documentation`."""
    name = doc.get("name") if isinstance(doc.get("name"), str) else ""
    printable = "".join(c if c.isprintable() else " " for c in name or "").strip()[:200]
    description = doc.get("description") or ""
    source = id.split("_tool_", maxsplit=1)[0] if "_tool_" in id else "toolret"
    row = {
        "name": printable or id[:200],
        "description": description if isinstance(description, str) else json.dumps(description, ensure_ascii=False),
        "source": source,
    }
    provider = next((doc[key].strip() for key in _PROVIDERS if isinstance(doc.get(key), str) and doc[key].strip()), "")
    if not provider and source.startswith("toolbench") and "_for_" in printable:
        provider = printable.rsplit("_for_", 1)[1]
    if provider:
        row["provider"] = " ".join(provider.split())[:200]
    if doc.get("parameters"):
        row["parameters"] = doc["parameters"]
    rest = {key: value for key, value in doc.items() if key not in ("name", "description", "parameters")}
    return row | ({"documentation": rest} if rest else {})
