"""Prompts: text under review, parsed once."""

import pytest

from mats import bootstrap
from mats.domain.prompts.prompt import Prompt, fill_template

FILE = """# title

## system
Be fair.

## request
<a>{one}</a> {two}

## tool
```json
{"name": "t", "description": "d", "schema": {"type": "object", "properties": {}, "required": []}}
```

## plain
JSON, please.
"""


def test_a_prompt_is_its_sections():
    prompt = Prompt.parse(FILE)
    assert (prompt.system, prompt.request) == ("Be fair.", "<a>{one}</a> {two}")
    assert prompt.tool["name"] == "t"
    assert prompt.parts == {"plain": "JSON, please."}


def test_every_change_of_the_file_changes_the_hash():
    assert Prompt.parse(FILE).hash == Prompt.parse(FILE).hash
    assert Prompt.parse(FILE.replace("title", "another title")).hash != Prompt.parse(FILE).hash


def test_a_section_that_is_missing_is_named():
    with pytest.raises(ValueError, match="request"):
        Prompt.parse("## system\nx\n## tool\n{}\n")


def test_values_in_a_template_are_never_expanded_again():
    assert fill_template("<a>{one}</a> {two}", {"one": "{two} {one}", "two": "2"}) == "<a>{two} {one}</a> 2"


@pytest.mark.parametrize("name", ["enrich", "rerank"])
def test_the_shipped_prompts_work_with_any_model(name):
    prompt = bootstrap.prompt(name)
    schema = prompt.tool["schema"]
    assert set(schema) == {"type", "properties", "required"}
    assert set(schema["required"]) == set(schema["properties"])
    assert prompt.parts["plain"]
