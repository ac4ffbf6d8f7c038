"""Which system settings open, and that wiring it asks nobody anything."""

import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from mats import bootstrap
from mats.adapters.dynamodb.registry import DynamoRegistry
from mats.adapters.dynamodb.tables import Tables
from mats.adapters.eventbridge import EventBus
from mats.adapters.opensearch.index import OpenSearchIndex
from mats.bootstrap.cloud import CloudStores, cloud_system, open_feedback
from mats.bootstrap.local import local_system
from mats.bootstrap.models import RERANKED, ConfiguredModels, load_calibration
from mats.bootstrap.system import stages_of
from mats.domain.errors import DependencyFailed, NotPermitted
from mats.domain.profile.profile import Profile, Refusal, Status
from mats.domain.search.trace import CalibrationSource
from mats.edge.api_gateway import parse_request
from mats.edge.http import local_caller
from mats.ports import ModelsRefused, OperationFailed
from mats.settings import TITAN, Settings, SettingsInvalid
from tests.aws.tables import credentials
from tests.fakes import FakeClock, FakeEncoder

TABLES = {"registry_table": "registry", "trust_table": "trust", "profiles_table": "profiles"}
NOWHERE = "https://search.invalid"
ON_BEDROCK = Settings(index_endpoint=NOWHERE, encoder=f"{TITAN}:0", bedrock=True, region="us-east-1", **TABLES)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials, and no way to reach anybody."""
    credentials(monkeypatch)

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("somebody was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def in_aws(**more: str) -> Settings:
    return Settings(index_endpoint=NOWHERE, encoder="none", **TABLES, **more)


@pytest.mark.parametrize(
    ("settings", "threadless"),
    [
        (Settings(), {"index", "encode"}),
        (Settings(encoder=f"{TITAN}:0", bedrock=True), {"index"}),
        (Settings(index_endpoint=NOWHERE, **TABLES), set()),
    ],
    ids=["local encoder", "remote encoder", "AWS"],
)
def test_only_what_needs_no_network_runs_in_the_answers_own_thread(settings: Settings, threadless: set[str]):
    stages, here = stages_of(settings, FakeClock()), threading.current_thread()
    executors = {"index": stages.executor, **stages.models}
    ran_in = {name: each.submit(threading.current_thread).result() for name, each in executors.items()}
    assert {name for name, thread in ran_in.items() if thread is here} == threadless
    stages.executor.shutdown()


def test_the_local_system_refuses_settings_of_the_one_in_aws_and_makes_no_file(tmp_path: Path):
    with pytest.raises(SettingsInvalid, match="unset MATS_INDEX_ENDPOINT"):
        local_system(Settings(home=tmp_path / "home", index_endpoint=NOWHERE, **TABLES))
    assert not (tmp_path / "home").exists()


def test_settings_with_an_endpoint_open_the_system_in_aws_and_ask_nobody(offline):
    settings = in_aws(callers_table="callers", event_bus="mats", metrics="mats")
    system = bootstrap.open_system(settings)
    assert isinstance(system.stores, CloudStores)
    assert isinstance(system.stores.registry, DynamoRegistry)
    assert isinstance(system.stores.index, OpenSearchIndex)
    assert system.application.audiences_of is not None
    assert bootstrap.change_processor(settings).spent() == {}
    without_tables = bootstrap.open_system(Settings(index_endpoint=NOWHERE, encoder="none")).application
    assert without_tables.audiences_of is None
    assert without_tables.discover.index.name.startswith("opensearch")


def test_wiring_with_models_on_bedrock_asks_nobody(offline):
    application = bootstrap.open_system(ON_BEDROCK).application
    assert application.discover.encoder is not None
    assert application.discover.rerank.reranker is not None
    assert bootstrap.change_processor(ON_BEDROCK).enrich.maker.writer is not None


def test_enrichment_without_tables_says_which_variables_are_missing(offline):
    with pytest.raises(SettingsInvalid, match="MATS_REGISTRY_TABLE, MATS_TRUST_TABLE and MATS_PROFILES_TABLE"):
        bootstrap.change_processor(Settings(index_endpoint=NOWHERE, encoder="none"))


def test_in_aws_answers_do_not_say_what_failed_inside_and_locally_they_do(offline, tmp_path: Path):
    assert not parse_request({}).caller.sees_internal_errors
    assert local_caller(Settings(home=tmp_path)).sees_internal_errors


@pytest.mark.parametrize("open", [
    lambda *observers: bootstrap.open_system(in_aws(), observers=observers).application.observe,
    lambda *observers: bootstrap.change_processor(in_aws(), observers=observers).observe,
    lambda *observers: open_feedback(in_aws(receipt_days=1), observers=observers).observe,
])  # fmt: skip
def test_what_a_function_opens_tells_its_observers(offline, open):
    told = []
    failed = OperationFailed(operation="get", error=DependencyFailed("down"))
    open(told.append)(failed)
    assert told == [failed]


def test_rejections_are_announced_where_there_is_a_bus(offline, monkeypatch):
    announced = []
    monkeypatch.setattr(EventBus, "announce_rejections", lambda bus, rejected: announced.extend(rejected))
    for bus in ("", "mats"):
        rejected = Profile(namespace="com.acme", name="x", status=Status.REJECTED, error=f"for {bus}")
        bootstrap.change_processor(in_aws(event_bus=bus)).enrich.on_reject([rejected])
    assert [each.error for each in announced] == ["for mats"]


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}, "set AWS_PROFILE or AWS_REGION"),
        ({"AWS_REGION": None, "AWS_DEFAULT_REGION": None}, "AWS_REGION"),
        ({"AWS_PROFILE": "nobody"}, r"nobody.*AWS_PROFILE"),
    ],
    ids=["credentials", "region", "profile"],
)
def test_what_lacks_in_the_environment_is_named_with_what_to_mend(offline, monkeypatch, variables, said: str):
    for name, value in variables.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    with pytest.raises(NotPermitted, match=said):
        bootstrap.open_system(in_aws())
    if "AWS_ACCESS_KEY_ID" not in variables:
        with pytest.raises(NotPermitted, match=said if "AWS_PROFILE" in variables else "dynamodb cannot be called"):
            Tables()


def test_an_encoder_that_cannot_be_loaded_leaves_a_system_without_one(offline):
    system = cloud_system(Settings(index_endpoint=NOWHERE, encoder="/nowhere/at/all", **TABLES))
    assert system.models.encoder is None
    assert system.models.without_encoder


def test_an_encoder_that_cannot_be_stored_names_the_setting_of_the_folder(tmp_path: Path):
    (file := tmp_path / "file").touch()
    models = ConfiguredModels(Settings(cache=file))
    assert models.encoder is None
    assert f"{file} (it is a file): name a folder for them with MATS_CACHE" in models.without_encoder


def test_a_refusal_in_enrichment_is_observed(offline):
    told, refusal = [], Refusal(role="writer", model="lite", cause="AccessDeniedException: no")
    bootstrap.change_processor(in_aws(), observers=[told.append]).enrich.on_refuse([refusal])
    assert told == [ModelsRefused(refused=[refusal])]


@pytest.mark.parametrize(("index", "open_stores"), [("sqlite-bm25-1", "local"), ("opensearch-1", "cloud")])
def test_verdicts_use_the_thresholds_of_what_was_searched(offline, tmp_path: Path, index: str, open_stores: str):
    """With vectors those of the encoder, without them those of words alone, and each index its own."""
    settings = Settings(home=tmp_path, encoder="none") if open_stores == "local" else in_aws()
    system = bootstrap.open_system(settings)
    encoder = FakeEncoder()
    encoder.name = "all-MiniLM-L6-v2"
    with_vectors = replace(system, models=replace(system.models, given_encoder=encoder)).discover.thresholds
    of_both, of_words = (load_calibration(index, encoder).thresholds for encoder in ("all-MiniLM-L6-v2", "none"))
    assert with_vectors.of(reranked=False, compared=True, understood=True) == of_both != of_words
    assert with_vectors.of(reranked=False, compared=False, understood=True) == of_words
    assert with_vectors.of(reranked=True, compared=True, understood=False) == RERANKED
    system.close()


@pytest.mark.parametrize(
    ("encoder", "name", "least"),
    [
        ("multilingual-all-MiniLM-L6-v2-53aa5117-int8-universal-0db566fd", "multilingual-all-MiniLM-L6-v2", 0.0),
        ("multilingual-e5-small-e5a63fd8-int8-prefixed", "multilingual-e5-small", 0.75),
    ],
)
def test_encoders_of_other_languages_have_constants_of_their_own(encoder: str, name: str, least: float):
    found = load_calibration("sqlite-bm25-1", encoder)
    assert found.source == CalibrationSource(name=f"sqlite-bm25-1/{name}", fitted=True)
    assert found.scale.lo == least


@pytest.mark.parametrize(
    "encoder",
    ["all-MiniLM-L6-v2-tuned-53aa5117-int8", "all-MiniLM-L6-v20-53aa5117-int8", "nonesuch-53aa5117-fp32", "none-1-x"],
)
def test_an_encoder_whose_name_begins_with_a_fitted_one_has_no_constants_of_its_own(encoder: str):
    assert not load_calibration("sqlite-bm25-1", encoder).source.fitted


def test_an_answer_names_the_constants_of_another_encoder(offline):
    fitted = load_calibration("opensearch-1", "amazon.titan-embed-text-v2:0-1024").source
    assert bootstrap.open_system(ON_BEDROCK).discover.calibration == fitted
    assert bootstrap.open_system(in_aws()).discover.calibration == CalibrationSource(
        name="opensearch-1/none", fitted=True
    )


@pytest.mark.parametrize(
    ("cores", "encoder", "at_once", "longest"),
    [(2, "none", 2, 190), (64, "none", 64, 128), (8, TITAN, 128, 64), (16, TITAN, 256, 16)],
)
def test_a_service_refuses_answers_before_all_of_its_threads_wait(monkeypatch, cores, encoder, at_once, longest):
    made = []
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr("mats.bootstrap.system.FirstComeGate", lambda *most, **bounds: made.append((*most, bounds)))
    stages_of(Settings(encoder=encoder, bedrock=True), FakeClock())
    assert made == [(at_once, {"longest": longest, "within_s": 2.0})]
