"""Hostile documents: one clear fault, soon and in little memory."""

import json
import re
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.protocols import skill
from mats.local.imports.decoding import Undecodable, decode, parse_yaml


def bomb(levels: int = 12) -> str:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


HOSTILE = [
    ("x.yaml", bomb(), "with its aliases expanded"),
    ("x.yaml", bomb(7).replace("x", "[]"), "with its aliases expanded"),
    ("x.yaml", "a: &a [*a]", "before it is complete"),
    ("x.yaml", "[" * 100_000, "levels deep"),
    ("x.yaml", "- " * 100_000, "levels deep"),
    ("x.yaml", "a: !!python/object/apply:os.system [ls]", "tag"),
    ("x.yaml", "a: !Ref b", "tag"),
    ("x.yaml", "a: 1\na: 2", "twice"),
    ("x.yaml", "? [a]\n: b", "list or an object as a key"),
    ("x.yaml", "a: 1\n---\nb: 2", "several"),
    ("x.yaml", "a: \x01", "forbids"),
    ("x.yaml", "x" * 8_000_001, "convert it to JSON"),
    ("x.json", "[" * 100_000, "levels deep"),
    ("x.json", "[" * 61 + "]" * 61, "levels deep"),
    ("x.json", '{"a":' * 500 + "1" + "}" * 500, "levels deep"),
    ("x.json", '{"a": 1, "a": 2}', "twice"),
    ("x.json", '{"a": NaN}', "is not a JSON number"),
    ("x.json", "9" * 5_000, "too long to read"),
    ("x.json", "[" + "[]," * 2_000_000 + "1]", "more than"),
    ("x.json", '{"a": "\x01"}', "is not JSON"),
    ("x.json", "", "is empty"),
    ("x.json", '{"a": 1, /* no end', "is not JSON"),
    ("x.json", '{"a": 1} ' + '/"\\"' * 100_000, "is not JSON"),
    ("x.toml", "a = nan", "is not a JSON number"),
    ("x.toml", "a = 1\na = 2", "as TOML: Cannot overwrite"),
    ("x.toml", f"a = {'9' * 5_000}", "as TOML"),
    ("x.toml", ".".join("a" * 100_000) + " = 1", "use JSON"),
    ("x.toml", f"a = {'[' * 10_000}", "as TOML"),
    ("x.toml", "a" * 1_000_001, "use JSON"),
    ("SKILL.md", "# No front matter", "no front matter"),
    ("SKILL.md", f"---\n{bomb()}\n---\n", "with its aliases expanded"),
]


@pytest.mark.parametrize(("name", "text", "said"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_document_is_one_clear_fault(name, text, said):
    with pytest.raises(Undecodable, match=said) as refused:
        decode(text.encode(), name=name)
    assert re.search("[:;] [a-z]", str(refused.value)), "it says what to do"


def test_invalid_utf8_is_reported_with_its_position():
    with pytest.raises(Undecodable, match="byte 3"):
        decode(b"ab\xff")


def test_yaml_bomb_needs_little_memory():
    tracemalloc.start()
    with pytest.raises(Undecodable):
        parse_yaml(bomb(30))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        (".mcp.json", '{\n  // ours\n  "a": "x://y", /* "b": 1, */\n  "c": [1, 2,],\n}', {"a": "x://y", "c": [1, 2]}),
        ("x.jsonc", '// first\n{"a": ",}", "b": "\\",]" /* , */ , }', {"a": ",}", "b": '",]'}),
        ("-", '/* first */ {"a": 1}', {"a": 1}),
        ("config.toml", "[a.b]\nc = [1, true]\nd = 2026-01-02", {"a": {"b": {"c": [1, True], "d": "2026-01-02"}}}),
    ],
)  # fmt: skip
def test_settings_have_comments_and_last_commas(name, text, value):
    assert decode(text.encode(), name=name) == value


def test_the_fault_of_json_with_comments_is_where_it_is():
    with pytest.raises(Undecodable, match="line 2, column 8"):
        decode(b'{ // one\n  "a": x}', name="x.json")


def test_yaml_scalars_are_json_values():
    text = (
        "a: 2024-01-01\nb: yes\nc: 012\n200: x\nd: 1e5\ne: 'true'\nf: null\ng: -0.5\nh: !!str 5\ni: |\n  two\n  lines\n"
    )
    assert parse_yaml(text) == {
        "a": "2024-01-01", "b": "yes", "c": "012", "200": "x", "d": 100000.0, "e": "true", "f": None, "g": -0.5,
        "h": "5", "i": "two\nlines\n",
    }  # fmt: skip


def test_version_is_text_as_written():
    assert parse_yaml("info: {version: 1.10}\nversion: 2\nother: 1.10") == {
        "info": {"version": "1.10"},
        "version": "2",
        "other": 1.1,
    }


FRONT = [
    ("description: !urgent for invoices", {"description": "!urgent for invoices"}),
    ("description: *all* invoices", {"description": "*all* invoices"}),
    ("description: `pay` invoices", {"description": "`pay` invoices"}),
    ("description: Steps: pay\nversion: 1.10", {"description": "Steps: pay", "version": "1.10"}),
    ("a: 1\na: 2", {"a": 2}),
    ("a: b: c\nkeywords:\n  - bill\n  - due: now: ever", {"a": "b: c", "keywords": ["bill", "due: now: ever"]}),
    ("a: b: c\nkeywords:\n- bill\n- 'due'", {"a": "b: c", "keywords": ["bill", "due"]}),
    ("keywords: [*bill, 'due']", {"keywords": ["*bill", "due"]}),
    ("metadata:\n\ttags: [bill]\n\tof:\n\t\t- c", {"metadata": {"tags": ["bill"], "of": ["c"]}}),
    ("metadata:\n  tags: [bill]\n  note: a: b", {"metadata": {"tags": ["bill"], "note": "a: b"}}),
    ("a: b: c\ntext: |\n  one: 1\n  two", {"a": "b: c", "text": "one: 1\ntwo\n"}),
    ("text: >\n  !one: 1\n  two\nb: !c", {"text": "!one: 1 two\n", "b": "!c"}),
    ("text: it pays: all\n  of them\n# remark\nand more", {"text": "it pays: all of them and more"}),
    ("text: 'Don't pay'", {"text": "Don't pay"}),
    ('text: "pay" or: not', {"text": '"pay" or: not'}),
    ("name:pay\ntext:all", {"name": "pay", "text": "all"}),
    ("a: \x01", {"a": "\x01"}),
]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(("front", "becomes"), FRONT)
def test_front_matter_that_yaml_refuses_is_parsed_key_by_key(front, becomes, line_end):
    text = f"\ufeff---\n{front}\n---\nDo.\n".replace("\n", line_end)
    value = decode(text.encode(), name="SKILL.md")
    assert value == skill.to_value(becomes, "Do.", wrong=value["unreadable"])


def test_a_skill_may_have_windows_line_ends_and_a_byte_order_mark():
    text = "\ufeff---\r\nname: a\r\nversion: 1.0\r\n---\r\nDo.\r\n"
    assert decode(text.encode(), name="SKILL.md") == skill.to_value({"name": "a", "version": "1.0"}, "Do.")


def test_aliases_and_merges_are_expanded():
    assert parse_yaml("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\nz: [*x]") == {
        "x": {"a": 1, "b": 2},
        "y": {"b": 3, "a": 1},
        "z": [{"a": 1, "b": 2}],
    }


words = st.text(st.characters(min_codepoint=32, max_codepoint=0x24F, exclude_categories=["Cc"]), max_size=10)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words.filter(lambda w: w != "<<"), inner, max_size=4),
    max_leaves=10,
)


@given(values)
def test_json_means_the_same_read_as_yaml(value):
    text = json.dumps(value, ensure_ascii=False)
    assert parse_yaml(text) == decode(text.encode(), name="x.json")


def test_endless_front_matter_is_parsed_fast():
    began = time.process_time()
    assert skill.split("---\n" + "a: b\n- - -\n" * 200_000) is None
    assert time.process_time() - began < 5
