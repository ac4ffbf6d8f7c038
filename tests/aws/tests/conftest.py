"""Clients of DynamoDB Local."""

from collections.abc import Callable
from typing import Any

import boto3
import pytest

from tests.aws.tables import credentials


@pytest.fixture
def aws(dynamodb_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    credentials(monkeypatch, dynamodb=dynamodb_url, dynamodb_streams=dynamodb_url)

    def client(service: str) -> Any:
        return boto3.client(service)

    return client
