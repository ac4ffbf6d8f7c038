"""Settings from the environment and back."""

from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.settings import Settings, SettingsInvalid, variable_of

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
paths = texts.map(Path)
audiences = st.lists(texts.map(lambda text: text.replace(",", "").strip()).filter(bool), max_size=4).map(tuple)
addresses = st.sampled_from(
    ["https://search-mats-abc.eu-west-1.es.amazonaws.com", "https://vpc.example:9200", "http://127.0.0.1:9200"]
)
named = texts.filter(bool)
discovery_settings = st.fixed_dictionaries({"index_endpoint": addresses, "callers_table": texts})
TABLES = ("registry_table", "trust_table", "profiles_table")
enrichment_settings = st.fixed_dictionaries(
    {"index_endpoint": addresses, "event_bus": texts, **dict.fromkeys(TABLES, named)}
)
PLAIN = (
    "encoder", "region", "rerank_model", "writer_model", "metrics", "jwt_issuer", "jwt_audience",
    "jwt_claim",
)  # fmt: skip
other_settings = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(PLAIN, texts),
        "home": paths,
        "cache": st.none() | paths,
        "k": st.integers(1, 25),
        "audiences": audiences,
        "log_queries": st.sampled_from(["text", "hash"]),
        "bedrock": st.booleans(),
        "learning": st.sampled_from(["on", "off"]),
    },
)
any_settings = st.builds(
    lambda where, other: Settings(**where, **other),
    st.just({}) | discovery_settings | enrichment_settings,
    other_settings,
)


@given(any_settings)
def test_settings_written_to_an_environment_and_read_again_are_the_same(settings):
    assert Settings.from_env(settings.to_env()) == settings


@given(any_settings)
def test_an_environment_holds_texts_only_and_no_default(settings):
    environment = settings.to_env()
    defaults = {variable_of(field.name): field.default for field in fields(Settings)}
    assert all(isinstance(text, str) for text in environment.values())
    assert environment.keys() <= defaults.keys()
    assert not any(text == str(defaults[variable]) for variable, text in environment.items() if defaults[variable])


@pytest.mark.parametrize(("text", "on"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_bedrock_is_turned_on_by_one_or_true(text: str, on: bool):
    assert Settings.from_env({"MATS_BEDROCK": text}).bedrock is on


def test_every_wrong_setting_of_the_models_is_named():
    with pytest.raises(SettingsInvalid, match="MATS_BEDROCK must be 1"):
        Settings(encoder="amazon.titan-embed-text-v2:0")
    wrong = {"MATS_BEDROCK": "perhaps", "MATS_RERANK_MS": "0", "MATS_LEARNING": "perhaps", "MATS_K": "x"}
    with pytest.raises(SettingsInvalid) as caught:
        Settings.from_env(wrong)
    assert all(variable in str(caught.value) for variable in wrong)


def test_what_looks_like_a_setting_and_is_none_is_named_with_the_nearest():
    given = ["MATS_LLM_URI", "MATS_LLM_URL", "MATS_LIMIT", "LLM_URL", "MATS_TOKEN", "MATS_URL"]
    assert [line.partition(" is not a setting and has no effect: ")[::2] for line in Settings.unknown(given)] == [
        ("MATS_LIMIT", "unset it"),
        ("MATS_LLM_URI", "set MATS_LLM_URL instead"),
    ]


def test_every_setting_has_a_variable_of_its_own_and_a_help_text():
    variables = [variable_of(field.name) for field in fields(Settings)]
    assert len(set(variables)) == len(variables)
    assert {variable for variable in variables if not variable.startswith("MATS_")} == {"AWS_REGION"}
    assert all(field.metadata["help"] for field in fields(Settings))


@pytest.mark.parametrize(
    "address",
    [
        "search.example",
        "http://search.example",
        "https://",
        "ftp://search.example",
        "http://127.0.0.1.example",
        "//x",
        "https://[::1",
        "https://search.example:99999",
    ],
)
def test_a_domain_is_asked_over_https_unless_it_is_on_loopback(address: str):
    with pytest.raises(SettingsInvalid, match="MATS_INDEX_ENDPOINT must be an https address"):
        Settings.from_env({"MATS_INDEX_ENDPOINT": address})
    for loopback in ("http://127.0.0.1:9200", "http://localhost:1", "http://[::1]:9200"):
        assert Settings.from_env({"MATS_INDEX_ENDPOINT": loopback}).in_aws


_TOGETHER = {
    "MATS_REGISTRY_TABLE": "r", "MATS_TRUST_TABLE": "t", "MATS_PROFILES_TABLE": "p",
    "MATS_INDEX_ENDPOINT": "https://search.example",
}  # fmt: skip


@pytest.mark.parametrize("lacking", _TOGETHER)
def test_tables_and_endpoint_are_set_together(lacking: str):
    given = {variable: value for variable, value in _TOGETHER.items() if variable != lacking}
    with pytest.raises(SettingsInvalid, match="go together"):
        Settings.from_env(given)


def test_an_environment_is_read_by_kind():
    assert Settings.from_env({"PATH": "/bin", "K": "3", "mats_k": "3"}) == Settings()
    settings = Settings.from_env(
        {
            "MATS_HOME": "/srv/mats",
            "MATS_CACHE": "/tmp/cache",
            "MATS_ENCODER": "none",
            "MATS_K": " 7 ",
            "MATS_AUDIENCES": "ops, dev ,,",
        }
    )
    assert (settings.home, settings.cache) == (Path("/srv/mats"), Path("/tmp/cache"))
    assert (settings.encoder, settings.k) == ("none", 7)
    assert settings.audiences == ("ops", "dev")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"MATS_K": "0"}, "MATS_K must be from 1 to 25, not 0"),
        ({"MATS_K": "26"}, "MATS_K must be from 1 to 25, not 26"),
        ({"MATS_K": "many"}, "MATS_K must be a whole number, not 'many'"),
        ({"MATS_K": "1.5"}, "MATS_K must be a whole number, not '1.5'"),
        ({"MATS_K": ""}, "MATS_K must be a whole number, not ''"),
        ({"MATS_LOG_QUERIES": "never"}, "MATS_LOG_QUERIES must be text or hash, not 'never'"),
        ({"MATS_OUTCOME_DAYS": "-1"}, "MATS_OUTCOME_DAYS must be from 0 to 3650, not -1"),
        ({"MATS_LLM_OUTPUT": "xml"}, "MATS_LLM_OUTPUT must be auto or tool or schema or json or text, not 'xml'"),
        ({"MATS_LLM_KEY": "two words"}, "MATS_LLM_KEY must be one word of ASCII"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_what_would_do(environment, said):
    with pytest.raises(SettingsInvalid) as refused:
        Settings.from_env(environment)
    assert str(refused.value) == said
