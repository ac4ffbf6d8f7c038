"""Empty tables in DynamoDB Local, and the environment in which clients of AWS find their stand-ins."""

import itertools
from typing import Any

import pytest

from mats.adapters.dynamodb.receipts import BY_ID
from mats.adapters.dynamodb.tables import Tables

_numbers = itertools.count(1)


def credentials(monkeypatch: pytest.MonkeyPatch, **endpoints: str) -> None:
    """Credentials that open nothing, no settings of this machine's user, and where each service is: `dynamodb=url`."""
    environment = {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "example",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    for service, url in endpoints.items():
        environment[f"AWS_ENDPOINT_URL_{service.upper()}"] = url
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def a_table(
    tables: Tables,
    *,
    keys: tuple[str, ...] = ("namespace", "name"),
    stream: bool = False,
    index: tuple[str, tuple[str, ...]] | None = None,
) -> str:
    """The name of a new table with these string keys; `index` is the name and the keys of an index of keys."""
    name = f"table-{next(_numbers)}"
    tables.ask(
        name,
        "create_table",
        AttributeDefinitions=[
            {"AttributeName": key, "AttributeType": "S"} for key in {*keys, *(index[1] if index else ())}
        ],
        KeySchema=_schema(keys),
        BillingMode="PAY_PER_REQUEST",
        **({"GlobalSecondaryIndexes": [_index(*index)]} if index else {}),
        **({"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}} if stream else {}),
    )
    return name


def an_outcomes_table(tables: Tables) -> str:
    """The name of a new table of outcomes, with its index."""
    return a_table(tables, keys=("query_id", "item"), index=(BY_ID, ("id", "query_id")))


def _schema(keys: tuple[str, ...]) -> list[dict[str, str]]:
    return [{"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)]


def _index(name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    return {"IndexName": name, "KeySchema": _schema(keys), "Projection": {"ProjectionType": "KEYS_ONLY"}}
