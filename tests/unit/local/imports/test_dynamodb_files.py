"""Request files for DynamoDB's command line."""

import json

import pytest

from mats.domain.errors import NotPossible
from mats.local.imports.dynamodb_files import write_requests
from tests.builders import an_item


def test_requests_are_files_of_25_items(tmp_path):
    items = [an_item(name=f"t{n}") for n in range(60)]
    assert write_requests(items, "Registry", tmp_path / "out") == 3
    files = sorted((tmp_path / "out").iterdir())
    sizes = [len(json.loads(file.read_text())["Registry"]) for file in files]
    assert sizes == [25, 25, 10]
    first = json.loads(files[0].read_text())["Registry"][0]
    assert first["PutRequest"]["Item"]["namespace"] == {"S": "com.acme.pay"}


def test_a_folder_that_holds_something_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("keep me")
    with pytest.raises(NotPossible, match="must be empty"):
        write_requests([], "Registry", tmp_path)


def test_what_dynamodb_cannot_hold_is_named_and_nothing_is_written(tmp_path):
    bad = an_item(input_schema={"maximum": 10**50 + 1})
    with pytest.raises(NotPossible, match=r"com\.acme\.pay/refund_payment: contains a number"):
        write_requests([bad], "Registry", tmp_path / "out")
    assert not (tmp_path / "out").exists()
