"""Every key of the context: its default, its meaning, and the resources that a change of it replaces."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self
from urllib.parse import urlsplit

from infra.context.rules import RULES
from infra.inference_profiles import InferenceProfile
from infra.model_choice import ENCODER, model_faults, region_faults
from infra.sizes import SIZES, Size
from mats.setting_values import parse_value
from mats.settings import Settings


class ContextInvalid(ValueError):
    """Invalid options; the message names every fault."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(["The context is invalid:", *(f"- {fault}" for fault in faults)]))
        self.faults = faults


def _key(default: Any, meaning: str, *, choices: tuple[str, ...] = (), replaces: str = "") -> Any:
    return field(default=default, metadata={"meaning": meaning, "choices": choices, "replaces": replaces})


def _of_setting(name: str) -> Any:
    """A key with the default, meaning and choices of the setting of this name."""
    setting = next(each for each in fields(Settings) if each.name == name)
    return _key(setting.default, setting.metadata["help"], choices=setting.metadata["choices"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The chosen options. In the keys of `capacity`, 0 and an empty text stand for the default of `size`.

    Raises:
        ContextInvalid: with every fault.
    """

    name: str = _key(
        "mats",
        "prefix of every stack and of every physical name: one for each deployment in an account and region",
        replaces="everything: another name is another deployment",
    )
    size: str = _key(
        "trial",
        "`trial`: one small OpenSearch node; `production`: three data nodes in three zones with three dedicated "
        "masters, higher limits, logs and tables protected from deletion, and stacks with termination protection",
        choices=("trial", "production"),
    )
    instance_type: str = _key("", "type of data nodes; default `t3.small.search`, in production `r7g.large.search`")
    instance_count: int = _key(0, "number of data nodes: 1 or a multiple of three; default 1, in production 3")
    storage_gb: int = _key(0, "storage of each data node in GB, 10 to 16,000; default 10, in production 100")
    engine_version: str = _key(
        Settings().index_engine,
        "version of OpenSearch; a later one upgrades the domain in place, and there is no way back",
        choices=("2.19", "3.1", "3.3", "3.5", "3.7"),
    )
    enrichment_concurrency: int = _key(0, "batches enriched at once, 2 to 1,000; default 2, in production 10")
    discovery_concurrency: int = _key(0, "reserved concurrency of discovery, and its maximum; 0: the account's")
    throttle_rate: int = _key(
        0, "calls of the API in a second, all callers together, bursts twice that; default 20, in production 200"
    )
    network: str = _key(
        "public",
        "`vpc`: functions and domain in private subnets, AWS's services through endpoints, no way to the Internet",
        choices=("public", "vpc"),
        replaces="the OpenSearch domain, whose index is made again from Profiles",
    )
    availability_zones: tuple[str, ...] = _key(
        (), "zones of the subnets, separated by commas, for `network=vpc`: three for production, one for a trial"
    )
    vpc_id: str = _key(
        "",
        "for `network=vpc`: a VPC of your own, with its endpoints for Bedrock, EventBridge and DynamoDB; "
        "empty: one is created",
        replaces="the OpenSearch domain, whose index is made again from Profiles",
    )
    subnet_ids: tuple[str, ...] = _key((), "for `vpc_id`: its private subnets, one in each of `availability_zones`")
    api: str = _key(
        "public",
        "`private`: the API has no public address, and answers only through an endpoint in a VPC; needs `network=vpc`",
        choices=("public", "private"),
    )
    api_endpoint_id: str = _key("", "for `api=private` with `vpc_id`: the VPC's endpoint of `execute-api`")
    waf: bool = _key(False, "`true`: AWS WAF in front of the API")
    caller_limit: int = _key(
        0, "for `waf=true`: calls of one credential in five minutes, 10 or more; 0: callers share `throttle_rate`"
    )
    caller_accounts: tuple[str, ...] = _key(
        (), "other accounts whose principals may call the API, where their own policies allow it; for `auth=iam`"
    )
    caller_organization: str = _key("", "the same for all accounts of an organization, such as `o-a1b2c3d4e5`")
    rollout: str = _key(
        "",
        "how a new version of discovery takes over: `all-at-once`; `canary`, a tenth of the calls for five minutes; "
        "`linear`, a tenth more each minute. An alarm moves calls back. Default: `all-at-once`, in production `linear`",
        choices=("", "all-at-once", "canary", "linear"),
    )
    auth: str = _key(
        "iam",
        "`iam`: callers sign with SigV4; `jwt`: callers send a bearer token of an OpenID Connect issuer",
        choices=("iam", "jwt"),
    )
    jwt_issuer: str = _key("", "for `auth=jwt`: the issuer, an https address")
    jwt_audience: str = _key("", "for `auth=jwt`: the audience the tokens must name")
    jwt_claim: str = _key(
        Settings().jwt_claim,
        "for `auth=jwt`: the claim that lists a caller's audiences, such as `cognito:groups`, or `realm_access.roles` "
        "for a list inside an object",
    )
    domain_name: str = _key("", "host name of the API; needs `certificate_arn`, and a DNS record that you create")
    certificate_arn: str = _key("", "ACM certificate for `domain_name`, in the region of the stacks")
    api_log_role: str = _key(
        "set",
        "the role through which API Gateway writes the logs of all APIs of the account in the region. `set`: the stack "
        "sets it; `keep`: others have set it",
        choices=("set", "keep"),
    )
    console: bool = _key(False, "`true`: the console, on a CloudFront domain; needs `auth=jwt`")
    console_client_id: str = _key(
        "",
        "for `console=true`: the issuer's id of the console as a public client (authorization code with PKCE); "
        "empty: users paste a token",
    )
    console_token_host: str = _key(
        "", "for `console_client_id`: the host of the token endpoint, if it differs from the issuer's, as with Cognito"
    )
    alarm_email: str = _key("", "address that alarms are sent to; empty: no alarm is sent by mail")
    alarm_topic_arn: str = _key("", "SNS topic of your own that alarms are sent to")
    rejection_email: str = _key("", "address that rejected registrations are mailed to, each with its faults")
    spend_per_hour: int = _key(5, "dollars that models may cost in an hour before an alarm; 0: no alarm")
    log_retention_days: int = _key(
        90, "days that logs of functions, API and network are kept; one of CloudWatch's choices"
    )
    log_queries: str = _of_setting("log_queries")
    weights: str = _of_setting("weights")
    trust_rule: str = _of_setting("trust_rule")
    trust_prior: str = _of_setting("trust_prior")
    learning: str = _of_setting("learning")
    kms_key_arn: str = _key(
        "",
        "KMS key of your own for tables, index, logs and environment variables; empty: keys that AWS owns or manages",
        replaces="the OpenSearch domain, whose index is made again from Profiles",
    )
    versions_days: int = _of_setting("versions_days")
    receipt_days: int = _of_setting("receipt_days")
    rerank_model: str = _key(Settings().rerank_model, "Bedrock model that reranks candidates, or `none`")
    writer_model: str = _key(Settings().writer_model, "Bedrock model that describes registrations, or `none`")
    inference_profile: str = _key(
        "",
        "how both language models are invoked. Empty: Nova as the region needs it, others directly; `none`: directly; "
        "`us`, `eu` or `apac`: through the profile of this geography; for others name the regions that it may route "
        "to, as in `us:us-east-1,us-west-2`; `global`: for models that have such a profile; Nova has none",
    )
    switch_models: tuple[str, ...] = _key(
        (), "other models that operators may choose with `mats switch`, without a deployment"
    )
    encoder_model: str = _key(
        ENCODER,
        "Bedrock model that encodes texts, or `none`: lexical search only",
        replaces="the index: changes wait until `mats reindex` has made another",
    )
    audit: bool = _key(
        False, "`true`: CloudTrail records who wrote into Registry, Trust and Callers, in a separate bucket"
    )

    def __post_init__(self) -> None:
        faults = [
            f"{key.name} must be {' or '.join(key.metadata['choices'])}, not {getattr(self, key.name)!r}"
            for key in fields(self)
            if key.metadata["choices"] and getattr(self, key.name) not in key.metadata["choices"]
        ]
        faults += [*(fault for rule in RULES for fault in rule(self)), *model_faults(self)]
        if faults:
            raise ContextInvalid(faults)

    @property
    def production(self) -> bool:
        """Whether the size is `production`."""
        return self.size == "production"

    @property
    def capacity(self) -> Size:
        """The nodes and the limits: those of `size`, where no key says otherwise."""
        return SIZES[self.size].but(
            nodes=self.instance_count,
            node=self.instance_type,
            gb_each=self.storage_gb,
            enrichment_concurrency=self.enrichment_concurrency,
            throttle_rate=self.throttle_rate,
        )

    @property
    def steps(self) -> str:
        """How a new version of discovery takes over."""
        return self.rollout or ("linear" if self.production else "all-at-once")

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

    @property
    def replacing(self) -> dict[str, str]:
        """Resources that a later change of a chosen key would replace, by key."""
        return {
            key.name: key.metadata["replaces"]
            for key in fields(self)
            if key.metadata["replaces"] and getattr(self, key.name) != key.default
        }

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


def table() -> str:
    """The keys in Markdown, as docs/aws.md shows them."""
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for key in fields(Context):
        default = json.dumps(key.default) if isinstance(key.default, bool) else key.default
        replaces = f". Changing it replaces {key.metadata['replaces']}" if key.metadata["replaces"] else ""
        rows.append(f"| `{key.name}` | {f'`{default}`' if default else ''} | {key.metadata['meaning']}{replaces} |")
    return "\n".join(rows) + "\n"


def _parse(value: object, default: object) -> object:
    """A value of cdk.json, which may have a type, or of the command line, which is text."""
    if isinstance(value, list | tuple) and isinstance(default, tuple):
        return tuple(str(part).strip() for part in value if str(part).strip())
    if isinstance(default, str) and not isinstance(value, str):
        raise ValueError("a text")
    return parse_value(str(value).strip(), default)
