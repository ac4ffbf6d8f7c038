"""Requests that could change an OpenSearch node, and what each of them did change."""

import http.client
import json
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from mats.adapters.opensearch import mapping
from tests.aws import iam
from tests.aws.deployment import texts

State = dict[str, Any]

_NAMES = (
    "capabilities", "capabilities-1", "capabilities-1-write", "capabilities-3", "capabilities-1,capabilities-2",
    "capabilities-1-write,capabilities-2-write", "capabilities-1,unrelated", "capabilities-*", "unrelated", "_all",
)  # fmt: skip
_CALLS = ("_search", "_mget", "_msearch", "_count", "_bulk")
_NAMED = ("_doc", "_create", "_update", "_alias", "_split", "_clone", "_shrink", "_rollover", "_block", "_explain")
"""What takes one more part: the id of a document, the name of an alias, an index or a block."""
_BELOW_AN_INDEX = (
    "", *_CALLS, *_NAMED, *(f"{call}/{part}" for call in _NAMED for part in ("x", "capabilities-4", "write")),
    "_bulk/stream", "_settings", "_mapping", "_aliases", "_close", "_open", "_flush", "_refresh", "_forcemerge",
    "_cache/clear", "_delete_by_query", "_update_by_query", "_search/template", "_search/point_in_time", "_rank_eval",
)  # fmt: skip
_OF_THE_NODE = (
    "_bulk", "_aliases", "_reindex", "_mapping", "_settings", "_scripts/x", "_cluster/settings", "_cluster/reroute",
    "_ingest/pipeline/x", "_search/pipeline/x", "_template/x", "_index_template/x", "_component_template/x",
    "_data_stream/x", "_snapshot/x", "_alias/x", "_dangling/x", "_plugins/_knn/models/x/_train",
)  # fmt: skip

_DOCUMENT = {"id": "planted", "rev": 9, "findable": True}
_ADD = {"add": {"index": "unrelated", "alias": "capabilities"}}
_BODIES: tuple[Any, ...] = (
    None,
    _DOCUMENT,
    {"doc": _DOCUMENT, "doc_as_upsert": True},
    {"query": {"match_all": {}}},
    {"query": {"match_all": {}}, "script": {"source": "ctx._source.rev = 99"}},
    {"ids": ["first"]},
    {"docs": [{"_id": "first", "_index": "unrelated"}]},
    {"index": {"refresh_interval": "9s"}},
    {"properties": {"planted": {"type": "keyword"}}},
    {"aliases": {"planted": {}}},
    {"actions": [_ADD]},
    {"source": {"index": "unrelated"}, "dest": {"index": "capabilities-1"}},
    {"transient": {"cluster.max_shards_per_node": 999}},
    {"processors": []},
    {"script": {"lang": "painless", "source": "1"}},
    [{"index": {"_id": "planted"}}, _DOCUMENT],
    [{"index": {"_id": "planted", "_index": "unrelated"}}, _DOCUMENT],
    [{"delete": {"_id": "first"}}],
    [{}, {"query": {"match_all": {}}}],
)
"""A list is sent as lines, as `_bulk` and `_msearch` take it."""
_QUERIES = ("?index=unrelated", "?op_type=create&refresh=true", "?scroll=1m&pipeline=_none")


class Request(NamedTuple):
    """A method, and a path as it goes over the wire: what a signature covers, without the query string."""

    method: str
    path: str

    @property
    def readings(self) -> set[str]:
        """The paths that a policy may be held against: as sent, decoded once or twice, or with dots resolved."""
        decoded = unquote(self.path)
        read = {self.path, decoded, unquote(decoded)}
        return read | {posixpath.normpath(each) for each in read} | {each.replace("//", "/") for each in read}


def requests(patterns: Iterable[str]) -> Iterator[Request]:
    """Paths that change something where they are allowed, and whatever these patterns of a policy could be meant to let
    through: each `*` filled with parts of paths, and each path in other spellings.
    """
    spelt = [*_OF_THE_NODE, *(f"{name}/{rest}".rstrip("/") for name, rest in product(_NAMES, _BELOW_AN_INDEX))]
    for pattern in patterns:
        spelt += _filled(pattern) if "*" in pattern else _respelt(pattern)
    for path, method in product(dict.fromkeys(spelt), ("POST", "PUT", "DELETE", "GET")):
        yield Request(method, f"/{path}")


def _filled(pattern: str) -> Iterator[str]:
    """With text for its `*`, which may hold a `/` of its own: the call is then another one."""
    before, _, after = pattern.partition("*")
    for name, call in product(("1", "-1", "3", "1,unrelated", "1,capabilities-2"), ("", *_BELOW_AN_INDEX)):
        inside = f"{name}/{call}" if call else name
        yield before + inside + after
        yield before + inside.replace("/", "%2F") + after
        yield f"{before}{inside}/x{after.replace('/', '%2F')}"


def _respelt(path: str) -> Iterator[str]:
    head, _, last = path.partition("/")
    yield from (path, f"{head}%2F{last}", f"{head}//{last}", f"{path}/", f"./{path}", path.replace("_", "%5F"))
    yield from (f"{head}/x/../{last}", f"{head}/../unrelated/{last}", f"{path}%2F..%2F_doc", f"%63{path[1:]}")
    yield from (f"{head}/_doc/{last}", f"{head}/_doc%2F{last}", f"{path}/x", f"{path},x")


class Node:
    """An OpenSearch node with two indices of ours and one of someone else; `changes` says what requests do to it."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def close(self) -> None:
        """Delete every index, and end the connection."""
        self.clear()
        self._connection.close()

    def reset(self) -> None:
        """Make everything as it was at first."""
        self.clear()
        for name, aliases in (("capabilities-1", ["capabilities"]), ("capabilities-2", []), ("unrelated", [])):
            body = mapping.index_body(None, aliases=[mapping.write_alias(name), *aliases], replicas="0-1", refresh="1s")
            self._ask("PUT", f"/{name}?wait_for_active_shards=1", body)
            self._ask("PUT", f"/{name}/_doc/first?refresh=true", {"id": "first", "rev": 1, "findable": True})
        self._ask("GET", "/_cluster/health?wait_for_status=green&wait_for_events=languid&timeout=60s")

    def clear(self) -> None:
        """Delete every index."""
        for each in self._ask("GET", "/_cat/indices?format=json&expand_wildcards=all"):
            self._ask("DELETE", f"/{each['index']}")

    def changes(self, asked: Iterable[Request]) -> dict[Request, set[str]]:
        """The requests that changed something with any of the bodies, and the parts of `state` that differ afterwards.

        Each request starts from the same state.
        """
        self.reset()
        before = self.state()
        found = {}
        for each in asked:
            for body in _BODIES:
                self._ask(each.method, each.path, body, strict=False)
            for query in _QUERIES:
                self._ask(each.method, each.path + query, _DOCUMENT, strict=False)
            after = self.state()
            if after != before:
                found[each] = {part for part in {*before, *after} if before.get(part) != after.get(part)}
                self.reset()
                before = self.state()
        return found

    def state(self) -> State:
        """All that is kept: "index NAME", "documents of NAME", and what is said of the whole node."""
        self._ask("POST", "/_refresh?expand_wildcards=all&ignore_unavailable=true", strict=False)
        kept = self._ask("GET", "/_cluster/state/metadata,blocks?expand_wildcards=all")
        state: State = {"blocks": kept.get("blocks")}
        for name, each in kept["metadata"].pop("indices").items():
            state[f"index {name}"] = {key: each[key] for key in ("state", "settings", "mappings", "aliases")}
        state |= {name: each for name, each in kept["metadata"].items() if not name.startswith("cluster_")}
        hits = self._ask("POST", "/*/_search?expand_wildcards=open", {"size": 1000, "version": True})["hits"]["hits"]
        for hit in hits:
            state.setdefault(f"documents of {hit['_index']}", {})[hit["_id"]] = (hit["_version"], hit["_source"])
        return state

    def _ask(self, method: str, target: str, body: Any = None, *, strict: bool = True) -> Any:
        lines = body if isinstance(body, list) else [body]
        data = None if body is None else "".join(f"{json.dumps(line)}\n" for line in lines)
        kind = "application/x-ndjson" if isinstance(body, list) else "application/json"
        self._connection.request(method, target, data, {"Content-Type": kind} if data else {})
        answer = self._connection.getresponse()
        content = answer.read()
        assert not strict or answer.status < 300, f"{method} {target}: {content!r}"
        return json.loads(content) if strict else answer.status


def allowed_requests(statements: Sequence[iam.Statement], domain: str) -> Sequence[Request]:
    """The requests that a policy may let through in one reading of their path or another, each once."""
    arns = [arn for each in statements for arn in texts(each["Resource"]) if arn.startswith(domain)]
    patterns = dict.fromkeys(arn.removeprefix(f"{domain}/") for arn in arns)
    return [
        each
        for each in dict.fromkeys(requests(patterns))
        if any(iam.allowed(statements, f"es:ESHttp{each.method.title()}", domain + read) for read in each.readings)
    ]
