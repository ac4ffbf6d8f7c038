"""The operators' choice of models, in DynamoDB and in the fake of the unit tests."""

import pytest

from mats.adapters.dynamodb.operators import DynamoModelSwitch
from mats.adapters.dynamodb.tables import Tables
from mats.ports import OFF, ModelChoice
from tests.aws.tables import a_table


def test_each_role_is_switched_by_itself_and_has_its_configured_model_without_a_choice(model_switch):
    assert model_switch.load() == ModelChoice(None, None)
    model_switch.choose("writer", None)
    assert model_switch.load() == ModelChoice()
    model_switch.choose("rerank", "eu.amazon.nova-micro-v1:0")
    assert model_switch.load() == ModelChoice(rerank="eu.amazon.nova-micro-v1:0")
    model_switch.choose("writer", OFF)
    assert model_switch.load() == ModelChoice(rerank="eu.amazon.nova-micro-v1:0", writer="none")
    model_switch.choose("rerank", None)
    assert model_switch.load() == ModelChoice(writer="none")


@pytest.mark.server
def test_an_item_that_people_typed_is_read_as_far_as_it_makes_sense(tables: Tables):
    model_switch = DynamoModelSwitch(tables, a_table(tables, keys=("name",)))
    item = {"name": {"S": "models"}, "rerank_model": {"S": " none "}, "writer_model": {"N": "5"}, "note": {"S": "tmp"}}
    model_switch.tables.ask(model_switch.table, "put_item", Item=item)
    assert model_switch.load() == ModelChoice(rerank="none")
    item["rerank_model"] = {"S": "  "}
    model_switch.tables.ask(model_switch.table, "put_item", Item=item)
    assert model_switch.load() == ModelChoice()
