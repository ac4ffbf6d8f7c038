"""Deployment options (CDK context): each key with its default and its meaning, validated before synthesis."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self
from urllib.parse import urlsplit

from infra.inference_profiles import InferenceProfile
from infra.model_choice import ENCODER, model_faults, region_faults
from mats.settings import Settings, parse_value

_ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-\d[a-z]")
_HOST = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}")
_ORIGIN = re.compile(rf"https://{_HOST.pattern}(:\d+)?")
_CERTIFICATE = re.compile(r"arn:aws[\w-]*:acm:[a-z0-9-]+:\d{12}:certificate/[\w-]+")
_CLIENT = re.compile(r"[!-~]+")
_EMAIL = re.compile(r"[^@\s,]+@[^@\s,]+\.[^@\s,]+")


class ContextInvalid(ValueError):
    """Invalid options; the message names every fault."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(["The context is invalid:", *(f"- {fault}" for fault in faults)]))
        self.faults = faults


def _key(default: Any, meaning: str, *, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"meaning": meaning, "choices": choices})


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The chosen options.

    Raises:
        ContextInvalid: with every fault.
    """

    size: str = _key(
        "trial",
        "`trial`: one small OpenSearch node; `production`: three data nodes in three zones with three dedicated "
        "masters, higher limits, and stacks with termination protection",
        choices=("trial", "production"),
    )
    network: str = _key(
        "public",
        "`vpc`: functions and domain in private subnets, AWS's services through endpoints, no way to the Internet. "
        "Changing it replaces the domain",
        choices=("public", "vpc"),
    )
    availability_zones: tuple[str, ...] = _key(
        (), "zones of the subnets, separated by commas, for `network=vpc`: three for production, one for a trial"
    )
    waf: bool = _key(False, "`true`: AWS WAF in front of the API")
    auth: str = _key(
        "iam",
        "`iam`: callers sign with SigV4; `jwt`: callers send a bearer token of an OpenID Connect issuer",
        choices=("iam", "jwt"),
    )
    jwt_issuer: str = _key("", "for `auth=jwt`: the issuer, an https address")
    jwt_audience: str = _key("", "for `auth=jwt`: the audience the tokens must name")
    domain_name: str = _key("", "host name of the API; needs `certificate_arn`, and a DNS record that you create")
    certificate_arn: str = _key("", "ACM certificate for `domain_name`, in the region of the stacks")
    console: bool = _key(False, "`true`: the console, on a CloudFront domain; needs `auth=jwt`")
    console_client_id: str = _key(
        "",
        "for `console=true`: the issuer's id of the console as a public client (authorization code with PKCE); "
        "empty: users paste a token",
    )
    console_token_host: str = _key(
        "", "for `console_client_id`: the host of the token endpoint, if it differs from the issuer's, as with Cognito"
    )
    alarm_email: str = _key("", "address that alarms are sent to; empty: no alarm is sent")
    rerank_model: str = _key(Settings().rerank_model, "Bedrock model that reranks candidates, or `none`")
    writer_model: str = _key(Settings().writer_model, "Bedrock model that describes registrations, or `none`")
    inference_profile: str = _key(
        "",
        "how both language models are invoked. Empty: Nova as the region needs it, others directly; `none`: directly; "
        "`us`, `eu` or `apac`: through the profile of this geography; for others name the regions that it may route "
        "to, as in `us:us-east-1,us-west-2`; `global`: for models that have such a profile, which Nova has not",
    )
    encoder_model: str = _key(ENCODER, "Bedrock model that encodes texts, or `none`: lexical search only")
    audit: bool = _key(
        False, "`true`: CloudTrail records who wrote into Registry, Trust and Callers, in a separate bucket"
    )

    def __post_init__(self) -> None:
        faults = [
            f"{key.name} must be {' or '.join(key.metadata['choices'])}, not {getattr(self, key.name)!r}"
            for key in fields(self)
            if key.metadata["choices"] and getattr(self, key.name) not in key.metadata["choices"]
        ]
        faults += [*self._network_faults(), *self._front_faults(), *self._console_faults(), *model_faults(self)]
        if faults:
            raise ContextInvalid(faults)

    @property
    def production(self) -> bool:
        """Whether the size is `production`."""
        return self.size == "production"

    @property
    def issuer_origin(self) -> str:
        """The issuer's address without its path."""
        return f"https://{urlsplit(self.jwt_issuer).netloc.lower()}"

    @property
    def profile(self) -> InferenceProfile | None:
        """The inference profile that the context names; none: as the region needs it, or directly."""
        chosen = self.inference_profile
        return None if chosen in ("", "none") else InferenceProfile.parse(chosen)

    def check_region(self, region: str) -> None:
        """Check that the models can be invoked in a region.

        Raises:
            ContextInvalid: with every fault.
        """
        if faults := list(region_faults(self, region)):
            raise ContextInvalid(faults)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Self:
        """Parse the values of a command line or of cdk.json; keys of the CDK itself are ignored.

        Raises:
            ContextInvalid: with every fault.
        """
        known = {key.name: key.default for key in fields(cls)}
        faults = [
            f"there is no {name!r}; the keys are {', '.join(known)}"
            for name in given
            if name not in known and not re.search(r"[@:/]", name)
        ]
        values: dict[str, Any] = {}
        for name, default in known.items():
            if given.get(name) is None:
                continue
            try:
                values[name] = _parse(given[name], default)
            except ValueError as error:
                faults.append(f"{name} must be {error}, not {given[name]!r}")
        try:
            context = cls(**values)
        except ContextInvalid as error:
            raise ContextInvalid([*faults, *error.faults]) from error
        if faults:
            raise ContextInvalid(faults)
        return context

    def _network_faults(self) -> list[str]:
        zones = self.availability_zones
        faults = [
            f"availability_zones: {zone!r} is not a zone, such as eu-west-1a"
            for zone in zones
            if not _ZONE.fullmatch(zone)
        ]
        if len(set(zones)) < len(zones):
            faults.append("availability_zones names a zone twice")
        if self.network == "vpc":
            wanted = 3 if self.production else 1
            if len(zones) != wanted:
                faults.append(f"network=vpc with size={self.size} needs {wanted} availability_zones, not {len(zones)}")
        elif zones:
            faults.append("availability_zones is for network=vpc; without it OpenSearch chooses the zones")
        return faults

    def _front_faults(self) -> list[str]:
        faults = []
        if self.auth == "jwt":
            if not (urlsplit(self.jwt_issuer).scheme == "https" and urlsplit(self.jwt_issuer).hostname):
                faults.append(f"auth=jwt needs jwt_issuer, an https address, not {self.jwt_issuer!r}")
            if not self.jwt_audience:
                faults.append("auth=jwt needs jwt_audience")
        elif self.jwt_issuer or self.jwt_audience:
            faults.append("jwt_issuer and jwt_audience are for auth=jwt")
        if bool(self.domain_name) != bool(self.certificate_arn):
            faults.append("domain_name and certificate_arn go together")
        if self.domain_name and not _HOST.fullmatch(self.domain_name):
            faults.append(f"domain_name must be a host name in lower case, not {self.domain_name!r}")
        if self.certificate_arn and not _CERTIFICATE.fullmatch(self.certificate_arn):
            faults.append(f"certificate_arn must be the ARN of an ACM certificate, not {self.certificate_arn!r}")
        if self.alarm_email and not _EMAIL.fullmatch(self.alarm_email):
            faults.append(f"alarm_email must be one address, not {self.alarm_email!r}")
        return faults

    def _console_faults(self) -> list[str]:
        faults = []
        if self.console and self.auth != "jwt":
            faults.append("console=true needs auth=jwt, because browsers cannot sign")
        if self.console_client_id:
            if not self.console:
                faults.append("console_client_id is for console=true")
            if not _CLIENT.fullmatch(self.console_client_id):
                faults.append(f"console_client_id must be the id of a client, not {self.console_client_id!r}")
            if self.jwt_issuer and not _ORIGIN.fullmatch(self.issuer_origin):
                faults.append(f"console_client_id needs a jwt_issuer with a host name, not {self.jwt_issuer!r}")
        if self.console_token_host:
            if not self.console_client_id:
                faults.append("console_token_host is for console_client_id")
            if not _HOST.fullmatch(self.console_token_host):
                faults.append(f"console_token_host must be a host name in lower case, not {self.console_token_host!r}")
        return faults


def table() -> str:
    """The keys in Markdown, as docs/aws.md shows them."""
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for key in fields(Context):
        default = json.dumps(key.default) if isinstance(key.default, bool) else key.default
        rows.append(f"| `{key.name}` | {f'`{default}`' if default else ''} | {key.metadata['meaning']} |")
    return "\n".join(rows) + "\n"


def _parse(value: object, default: object) -> object:
    """A value of cdk.json, which may have a type, or of the command line, which is text."""
    if isinstance(value, list | tuple) and isinstance(default, tuple):
        return tuple(str(part).strip() for part in value if str(part).strip())
    if isinstance(default, str) and not isinstance(value, str):
        raise ValueError("a text")
    return parse_value(str(value).strip(), default)
