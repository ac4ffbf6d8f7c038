"""ToolRet (Shi et al. 2025) from a local copy of `mangopy/ToolRet-Queries` and, if wanted, `mangopy/ToolRet-Tools`.

Queries: `id`, `query`, `labels` (a list of `{id, doc, relevance}`, or that list as JSON text), often `instruction` and
`category`. Tools: `id` and `documentation` (a document, or its JSON text). The columns tell the two apart.
The paper does not say how its registry was made: ours holds each tool once that labels embed (docs/evaluation-data.md).
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from experiments.data.rows import SourceInvalid, files, parse, rows
from mats.domain.errors import Fault
from mats.evaluation.data.datasets import JudgedSet

MAX_LABELS = 10_000  # Labels of one query; a file with more is broken
_FEW_LABELS = 5  # Sources with fewer labels are not judged
_PROVIDERS = ("provider", "api_provider", "tool_name", "server", "package", "domain")
"""Entries of a document that may name the provider of a tool; the first with text counts."""


def _parse_text(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


def _parse_document(value: object) -> object:
    """Text that is not a JSON object is the description."""
    try:
        parsed = _parse_text(value)
    except ValueError:
        parsed = None
    return {"description": value} if isinstance(value, str) and not isinstance(parsed, dict) else parsed


_Document = Annotated[dict[str, Any], BeforeValidator(_parse_document)]


class _Tool(BaseModel):
    id: str
    documentation: _Document


class _Label(BaseModel):
    id: str
    doc: _Document | None = None
    relevance: int = 1


class _Subset(BaseModel):
    subset: str | None = None


class _Query(_Subset):
    id: str
    query: str
    labels: Annotated[list[_Label], Field(max_length=MAX_LABELS), BeforeValidator(_parse_text)]
    instruction: str | None = None
    category: str | None = None
    metadata: _Subset | None = None


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
    labels, known = {label for _, label in copy.labels}, copy.published | copy.embedded
    documents = {id: doc for id, doc in known.items() if whole or id in labels}
    if undescribed := labels - documents.keys():
        copy.counts["label of a tool that no file describes"] = len(undescribed)
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
        for where, row in rows(path):
            if "query" in row or "labels" in row:
                _take_query(copy, parse(_Query, row, where), path)
            elif "documentation" in row:
                tool = parse(_Tool, row, where)
                if tool.id in copy.published:
                    copy.counts["tool with an id that was there before"] += 1
                copy.published.setdefault(tool.id, tool.documentation)
            else:
                message = "is neither a query (id, query, labels) nor a tool (id, documentation); columns: "
                raise SourceInvalid([Fault(where, f"{message}{', '.join(row)[:300]}")])
    return copy


def _take_query(copy: _LocalCopy, row: _Query, path: Path) -> None:
    relevant = [label for label in row.labels if label.relevance > 0]
    if row.id in copy.queries:
        copy.counts["query with an id that was there before"] += 1
        return
    if not row.query.strip():
        copy.counts["query without text"] += 1
        return
    copy.counts["label of relevance 0"] += len(row.labels) - len(relevant)
    if not relevant:
        copy.counts["query without a relevant label"] += 1
        return
    kept = row.model_dump(include={"instruction", "category"}, exclude_none=True)
    copy.queries[row.id] = {"text": row.query, "source": _source(row, path), **kept}
    for label in relevant:
        copy.labels[row.id, label.id] = label.relevance
        if label.doc is not None:
            copy.embedded.setdefault(label.id, label.doc)


def _source(row: _Query, path: Path) -> str:
    """The subset of a query: by its column, its id, or the folder of its file."""
    name, found, _ = row.id.partition("_query_")
    return row.subset or (row.metadata and row.metadata.subset) or (name if found else path.parent.name)


def _broken_sources(copy: _LocalCopy) -> dict[str, str]:
    """Sources where most labels embed one document, with that document."""
    by_source: dict[str, dict[str, str]] = defaultdict(dict)
    for query, label in copy.labels:
        if label in copy.embedded:
            by_source[copy.queries[query]["source"]][label] = _content(copy.embedded[label])
    shared = {source: shared_document(labels.values()) for source, labels in by_source.items()}
    return {source: document for source, document in shared.items() if document is not None}


def shared_document(documents: Collection[str]) -> str | None:
    """The document that more than half of a source's labels embed; None if there is none, or fewer than five labels."""
    if len(documents) < _FEW_LABELS:
        return None
    document, count = Counter(documents).most_common(1)[0]
    return document if 2 * count > len(documents) else None


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
