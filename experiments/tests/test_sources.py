"""Published benchmarks come into our layout from whatever shape the local copy has; what is broken is named."""

import gzip
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.data import rows as reading
from experiments.data.appworld import appworld
from experiments.data.rows import SourceInvalid, files
from experiments.data.sets import sets_in
from experiments.data.toolret import MAX_LABELS, agents, shared_document, toolret
from mats.evaluation.data.datasets import FILES, DatasetInvalid, FolderInUse, load, write


def a_doc(name="convert_units", **entries):
    return {"name": name, "description": f"Does {name}.", "parameters": {"x": {"type": "int"}}, **entries}


def a_label(id="made_tool_1", doc=None, **entries):
    return {"id": id, "doc": a_doc() if doc is None else doc, "relevance": 1, **entries}


def a_query(number=1, labels=None, source="made", **entries):
    return {
        "id": f"{source}_query_{number}",
        "query": f"Please do thing {number}.",
        "labels": [a_label()] if labels is None else labels,
        **entries,
    }


def jsonl(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def a_set(judged, out):
    write(judged, out)
    return load(out)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("queries.jsonl", json.dumps(a_query())),
        ("queries.json", json.dumps([a_query()])),
        ("queries.jsonl", json.dumps(a_query()) + "\n\n" + json.dumps(a_query(2))),
        ("deep/er/queries.jsonl", json.dumps({**a_query(), "labels": json.dumps([a_label()])})),
        ("q.jsonl.gz", json.dumps(a_query())),
    ],
)
def test_queries_are_read_from_json_but_not_from_hidden_and_metadata_files(tmp_path, name, text):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    jsonl(tmp_path / ".cache" / "q.jsonl", {"x": 1})
    jsonl(tmp_path / "dataset_infos.json", {"x": 1})
    assert files(tmp_path) == [path]
    judged = toolret(tmp_path)
    assert "made_query_1" in judged.queries
    assert judged.qrels["made_query_1", "made_tool_1"] == 1


def test_a_set_can_be_loaded_and_is_what_the_copy_says(tmp_path):
    jsonl(tmp_path / "in" / "q.jsonl", a_query(instruction="Given a task, find tools.", category="code"))
    judged = toolret(tmp_path / "in")
    assert judged.queries["made_query_1"]["instruction"] == "Given a task, find tools."
    dataset = a_set(judged, tmp_path / "out")
    assert (len(dataset.registrations), len(dataset.queries), dict(dataset.refused)) == (1, 1, {})
    assert dataset.queries[0].source == "made"
    assert dataset.queries[0].relevant == {dataset.registrations[0].id}
    assert dataset.unregistered_gold == {}


def test_the_registry_is_the_union_of_gold_tools_without_duplicates(tmp_path):
    other = a_label("made_tool_2")
    third = a_label("made_tool_3", a_doc("another"))
    jsonl(tmp_path / "q.jsonl", a_query(1), a_query(2, [other, third]))
    judged = toolret(tmp_path)
    assert sorted(judged.corpus) == ["made_tool_1", "made_tool_3"]
    assert judged.qrels == {
        ("made_query_1", "made_tool_1"): 1,
        ("made_query_2", "made_tool_1"): 1,
        ("made_query_2", "made_tool_3"): 1,
    }
    assert judged.left_out["tool with the document of another, one of them kept"] == 1


def test_all_published_tools_are_registered_only_if_asked_for(tmp_path):
    jsonl(tmp_path / "q.jsonl", a_query())
    jsonl(tmp_path / "web" / "tools.jsonl", {"id": "made_tool_9", "documentation": json.dumps(a_doc("filler"))})
    assert sorted(toolret(tmp_path).corpus) == ["made_tool_1"]
    assert sorted(toolret(tmp_path, whole=True).corpus) == ["made_tool_1", "made_tool_9"]


def test_a_label_without_a_document_has_the_published_one(tmp_path):
    label = {"id": "made_tool_9", "relevance": 1}
    jsonl(tmp_path / "q.jsonl", a_query(1, [label]), a_query(2, [{"id": "made_tool_8", "relevance": 1}]))
    jsonl(tmp_path / "tools.jsonl", {"id": "made_tool_9", "documentation": "Only words."})
    judged = toolret(tmp_path)
    assert judged.corpus["made_tool_9"]["description"] == "Only words."
    assert judged.corpus["made_tool_9"]["name"] == "made_tool_9"
    assert judged.left_out["label of a tool that no file describes"] == 1
    assert judged.qrels["made_query_2", "made_tool_8"] == 1


def test_a_source_with_one_document_is_reported_and_not_merged(tmp_path):
    good = [a_query(i, [a_label(f"made_tool_{i}", a_doc(f"tool_{i}"))]) for i in range(4)]
    bad = [a_query(i, [a_label(f"ultra_tool_{i}", a_doc("same"))], source="ultra") for i in range(5)]
    jsonl(tmp_path / "in" / "q.jsonl", *good, *bad)
    judged = toolret(tmp_path / "in")
    assert judged.suspicions[0].startswith("ultra: most labels embed one document")
    assert judged.left_out["label of a broken source, not registered"] == 4
    assert len(a_set(judged, tmp_path / "out").unregistered_gold) == 4


def test_dropped_rows_are_counted_by_reason(tmp_path):
    jsonl(
        tmp_path / "q.jsonl",
        a_query(1),
        a_query(1),
        a_query(2, query="  "),
        a_query(3, [a_label(relevance=0)]),
        a_query(4, []),
    )
    assert {reason: n for reason, n in toolret(tmp_path).left_out.items() if n} == {
        "label of relevance 0": 1,
        "query with an id that was there before": 1,
        "query without a relevant label": 2,
        "query without text": 1,
    }


def test_tools_of_one_provider_become_one_agent(tmp_path):
    labels = [a_label(f"made_tool_{i}", a_doc(f"tool_{i}", provider="Acme" if i < 2 else None)) for i in range(3)]
    jsonl(tmp_path / "in" / "q.jsonl", *(a_query(i, [label]) for i, label in enumerate(labels)))
    judged = agents(toolret(tmp_path / "in"))
    assert sorted(judged.corpus) == ["made/Acme", "made_tool_2"]
    assert judged.corpus["made/Acme"]["description"] == "tool_0: Does tool_0.\ntool_1: Does tool_1."
    assert judged.qrels["made_query_1", "made/Acme"] == 1
    assert judged.left_out["tools grouped into an agent with others"] == 1
    dataset = a_set(judged, tmp_path / "out")
    assert {registration.kind for registration in dataset.registrations} == {"agent"}
    assert dataset.unregistered_gold == {}


def test_toolbench_names_say_their_api(tmp_path):
    labels = [a_label(f"toolbench_tool_{i}", a_doc(f"end_{i}_for_weather_api")) for i in range(2)]
    jsonl(tmp_path / "q.jsonl", a_query(1, labels, source="toolbench"))
    assert sorted(agents(toolret(tmp_path)).corpus) == ["toolbench/weather_api"]


def test_two_runs_write_the_same_bytes(tmp_path):
    queries = [a_query(i, [a_label(f"made_tool_{n}", a_doc(f"t{n}")) for n in (i, 9 - i)]) for i in range(5)]
    jsonl(tmp_path / "a" / "q.jsonl", *queries)
    jsonl(tmp_path / "b" / "q.jsonl", *reversed(queries))
    write(toolret(tmp_path / "a"), tmp_path / "one")
    write(toolret(tmp_path / "b"), tmp_path / "two")
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_folder_that_is_not_empty_needs_force(tmp_path):
    jsonl(tmp_path / "in" / "q.jsonl", a_query())
    judged = toolret(tmp_path / "in")
    write(judged, tmp_path / "out")
    with pytest.raises(FolderInUse, match="--force"):
        write(judged, tmp_path / "out")
    write(judged, tmp_path / "out", force=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(FILES)
    (tmp_path / "file").write_text("x")
    with pytest.raises(FolderInUse, match="is a file"):
        write(judged, tmp_path / "file", force=True)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "q", "query": 3.5, "labels": []}, r"line 2: query: must be text"),
        ({"query": "x", "labels": []}, r"line 2: id: is required"),
        ({"id": "q", "query": "x"}, r"line 2: labels: is required"),
        ({"id": "q", "query": "x", "labels": "[{"}, r"line 2: labels: "),
        ({"id": "q", "query": "x", "labels": ["t"]}, r"line 2: labels\.0: must be an object"),
        (
            {"id": "q", "query": "x", "labels": [{"id": "t", "relevance": "much"}]},
            r"labels\.0\.relevance: must be a whole",
        ),
        ({"id": "q", "query": "x", "labels": [{"id": "t", "doc": [1]}]}, r"labels\.0\.doc: must be an object"),
        (
            {"id": "q", "query": "x", "labels": [{"id": "t"}] * (MAX_LABELS + 1)},
            r"line 2: labels: must have at most 10000",
        ),
        ({"id": "t", "documentation": 4}, r"line 2: documentation: must be an object"),
        ({"id": "t", "text": "?"}, r"line 2: is neither a query .* nor a tool .*; columns: id, text"),
        ([1], r"line 2: must be an object"),
    ],
)
def test_a_row_that_is_not_as_published_is_named_with_its_line(tmp_path, row, said):
    jsonl(tmp_path / "q.jsonl", a_query(), row)
    with pytest.raises(SourceInvalid, match=said):
        toolret(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "fault"),
    [
        ("q.jsonl", json.dumps(a_query()).encode() + b'\n{"id": "cut', r"q\.jsonl, line 2: is not JSON"),
        ("q.json", b"\xff\xfe\x00", r"q\.json"),
        ("q.json", b"[" * 100_000, r"q\.json"),
        ("q.jsonl.gz", gzip.compress(b"x" * 1_000)[:20], r"q\.jsonl\.gz"),
    ],
    ids=["cut off", "binary", "nested", "packed and cut off"],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, data, fault):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceInvalid, match=fault):
        toolret(tmp_path)


def test_a_folder_without_rows_or_without_queries_is_named(tmp_path):
    with pytest.raises(SourceInvalid, match="holds no file that ends in"):
        toolret(tmp_path)
    jsonl(tmp_path / "t.jsonl", {"id": "t", "documentation": "x"})
    with pytest.raises(SourceInvalid, match="holds no query"):
        toolret(tmp_path)


def test_parquet_without_pyarrow_says_what_is_missing(tmp_path, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(reading, "import_module", absent)
    (tmp_path / "queries-00000-of-00001.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceInvalid, match="needs pyarrow"):
        toolret(tmp_path)


def test_parquet_is_read_through_pyarrow_and_its_faults_are_named(tmp_path, monkeypatch):
    class Parquet:
        """As much of pyarrow.parquet as is called."""

        def __init__(self, rows):
            self.rows = rows

        def read_table(self, path):
            if path.read_bytes() != b"PAR1":
                raise ValueError("no footer")
            return self

        def to_pylist(self):
            return self.rows

    made = Parquet([{"id": "7", "query": "x", "labels": json.dumps([a_label()])}])
    monkeypatch.setattr(reading, "import_module", {"pyarrow.parquet": made}.__getitem__)
    path = tmp_path / "made" / "queries-00000-of-00001.parquet"
    path.parent.mkdir()
    path.write_bytes(b"PAR1")
    assert toolret(tmp_path).queries["7"] == {"text": "x", "source": "made"}
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(SourceInvalid, match="cannot be read as parquet: no footer"):
        toolret(tmp_path)


COLUMNS = st.sampled_from(["id", "query", "labels", "doc", "documentation", "relevance", "name"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(COLUMNS, inner),
)


@given(ANYTHING)
def test_any_file_is_parsed_or_an_error(tmp_path_factory, value):
    folder = tmp_path_factory.mktemp("any")
    (folder / "x.json").write_text(json.dumps(value))
    with suppress(SourceInvalid):
        toolret(folder)


def an_api(app, name, **entries):
    return {
        "app_name": app,
        "api_name": name,
        "method": "GET",
        "path": f"/{app}/{name}",
        "description": f"{name} of {app}.",
        "parameters": [{"name": "page", "type": "integer", "required": False, "default": 0, "description": "Which."}],
        **entries,
    }


def a_world(folder, *, labelled=True):
    def put(path, value):
        path = folder / "data" / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")

    put("api_docs/standard/music.json", {name: an_api("music", name) for name in ("login", "show_song")})
    put("api_docs/standard/notes.json", [an_api("notes", "login")])
    put("api_docs/standard/supervisor.json", {"complete_task": an_api("supervisor", "complete_task")})
    put("tasks/abc_1/specs.json", {"instruction": "Which song is liked most?"})
    put("tasks/abc_2/specs.json", {"instruction": "Not labelled."})
    put("datasets/train.txt", "abc_1\n")
    if labelled:
        apis = ["supervisor.complete_task", "music.login", "music.show_song"]
        put("tasks/abc_1/ground_truth/required_apis.json", apis)
        put("tasks/abc_1/ground_truth/required_apps.json", ["music"])
    return folder


def test_appworlds_apis_are_tools(tmp_path):
    judged = appworld(a_world(tmp_path / "in"))
    assert sorted(judged.corpus) == ["music.login", "music.show_song", "notes.login"]
    assert judged.corpus["music.login"]["parameters"]["properties"]["page"]["type"] == "integer"
    assert judged.queries == {"abc_1": {"text": "Which song is liked most?", "source": "train"}}
    assert judged.left_out == {"API of a helper app": 1, "label of a helper app": 1, "task without a label": 1}
    dataset = a_set(judged, tmp_path / "out")
    assert (len(dataset.registrations), dataset.unregistered_gold, len(dataset.queries[0].relevant)) == (3, {}, 2)


def test_appworlds_apps_are_agents(tmp_path):
    judged = appworld(a_world(tmp_path / "in") / "data", agents=True)
    assert sorted(judged.corpus) == ["music", "notes"]
    assert judged.qrels == {("abc_1", "music"): 1}
    assert a_set(judged, tmp_path / "out").unregistered_gold == {}


def test_an_appworld_without_labels_or_documents_is_named(tmp_path):
    with pytest.raises(SourceInvalid, match="holds no task"):
        appworld(a_world(tmp_path / "in", labelled=False))
    with pytest.raises(SourceInvalid, match="api_docs"):
        appworld(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("api_docs/standard/music.json", "{", r"music\.json: is not JSON"),
        ("api_docs/standard/music.json", "3", r"music\.json: must be a list"),
        ("api_docs/standard/music.json", '{"login": 3}', r"music\.json: 0: must be an object"),
        ("api_docs/standard/music.json", '{"login": {"app_name": 3}}', r"music\.json: 0\.app_name: must be text"),
        ("tasks/abc_1/specs.json", "[]", r"specs\.json: must be an object"),
        ("tasks/abc_1/ground_truth/required_apis.json", "[3]", r"required_apis\.json: 0: must be text"),
    ],
)
def test_an_appworld_file_that_is_not_as_published_is_named(tmp_path, path, text, said):
    (a_world(tmp_path) / "data" / path).write_text(text)
    with pytest.raises(SourceInvalid, match=said):
        appworld(tmp_path)


def test_a_shared_document_needs_half_of_at_least_five_labels():
    assert [shared_document(labels) for labels in ("aaabb", "aaaa", "aaabbb")] == ["a", None, None]


def test_the_sets_of_a_folder_are_the_known_ones_or_its_own(tmp_path):
    with pytest.raises(DatasetInvalid, match="holds no folder"):
        sets_in(tmp_path)
    for name, known in (("ours", ["ours"]), ("also-ours", ["also-ours", "ours"]), ("tools", ["tools"])):
        (tmp_path / name).mkdir()
        (tmp_path / name / "qrels.tsv.gz").touch()
        assert sets_in(tmp_path) == known
