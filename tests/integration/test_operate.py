"""reconcile, reindex and backfill as operators run them: on tables and an index in AWS's stead, and on one machine."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mats.adapters.dynamodb.registry import DynamoRegistry
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.opensearch.domain import Domain
from mats.bootstrap.local import local_system
from mats.domain.search.query import Filter
from mats.settings import Settings
from tests.aws.tables import a_table, credentials
from tests.builders import a_registration
from tests.integration.conftest import Mats


class Account:
    """Tables, an index, and the command with the settings of both."""

    def __init__(self, mats: Mats, tables: Tables, dynamodb: str, opensearch: str) -> None:
        self._mats = mats
        settings = Settings(
            index_endpoint=opensearch, registry_table=a_table(tables), trust_table=a_table(tables),
            profiles_table=a_table(tables),
        )  # fmt: skip
        self.settings = settings
        self.environment = {**settings.to_env(), "AWS_ENDPOINT_URL_DYNAMODB": dynamodb}
        self.registry = DynamoRegistry(tables, settings.registry_table)

    def __call__(self, *arguments: str, code: int = 0, **more: str) -> dict:
        ran = self._mats(*arguments, "--json", **{**self.environment, **more})
        assert ran.code == code, ran.err
        return {**(json.loads(ran.out) if ran.out else {}), "err": ran.err}

    def found(self, term: str) -> set[str]:
        from mats.bootstrap.cloud import cloud_system

        cloud = cloud_system(self.settings)
        cloud.stores._domain.refresh("capabilities")
        return {id.rpartition("/")[2] for id in cloud.stores.index.lexical([term], Filter(), depth=50)}


@pytest.fixture
def account(mats: Mats, monkeypatch: pytest.MonkeyPatch, dynamodb_url: str, opensearch_url: str) -> Iterator[Account]:
    credentials(monkeypatch, dynamodb=dynamodb_url)
    monkeypatch.setenv("MATS_ENCODER", "none")
    yield Account(mats, Tables(), dynamodb_url, opensearch_url)
    Domain(opensearch_url, read_s=10).drop("capabilities-*")


@pytest.mark.server
def test_an_operator_repairs_renews_and_goes_back_in_an_account(account: Account):
    account.registry.put([a_registration(name=name, description="send money") for name in "abc"])
    assert account("reconcile")["indexed"] == 3
    assert account("reconcile")["unchanged"] == 3
    assert account.found("money") == {"a", "b", "c"}

    account.registry.put([a_registration(name="d", description="send money")])
    assert account("reconcile")["indexed"] == 1
    assert account.found("money") == {"a", "b", "c", "d"}

    assert account("reindex") == {"profiles": 4, "written": 4, "index": "capabilities-2", "err": ""}
    account.registry.remove(a_registration(name="a").id)
    assert account("reconcile")["deleted"] == 1
    assert account.found("money") == {"b", "c", "d"}
    assert account("backfill")["compared"] == 3


@pytest.mark.server
def test_commands_for_one_machine_do_not_pretend_to_work_on_an_account(account: Account):
    assert "MATS_INDEX_ENDPOINT" in account("search", "money", code=2)["err"]
    assert not (Path(account._mats.home) / "mats.db").exists()


@pytest.mark.server
def test_missing_tables_of_an_account_are_named(account: Account):
    refused = account("reconcile", code=3, MATS_PROFILES_TABLE="no-such-table")
    assert "no-such-table" in refused["err"]


def test_what_waited_is_counted_as_indexed_before_it_is_compared(mats: Mats):
    mats("add", "--namespace", "com.acme", "--name", "pay", "--kind", "tool", "--description", "send money")
    with closing(local_system(Settings(home=mats.home, encoder="none"))) as local:
        local.stores.registry.put([a_registration(name="refund")])
    assert mats("reconcile").out == "1 indexed, 2 compared, 2 unchanged\n"
    assert mats("reconcile").out == "2 compared, 2 unchanged\n"


def test_on_one_machine_an_index_is_made_anew_in_place(mats: Mats):
    mats("add", "--namespace", "com.acme", "--name", "pay", "--kind", "tool", "--description", "send money")
    assert mats("reindex", "--json").json == {"profiles": 1, "written": 1, "index": "sqlite-bm25-1"}
    assert mats("search", "--json", "money").json["results"][0]["name"] == "pay"
    assert mats("backfill", "--json").json == {"compared": 1}
