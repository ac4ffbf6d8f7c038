"""Every setting: its environment variable, its default and its meaning. Nothing else reads the environment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from mats.setting_values import is_address, is_base_address, is_prior, is_version, parse_value, to_text

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
"""Its weights come with the installation; the calibration is fitted to it."""
MAX_K = 25
"""The most candidates of one rerank call."""
WEIGHTS = ("paper", "with-retrieval")
"""The sets of weights of the signals."""
_BEDROCK_DEFAULTS = ("amazon.nova-micro-v1:0", "amazon.nova-lite-v1:0")
"""Reranker and writer."""
LLM_OUTPUTS = ("auto", "tool", "schema", "json", "text")
"""The ways in which a model by address returns JSON."""
TITAN = "amazon.titan-embed-text-v2"
"""Prefix of the id of the one encoder on Bedrock."""


class SettingsInvalid(ValueError):
    """Some environment variables are invalid; the message names all of them."""


def _setting(variable: str, default: Any, help: str, *, choices: Sequence[str] = (), secret: bool = False) -> Any:
    """A setting; with `choices`, one of these. A secret is in no representation of the settings."""
    return field(default=default, repr=not secret, metadata={"variable": variable, "help": help, "choices": choices})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Configuration. `from_env(to_env())` returns equal settings."""

    home: Path = _setting("MATS_HOME", Path(".mats"), "folder of the local registry")
    cache: Path | None = _setting(
        "MATS_CACHE",
        None,
        "folder for encoder weights and the graphs built from them; default: the user's cache folder",
    )
    bedrock: bool = _setting("MATS_BEDROCK", False, "1: use models on Amazon Bedrock; needs AWS credentials")
    region: str = _setting("AWS_REGION", "", "AWS region; default: the region of the AWS configuration")
    rerank_model: str = _setting(
        "MATS_RERANK_MODEL", _BEDROCK_DEFAULTS[0], "Converse model id or ARN of the reranker, or `none`"
    )
    writer_model: str = _setting(
        "MATS_WRITER_MODEL", _BEDROCK_DEFAULTS[1], "Converse model id or ARN of the writer, or `none`"
    )
    writer_calls: int = _setting("MATS_WRITER_CALLS", 4, "concurrent calls of the writer, 1 to 64")
    candidate_order: str = _setting(
        "MATS_CANDIDATE_ORDER",
        "retrieval",
        "order of candidates in the prompt: `retrieval` or `shuffled`",
        choices=("retrieval", "shuffled"),
    )
    rerank_ms: int = _setting(
        "MATS_RERANK_MS", 2_500, "milliseconds that an answer waits for the reranker, 100 to 120000"
    )
    llm_url: str = _setting(
        "MATS_LLM_URL",
        "",
        "address of a server that speaks OpenAI's chat completions, such as http://127.0.0.1:8080/v1",
    )
    llm_model: str = _setting(
        "MATS_LLM_MODEL", "", "model at MATS_LLM_URL that writes and reranks, unless another is named"
    )
    llm_key: str = _setting("MATS_LLM_KEY", "", "key of the server of MATS_LLM_URL; empty: none is sent", secret=True)
    llm_output: str = _setting(
        "MATS_LLM_OUTPUT",
        "auto",
        "how models at MATS_LLM_URL return JSON: `tool`, `schema`, `json`, `text`, or `auto`: the first that works",
        choices=LLM_OUTPUTS,
    )
    llm_http: bool = _setting("MATS_LLM_HTTP", False, "1: MATS_LLM_URL may be plain http to another machine")
    encoder: str = _setting(
        "MATS_ENCODER",
        DEFAULT_ENCODER,
        "sentence encoder: a name on the Hugging Face hub, a folder, `amazon.titan-embed-text-v2:0`, or `none`",
    )
    encoder_precision: str = _setting(
        "MATS_ENCODER_PRECISION", "int8", "int8 (fast) or fp32 (exact)", choices=("int8", "fp32")
    )
    query_prefix: str = _setting("MATS_QUERY_PREFIX", "", "prefix of queries that the encoder expects, such as BGE's")
    k: int = _setting("MATS_K", 15, "candidates per query, 1 to 25")
    weights: str = _setting(
        "MATS_WEIGHTS",
        "paper",
        "weights of the signals: `paper`, or `with-retrieval`: the first stage's score counts beside the reranker's",
        choices=WEIGHTS,
    )
    trust_rule: str = _setting(
        "MATS_TRUST_RULE",
        "proportional",
        "how trust counts: `proportional` to relevance, or `additive` as in the paper",
        choices=("proportional", "additive"),
    )
    trust_prior: str = _setting(
        "MATS_TRUST_PRIOR",
        "50",
        "trust of an unrated capability beside a rated one, 0 to 100; `none`: its trust is left out, as in the paper",
    )
    learning: str = _setting(
        "MATS_LEARNING",
        "on",
        "whether the outcomes that callers report change later answers: `on` or `off`",
        choices=("on", "off"),
    )
    receipt_days: int = _setting(
        "MATS_RECEIPT_DAYS", 30, "days for which callers can report outcomes of an answer; 0: answers leave no receipts"
    )
    index_endpoint: str = _setting(
        "MATS_INDEX_ENDPOINT", "", "address of the OpenSearch domain; set by the stacks, selects the system in AWS"
    )
    index_engine: str = _setting(
        "MATS_INDEX_ENGINE", "2.19", "version of the domain's OpenSearch, on which the scale of its scores depends"
    )
    registry_table: str = _setting("MATS_REGISTRY_TABLE", "", "DynamoDB table of registrations")
    trust_table: str = _setting("MATS_TRUST_TABLE", "", "DynamoDB table of trust")
    profiles_table: str = _setting("MATS_PROFILES_TABLE", "", "DynamoDB table of profiles")
    callers_table: str = _setting("MATS_CALLERS_TABLE", "", "DynamoDB table of the audiences of IAM callers")
    switches_table: str = _setting(
        "MATS_SWITCHES_TABLE", "", "DynamoDB table of the models that operators chose with `mats switch`; empty: none"
    )
    receipts_table: str = _setting("MATS_RECEIPTS_TABLE", "", "DynamoDB table of receipts; empty: answers leave none")
    outcomes_table: str = _setting("MATS_OUTCOMES_TABLE", "", "DynamoDB table of the outcomes that callers report")
    tallies_table: str = _setting("MATS_TALLIES_TABLE", "", "DynamoDB table of tallies")
    event_bus: str = _setting("MATS_EVENT_BUS", "", "EventBridge bus for rejections and changes that are sent again")
    metrics: str = _setting("MATS_METRICS", "", "CloudWatch namespace of the metrics; empty: no metrics")
    versions_days: int = _setting(
        "MATS_VERSIONS_DAYS", 90, "days that a superseded version of a profile is kept; 0: for ever"
    )
    jwt_issuer: str = _setting("MATS_JWT_ISSUER", "", "issuer of the tokens that the authorizer accepts")
    jwt_audience: str = _setting("MATS_JWT_AUDIENCE", "", "audience of these tokens")
    jwt_claim: str = _setting(
        "MATS_JWT_CLAIM", "audiences", "claim that lists a caller's audiences; dots lead into an object"
    )
    read_token: str = _setting(
        "MATS_READ_TOKEN", "", "bearer token that `mats serve` asks for, of at least 32 characters", secret=True
    )
    write_token: str = _setting(
        "MATS_WRITE_TOKEN", "", "bearer token that `mats serve` asks for under `/registry`; it also reads", secret=True
    )
    audiences: tuple[str, ...] = _setting("MATS_AUDIENCES", (), "audiences of local callers, separated by commas")
    log_queries: str = _setting(
        "MATS_LOG_QUERIES", "text", "how queries are logged: as `text` or as `hash`", choices=("text", "hash")
    )
    log_format: str = _setting(
        "MATS_LOG_FORMAT",
        "file",
        "log of `mats serve`: `file` (mats.log), or `json`: also JSON lines on stderr, with one for each request",
        choices=("file", "json"),
    )
    otel: bool = _setting(
        "MATS_OTEL", False, "1: `mats serve` sends OpenTelemetry spans to OTEL_EXPORTER_OTLP_ENDPOINT"
    )

    def __post_init__(self) -> None:
        faults = [
            f"{setting.metadata['variable']} must be {' or '.join(choices)}, not {getattr(self, setting.name)!r}"
            for setting in fields(self)
            if (choices := setting.metadata["choices"]) and getattr(self, setting.name) not in choices
        ]
        if not 1 <= self.k <= MAX_K:
            faults.append(f"MATS_K must be from 1 to {MAX_K}, not {self.k}")
        if not 1 <= self.writer_calls <= 64:
            faults.append(f"MATS_WRITER_CALLS must be from 1 to 64, not {self.writer_calls}")
        if self.versions_days < 0:
            faults.append(f"MATS_VERSIONS_DAYS must not be negative, not {self.versions_days}")
        if self.receipt_days < 0:
            faults.append(f"MATS_RECEIPT_DAYS must not be negative, not {self.receipt_days}")
        if not is_prior(self.trust_prior):
            faults.append(f"MATS_TRUST_PRIOR must be from 0 to 100, or none, not {self.trust_prior!r}")
        if self.encoder.startswith(TITAN) and not self.bedrock:
            faults.append(f"MATS_ENCODER={self.encoder} is on Bedrock, so MATS_BEDROCK must be 1")
        faults += self._llm_faults()
        if self.index_endpoint and not is_address(self.index_endpoint):
            faults.append(
                f"MATS_INDEX_ENDPOINT must be an https address (http on loopback only), not {self.index_endpoint!r}"
            )
        if not is_version(self.index_engine):
            faults.append(f"MATS_INDEX_ENGINE must be a version such as 2.19, not {self.index_engine!r}")
        tables = (self.registry_table, self.trust_table, self.profiles_table)
        if any(tables) and not (all(tables) and self.index_endpoint):
            faults.append(
                "MATS_REGISTRY_TABLE, MATS_TRUST_TABLE, MATS_PROFILES_TABLE and MATS_INDEX_ENDPOINT go together"
            )
        if faults:
            raise SettingsInvalid("; ".join(faults))

    def _llm_faults(self) -> list[str]:
        """Faults in the settings of language models by address."""
        faults = []
        if not 100 <= self.rerank_ms <= 120_000:
            faults.append(f"MATS_RERANK_MS must be from 100 to 120000, not {self.rerank_ms}")
        if self.llm_url and not is_base_address(self.llm_url, plain_http=self.llm_http):
            faults.append(
                "MATS_LLM_URL must be an https address without user, query or fragment (http on loopback, elsewhere "
                "only with MATS_LLM_HTTP=1)"
            )
        if self.llm_url and self.bedrock:
            faults.append("MATS_LLM_URL and MATS_BEDROCK exclude each other: unset one")
        if self.llm_url and not self.llm_model:
            faults.append("MATS_LLM_URL needs MATS_LLM_MODEL, the name of the model on that server")
        if not (self.llm_key.isascii() and self.llm_key.isprintable() and " " not in self.llm_key):
            faults.append("MATS_LLM_KEY must be one word of ASCII")
        return faults

    def llm_for(self, configured: str) -> str:
        """The model of a role by address: the one configured for it, if it is not Bedrock's default."""
        return self.llm_model if configured in _BEDROCK_DEFAULTS else configured

    @property
    def in_aws(self) -> bool:
        """Whether registry and index are in AWS."""
        return bool(self.index_endpoint)

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> Self:
        """The settings of an environment; missing variables have their defaults.

        Raises:
            SettingsInvalid: with every fault.
        """
        given: dict[str, Any] = {}
        faults = []
        for setting in fields(cls):
            text = environment.get(setting.metadata["variable"])
            if text is None or (text == "" and not isinstance(setting.default, int | str | tuple)):
                continue  # an empty path counts as missing
            try:
                given[setting.name] = parse_value(text, setting.default)
            except ValueError as error:
                faults.append(f"{setting.metadata['variable']} must be {error}, not {text!r}")
        try:
            settings = cls(**given)
        except SettingsInvalid as error:
            raise SettingsInvalid("; ".join([*faults, str(error)])) from error
        if faults:
            raise SettingsInvalid("; ".join(faults))
        return settings

    def to_env(self) -> dict[str, str]:
        """The environment of these settings, without defaults."""
        changed = [s for s in fields(self) if getattr(self, s.name) != s.default]
        return {s.metadata["variable"]: to_text(getattr(self, s.name)) for s in changed}


def variable_of(setting: str) -> str:
    """The environment variable of a setting, by its name here."""
    variables: Mapping[str, str] = {one.name: one.metadata["variable"] for one in fields(Settings)}
    return variables[setting]


def on_lambda(environment: Mapping[str, str]) -> bool:
    """Whether this process is an execution environment of AWS Lambda."""
    return "AWS_LAMBDA_FUNCTION_NAME" in environment


def function_settings(environment: Mapping[str, str]) -> Settings:
    """The settings of a function. In Lambda they must name the system in AWS.

    Raises:
        SettingsInvalid: with every fault.
    """
    settings = Settings.from_env(environment)
    if on_lambda(environment) and not settings.in_aws:
        raise SettingsInvalid("MATS_INDEX_ENDPOINT must be set: in Lambda there is no local registry")
    return settings
