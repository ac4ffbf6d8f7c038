"""Rows of retrieval data sets, as registrations."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import SourceText
from mats.evaluation.data.beir import item_of, namespace_of
from tests.builders import an_item


def _row(**entries):
    return {"_id": "t-1", "type": "tool", "name": "convert_units", "source": "Lab Set", **entries}


def test_a_judged_row_becomes_a_registration():
    schema = {"properties": {"to": {}}}
    told = {"category": "Units", "tools": [{"name": "to_feet"}]}
    row = _row(description="Converts lengths.", provider="Metric Co", parameters=schema, **told)
    said = {"description": "Converts lengths.", "provider": "Metric Co", "input_schema": schema, "descriptor": told}
    assert item_of(row) == {"namespace": "lab-set.t-1", "name": "convert_units", "kind": "tool", **said}
    assert Registration.parse(item_of(row)).id == "lab-set.t-1/convert_units"


def test_entries_that_say_nothing_are_left_out():
    assert item_of({"_id": 7, "type": "agent", "name": "x"}) == {"namespace": "7", "name": "x", "kind": "agent"}
    row = _row(description="", provider=None, parameters={}, skills=[], category=None)
    assert item_of(row) == {"namespace": "lab-set.t-1", "name": "convert_units", "kind": "tool"}


@pytest.mark.parametrize(
    "label", ["distractor", "relevance", "label", "gold", "split", "qrels", "query", "examples", "positive_examples"]
)
def test_marks_of_an_evaluation_are_dropped(label):
    marked = _row(description="Converts lengths.", **{label: ["true"]})
    assert item_of(marked) == item_of(_row(description="Converts lengths."))


@pytest.mark.parametrize(
    "other",
    [
        an_item(),
        an_item(type="tool", _id="7"),
        {"_id": "7", "name": "no type"},
        {"type": "tool", "name": "no id"},
        {"_id": "7", "type": "tool"},
        {},
        None,
        "a line",
        [1],
    ],
)
def test_what_is_no_judged_row_is_left_as_it_is(other):
    assert item_of(other) is other


@pytest.mark.parametrize(
    "parameters",
    [
        {"to": {"type": "string", "description": "Unit to convert to"}},
        [{"name": "to", "in": "query", "description": "Unit to convert to"}],
        "to: Unit to convert to",
    ],
    ids=["object", "list", "text"],
)
def test_parameters_that_are_no_json_schema_go_to_the_descriptor_and_are_read_there(parameters):
    item = item_of(_row(parameters=parameters))
    assert item["descriptor"] == {"parameters": parameters}
    assert "input_schema" not in item
    source = SourceText.of(Registration.parse(item))
    assert "Unit to convert to" in source.parameter_text


@pytest.mark.parametrize(
    ("source", "id", "namespace"),
    [("Lab Set", "T_1", "lab-set.t-1"), (None, 42, "42"), ("", "x", "x"), ("--", "_x_", "x"), ("Übung", "1", "bung.1")],
)
def test_a_namespace_is_made_of_source_and_id(source, id, namespace):
    assert namespace_of({"source": source, "_id": id}) == namespace


@given(st.none() | st.text(), st.text(min_size=1) | st.integers())
@example(source=None, id="単位換算")
@example(source="lab", id="x" * 300)
def test_the_namespace_of_a_row_is_one_that_a_registration_may_have(source, id):
    row = {"_id": id, "type": "tool", "name": "x", "source": source}
    assert Registration.parse(item_of(row)).namespace == namespace_of(row)
