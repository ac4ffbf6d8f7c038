"""Every setting: its environment variable, default, meaning and limits. Nothing else reads the environment.

A setting with `stack` is also a key of the CDK's context, with the same name, default and limits.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

DEFAULT_ENCODER = "all-MiniLM-L6-v2"  # Its weights come with the installation; the calibration is fitted to it
MULTILINGUAL = "multilingual"  # The default encoder with one of other languages: docs/decisions/0084
MAX_K = 25  # The most candidates of one rerank call
ENRICHED_AT_ONCE = 10
"""Changes in a batch of the enrichment function: descriptions are written in parallel, and take as long as one."""
VERSIONS_DAYS = 90  # Superseded versions of a profile are kept so long, to look into a change of a quarter
_BEDROCK_DEFAULTS = ("amazon.nova-micro-v1:0", "amazon.nova-lite-v1:0")  # Reranker and writer
LLM_OUTPUTS = ("auto", "tool", "schema", "json", "text")  # The ways in which a model by address returns JSON
_PREFIX, _BUCKET = "MATS_", "s3://"
_OF_CLIENTS = {f"{_PREFIX}URL"}  # Read by programs that follow the examples
TITAN, COHERE = "amazon.titan-embed-text-v2", "cohere.embed-v4"  # Prefixes of the ids of the encoders on Bedrock


T = TypeVar("T")


class SettingsInvalid(ValueError):
    """Some environment variables are invalid; the message names all of them."""


Form: TypeAlias = tuple[Callable[[Any], bool], str]  # Whether a value is valid, and what a valid one is in words


def like(pattern: str, words: str) -> Form:
    """The form of texts that a regular expression matches."""
    return lambda text: re.fullmatch(pattern, text) is not None, words


def is_address(text: str, *, plain_http: bool = False) -> bool:
    """True if a text is an https address, or an http one on this machine; `plain_http`: on any machine."""
    try:
        address = urlsplit(text)
        host, _ = address.hostname, address.port
    except ValueError:
        return False
    loopback = host in ("127.0.0.1", "::1", "localhost")
    return bool(host) and (address.scheme == "https" or (address.scheme == "http" and (loopback or plain_http)))


def is_base_address(text: str, *, plain_http: bool = False) -> bool:
    """The same for an address that paths are appended to: printable, without user, query or fragment."""
    plain = text.isascii() and text.isprintable() and not set(text) & set("@?# ")
    return plain and is_address(text, plain_http=plain_http)


def _is_index(text: str) -> bool:
    return is_address(text) or bool(re.fullmatch(_BUCKET + r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", text))


def option(
    default: Any,
    help: str,
    *,
    choices: Sequence[str] = (),
    limits: tuple[int, int] | None = None,
    form: Form | None = None,
    secret: bool = False,
    stack: Sequence[str] = (),
    **more: Any,
) -> Any:
    """A setting, or a key of the CDK's context. Its default is always valid, and says its type.

    In `help`, `{limits}` stands for its lowest and highest value. A `secret` is in no representation of the settings.
    `stack` has the functions that get it from the key of its name in the CDK's context; none: there is no such key.
    """
    if limits:
        help = help.format(limits=f"{limits[0]} to {limits[1]}")
    about = {"help": help, "choices": choices, "limits": limits, "form": form, "stack": stack, **more}
    return field(default=default, repr=not secret, metadata=about)


def fault_of(setting: "Field[Any]", value: Any) -> str:
    """Why a value of the setting's type is invalid: what it must be; empty if it is valid."""
    choices, limits, form = (setting.metadata[name] for name in ("choices", "limits", "form"))
    shown = f", not {value!r}" if setting.repr else ""
    if value == setting.default:
        return ""
    if choices and value not in choices:
        return f"must be {' or '.join(choices)}{shown}"
    if limits and not limits[0] <= value <= limits[1]:
        return f"must be from {limits[0]} to {limits[1]}{shown}"
    if form and not form[0](value):
        return f"must be {form[1]}{shown}"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Configuration. `from_env(to_env())` returns equal settings."""

    home: Path = option(Path(".mats"), "folder of the local registry")
    cache: Path | None = option(
        None, "folder for encoder weights and the graphs built from them; default: the user's cache folder"
    )
    bedrock: bool = option(False, "1: use models on Amazon Bedrock; needs AWS credentials")
    region: str = option("", "AWS region; default: the region of the AWS configuration")
    rerank_model: str = option(_BEDROCK_DEFAULTS[0], "Converse model id or ARN of the reranker, or `none`")
    writer_model: str = option(_BEDROCK_DEFAULTS[1], "Converse model id or ARN of the writer, or `none`")
    enrich: str = option(
        "all",
        "registrations that the writer describes: `all`, or `sparse` ones, with fewer than 20 content words in the "
        "description and fewer than five examples",
        choices=("all", "sparse"),
        stack=("enrichment", "maintenance"),
    )
    rerank_ms: int = option(
        2_500, "milliseconds that an answer waits for the reranker, {limits}", limits=(100, 120_000)
    )
    llm_url: str = option(
        "",
        "address of a server that speaks OpenAI's chat completions, such as http://127.0.0.1:8080/v1",
    )
    llm_model: str = option("", "model at MATS_LLM_URL that writes and reranks, unless another is named")
    llm_key: str = option(
        "",
        "key of the server of MATS_LLM_URL; empty: none is sent",
        form=like("[!-~]*", "one word of ASCII"),
        secret=True,
    )
    llm_output: str = option(
        "auto",
        "how models at MATS_LLM_URL return JSON: `tool`, `schema`, `json`, `text`, or `auto`: the first that works",
        choices=LLM_OUTPUTS,
    )
    llm_http: bool = option(False, "1: MATS_LLM_URL may be plain http to another machine")
    encoder: str = option(
        DEFAULT_ENCODER,
        "sentence encoder: `multilingual`, a name on the Hugging Face hub, a folder, `amazon.titan-embed-text-v2:0`, "
        "`cohere.embed-v4:0`, or `none`",
    )
    k: int = option(15, "candidates per query, {limits}", limits=(1, MAX_K), stack=("discovery",))
    learning: str = option(
        "on",
        "whether the outcomes that callers report change later answers: `on` or `off`",
        choices=("on", "off"),
        stack=("discovery",),
    )
    review_new: bool = option(
        False, "1: what is new in a namespace that operators have not rated is not found before an operator approves it"
    )
    receipt_days: int = option(
        30,
        "days for which callers can report outcomes of an answer; 0: answers leave no receipts",
        limits=(0, 365),
        stack=("discovery", "feedback"),
    )
    outcome_days: int = option(
        0,
        "days that reported answers are kept, with their text and caller, in AWS; then requests are forgotten, too. "
        "What operators taught stays; 0: for ever",
        limits=(0, 3650),
        stack=("feedback",),
    )
    index_endpoint: str = option(
        "",
        "address of the OpenSearch domain, or s3://BUCKET for an index in files; set by the stacks, selects the system "
        "in AWS",
        form=(_is_index, "an https address (http on loopback only), or s3://BUCKET"),
    )
    index_engine: str = option(
        "2.19",
        "version of the domain's OpenSearch, on which the scale of its scores depends",
        form=like(r"\d+\.\d+", "a version such as 2.19"),
    )
    registry_table: str = option("", "DynamoDB table of registrations")
    trust_table: str = option("", "DynamoDB table of trust")
    profiles_table: str = option("", "DynamoDB table of profiles")
    callers_table: str = option("", "DynamoDB table of the audiences of IAM callers")
    receipts_table: str = option("", "DynamoDB table of receipts; empty: answers leave none")
    outcomes_table: str = option("", "DynamoDB table of the outcomes that callers report")
    event_bus: str = option("", "EventBridge bus for rejections and changes that are sent again")
    metrics: str = option("", "CloudWatch namespace of the metrics; empty: no metrics")
    jwt_issuer: str = option("", "issuer of the tokens that the authorizer accepts")
    jwt_audience: str = option("", "audience of these tokens")
    jwt_client_ids: tuple[str, ...] = option(
        (), "clients whose tokens name no audience, as Cognito's access tokens, by `client_id`"
    )
    jwt_claim: str = option("audiences", "claim that lists a caller's audiences; dots lead into an object")
    token: str = option("", "bearer token that `--url` sends to a service; `mats token add` makes one", secret=True)
    audiences: tuple[str, ...] = option((), "audiences of local callers, separated by commas")
    log_queries: str = option(
        "text",
        "how queries are logged: as `text` or as `hash`",
        choices=("text", "hash"),
        stack=("discovery", "feedback"),
    )
    log_format: str = option(
        "file",
        "log of `mats serve`: `file` (mats.log), or `json`: also JSON lines on stderr, with one for each request",
        choices=("file", "json"),
    )

    def __post_init__(self) -> None:
        faults = [
            f"{variable_of(setting.name)} {fault}"
            for setting in fields(self)
            if (fault := fault_of(setting, getattr(self, setting.name)))
        ]
        if self.has_bedrock_encoder and not self.bedrock:
            faults.append(f"MATS_ENCODER={self.encoder} is on Bedrock, so MATS_BEDROCK must be 1")
        if self.llm_url and not is_base_address(self.llm_url, plain_http=self.llm_http):
            faults.append(
                "MATS_LLM_URL must be an https address without user, query or fragment (http on loopback, elsewhere "
                "only with MATS_LLM_HTTP=1)"
            )
        if self.llm_url and self.bedrock:
            faults.append("MATS_LLM_URL and MATS_BEDROCK exclude each other: unset one")
        if self.llm_url and not self.llm_model:
            faults.append("MATS_LLM_URL needs MATS_LLM_MODEL, the name of the model on that server")
        tables = (self.registry_table, self.trust_table, self.profiles_table)
        if any(tables) and not (all(tables) and self.index_endpoint):
            faults.append(
                "MATS_REGISTRY_TABLE, MATS_TRUST_TABLE, MATS_PROFILES_TABLE and MATS_INDEX_ENDPOINT go together"
            )
        if faults:
            raise SettingsInvalid("; ".join(faults))

    @property
    def has_llm(self) -> bool:
        """True if a service for language models is configured."""
        return self.bedrock or bool(self.llm_url)

    def llm_for(self, configured: str) -> str:
        """The model of a role by address: the one configured for it, if it is not Bedrock's default."""
        return self.llm_model if configured in _BEDROCK_DEFAULTS else configured

    @property
    def has_bedrock_encoder(self) -> bool:
        return self.encoder.startswith((TITAN, COHERE))

    @property
    def in_aws(self) -> bool:
        """True if registry and index are in AWS."""
        return bool(self.index_endpoint)

    @property
    def writer_calls(self) -> int:
        """Concurrent calls of the writer: those of a batch of changes in AWS, few for a server on this machine."""
        return ENRICHED_AT_ONCE if self.in_aws else 4

    @property
    def index_bucket(self) -> str:
        """The bucket of an index in files; empty for a domain."""
        name = self.index_endpoint.removeprefix(_BUCKET)
        return name if name != self.index_endpoint else ""

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> Self:
        """The settings of an environment; missing variables have their defaults.

        Raises SettingsInvalid: with every fault.
        """
        given: dict[str, Any] = {}
        faults = []
        for setting in fields(cls):
            text = environment.get(variable_of(setting.name))
            if text is None or (text == "" and not isinstance(setting.default, int | str | tuple)):
                continue  # an empty path counts as missing
            try:
                given[setting.name] = parse_value(text, setting.default)
            except ValueError as error:
                faults.append(f"{variable_of(setting.name)} must be {error}, not {text!r}")
        try:
            settings = cls(**given)
        except SettingsInvalid as error:
            raise SettingsInvalid("; ".join([*faults, str(error)])) from error
        if faults:
            raise SettingsInvalid("; ".join(faults))
        return settings

    @classmethod
    def unknown(cls, environment: Collection[str]) -> Iterator[str]:
        """A line for each variable of an environment that looks like a setting and is none: what to do about it."""
        known = {variable_of(setting.name) for setting in fields(cls)}
        for name in sorted({*environment} - known - _OF_CLIENTS):
            if name.startswith(_PREFIX):
                nearest = get_close_matches(name, known, n=1, cutoff=0.85)
                remedy = f"set {nearest[0]} instead" if nearest else "unset it"
                yield f"{name} is not a setting and has no effect: {remedy}"

    def to_env(self) -> dict[str, str]:
        """The environment of these settings, without defaults."""
        changed = [s for s in fields(self) if getattr(self, s.name) != s.default]
        return {variable_of(s.name): to_text(getattr(self, s.name)) for s in changed}


def variable_of(setting: str) -> str:
    """The environment variable of a setting, by its name here."""
    return "AWS_REGION" if setting == "region" else f"{_PREFIX}{setting.upper()}"  # AWS's own variable


def on_lambda(environment: Mapping[str, str]) -> bool:
    """True if this process is an execution environment of AWS Lambda."""
    return "AWS_LAMBDA_FUNCTION_NAME" in environment


def function_version() -> str:
    """The version of the function of AWS Lambda that this process runs, which a rollout watches; elsewhere empty."""
    return os.environ.get("AWS_LAMBDA_FUNCTION_VERSION", "")  # noqa: TID251 - of the process, not a setting


def open_once(open: Callable[[Settings], T], *, index: bool = True) -> Callable[[], T]:
    """Opens, once, what a function needs: in Lambda during its init phase, else at the first call.

    Raises SettingsInvalid as `Settings.from_env`, and in Lambda if it needs an `index` and there is none.
    """
    environment = os.environ  # noqa: TID251 - of a function

    @cache
    def opener() -> T:
        settings = Settings.from_env(environment)
        if index and on_lambda(environment) and not settings.in_aws:
            raise SettingsInvalid("MATS_INDEX_ENDPOINT must be set: in Lambda there is no local registry")
        return open(settings)

    if on_lambda(environment):
        opener()
    return opener


_FLAGS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}


def parse_value(text: str, default: object) -> object:
    """Parse the text of a setting to the type of its default. Raises ValueError: the message is the expected form."""
    if isinstance(default, bool):
        if text.lower() not in _FLAGS:
            raise ValueError("true or false")
        return _FLAGS[text.lower()]
    if isinstance(default, int):
        if not text.strip().lstrip("+-").isdecimal():
            raise ValueError("a whole number")
        return int(text)
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text if isinstance(default, str) else Path(text)


def to_text(value: object) -> str:
    """The text that `parse_value` reads as this value."""
    if isinstance(value, bool):
        return str(int(value))
    return ",".join(value) if isinstance(value, tuple) else str(value)
