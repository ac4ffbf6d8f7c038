"""The models that this suite asks: the stand-in's, or with MATS_BEDROCK=1 those of the real service, up to a cap."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError

from mats.adapters.bedrock import factory
from mats.adapters.bedrock.client import BedrockClient
from mats.adapters.bedrock.factory import Bedrock, TitanEncoder
from mats.adapters.llm import LlmReranker, LlmWriter, Meter, ModelReply
from mats.bootstrap import models as bootstrap
from mats.domain.errors import NotPermitted
from mats.settings import TITAN, Settings
from tests.aws.bedrock import BedrockServer

REAL = os.environ.get("MATS_BEDROCK") == "1"
CAP_USD = 0.05  # The budget of a run of this suite; it needs less than a tenth of a cent
_OWN = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")
_meters: list[Meter] = []
_calls: list[str] = []


@dataclass(frozen=True)
class Models:
    """The three models and what they have spent."""

    reranker: LlmReranker
    writer: LlmWriter
    encoder: TitanEncoder
    meter: Meter


def models_of(settings: Settings) -> Models:
    """The models that these settings and AWS's own name."""
    made = bootstrap.bedrock(settings)
    assert isinstance(made, Bedrock)
    return Models(
        reranker=made.reranker(settings.rerank_model, bootstrap.prompt("rerank")),
        writer=made.writer(settings.writer_model, bootstrap.prompt("enrich")),
        encoder=made.encoder(f"{TITAN}:0"),
        meter=made.meter,
    )


@contextmanager
def aws_settings(variables: Mapping[str, str]) -> Iterator[None]:
    """AWS's own settings are these alone, whatever this machine has."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (*_OWN, "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.delenv(name, raising=False)
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            patch.setenv(name, os.devnull)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


def reached(meter: Meter) -> bool:
    """Whether the cap is spent, or nobody can tell because a price is not known."""
    dollars = [usage.usd for usage in meter.totals().values()]
    return None in dollars or sum(usd or 0.0 for usd in dollars) >= CAP_USD


class CappedClient(BedrockClient):
    """Counts its calls, makes none beyond the cap, and ends the whole run where an operator has to act first."""

    def __init__(self, meter: Meter, **more: Any) -> None:
        super().__init__(meter, **more)
        self._watched = meter
        if not any(meter is known for known in _meters):
            _meters.append(meter)

    def converse(self, request: Mapping[str, Any]) -> ModelReply:
        with self._count(request["modelId"]):
            return super().converse(request)

    def invoke(self, model: str, body: Mapping[str, Any]) -> Any:
        with self._count(model):
            return super().invoke(model, body)

    @contextmanager
    def _count(self, model: str) -> Iterator[None]:
        if reached(self._watched):
            pytest.exit(f"{model} is not asked: {CAP_USD} USD are spent, or its price is not known", returncode=1)
        _calls.append(model)
        try:
            yield
        except NotPermitted as error:
            pytest.exit(str(error), returncode=1)


@pytest.fixture(scope="session")
def models() -> Iterator[Models]:
    """The models: real ones if the environment says so."""
    if REAL:
        settings = Settings.from_env(os.environ)
        _require_credentials(settings.region)
        yield _capped(settings)
        return
    with BedrockServer() as server:
        with aws_settings(server.client_environment()):
            made = _capped(Settings(bedrock=True))
        yield made


def _capped(settings: Settings) -> Models:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factory, "BedrockClient", CappedClient)
        return models_of(settings)


def _require_credentials(region: str) -> None:
    try:
        session = boto3.session.Session()
        known = session.get_credentials() is not None or "AWS_BEARER_TOKEN_BEDROCK" in os.environ
        lacks = "" if known else "AWS credentials (for example by `aws sso login`)"
        lacks = lacks or ("" if region or session.region_name else "a region (AWS_REGION)")
    except BotoCoreError as error:
        lacks = f"AWS settings that can be used: {error}"
    if lacks:
        pytest.exit(f"The real models cannot be asked. There must be {lacks}.", returncode=1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The cost of the real models."""
    if not REAL or not _calls:
        return
    terminalreporter.write_line(f"Bedrock: {len(_calls)} calls; cap {CAP_USD:.2f} USD")
    for meter in _meters:
        for model, used in sorted(meter.totals().items()):
            dollars = "price not known" if used.usd is None else f"{used.usd:.6f} USD"
            terminalreporter.write_line(
                f"  {model}: {_calls.count(model)} calls, "
                f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out, {dollars}"
            )
