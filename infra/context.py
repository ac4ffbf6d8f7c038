"""Deployment options, as CDK context: every key with its default, its meaning, its form, and what a change replaces."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from infra.inference_profiles import NOVA, InferenceProfile, profile_in
from infra.sizes import SIZES, Size
from mats.settings import TITAN, Settings

ENCODER = f"{TITAN}:0"
"""The encoder on Bedrock that mats has a client for."""
HOST = r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}"
_ARN = r"arn:aws[\w-]*:{}:[a-z0-9-]+:\d{{12}}:{}"
_KEY_ID = r"key/([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})"
_RETENTION = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)


class Form(NamedTuple):
    """What values other than the default have to be; of a tuple, each of its parts."""

    fits: Callable[[Any], bool]
    words: str


def like(pattern: str, words: str) -> Form:
    """The form of texts that match a regular expression."""
    return Form(lambda text: bool(re.fullmatch(pattern, text)), words)


_ADDRESS = like(r"[^@\s,]+@[^@\s,]+\.[^@\s,]+", "one address")


def _key(
    default: Any,
    meaning: str,
    *,
    choices: tuple[str, ...] = (),
    limits: tuple[int, int] | None = None,
    form: Form | None = None,
    replaces: str = "",
) -> Any:
    """A key; 0 is always within its limits, and `replaces` names the resources that a change of it replaces."""
    about = {"meaning": meaning, "choices": choices, "limits": limits, "form": form, "replaces": replaces}
    return field(default=default, metadata=about)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The chosen options, as `parse` checks them.

    In the keys of `capacity`, 0 and an empty text stand for the default of `size`.
    """

    name: str = _key(
        "mats",
        "prefix of every stack and of every physical name: one for each deployment in an account and region",
        replaces="everything: another name is another deployment",
        form=like(
            # leaves a domain, the shortest of the names, its 28 characters
            r"(?!.*--)[a-z][a-z0-9-]{0,14}[a-z0-9]",
            "2 to 16 of a-z, 0-9 and single hyphens, from a letter on",
        ),
    )
    size: str = _key(
        "trial",
        "`trial`: one small OpenSearch node; `production`: three data nodes in three zones with three dedicated "
        "masters, higher limits, logs and tables protected from deletion, and stacks with termination protection",
        choices=("trial", "production"),
    )
    instance_type: str = _key(
        "",
        "type of data nodes; default `t3.small.search`, in production `r7g.large.search`",
        form=like(r"[a-z0-9-]+\.[a-z0-9]+\.search", "a type such as r7g.large.search"),
    )
    instance_count: int = _key(
        0,
        "number of data nodes: 1 or a multiple of three; default 1, in production 3",
        form=Form(lambda count: count > 0 and (count == 1 or count % 3 == 0), "1 or a multiple of 3"),
    )
    storage_gb: int = _key(
        0,
        "storage of each data node in GB, 10 to 16,000; default 10, in production 100",
        limits=(10, 16_000),
    )
    engine_version: str = _key(
        Settings().index_engine,
        "version of OpenSearch; a later one upgrades the domain in place, and there is no way back",
        choices=("2.19", "3.1", "3.3", "3.5", "3.7"),
    )
    enrichment_concurrency: int = _key(
        0,
        "batches enriched at once, 2 to 1,000; default 2, in production 10",
        limits=(2, 1_000),
    )
    discovery_concurrency: int = _key(
        0,
        "reserved concurrency of discovery, and its maximum; 0: the account's",
        limits=(1, 10_000),
    )
    throttle_rate: int = _key(
        0,
        "calls of the API in a second, all callers together, bursts twice that; default 20, in production 200",
        limits=(1, 10_000),
    )
    network: str = _key(
        "public",
        "`vpc`: functions and domain in private subnets, AWS's services through endpoints, no way to the Internet",
        choices=("public", "vpc"),
        replaces="the OpenSearch domain, whose index is made again from Profiles",
    )
    availability_zones: tuple[str, ...] = _key(
        (),
        "zones of the subnets, separated by commas, for `network=vpc`: three for production, one for a trial",
        form=like(r"[a-z]{2}(-[a-z]+)+-\d[a-z]", "a zone, such as eu-west-1a"),
    )
    vpc_id: str = _key(
        "",
        "for `network=vpc`: a VPC of your own, with its endpoints for Bedrock, EventBridge and DynamoDB; "
        "empty: one is created",
        replaces="the OpenSearch domain, whose index is made again from Profiles",
        form=like(r"vpc-[0-9a-f]+", "the id of a VPC"),
    )
    subnet_ids: tuple[str, ...] = _key(
        (),
        "for `vpc_id`: its private subnets, one in each of `availability_zones`",
        form=like(r"subnet-[0-9a-f]+", "the id of a subnet"),
    )
    api: str = _key(
        "public",
        "`private`: the API has no public address, and answers only through an endpoint in a VPC; needs `network=vpc`",
        choices=("public", "private"),
    )
    api_endpoint_id: str = _key(
        "",
        "for `api=private` with `vpc_id`: the VPC's endpoint of `execute-api`",
        form=like(r"vpce-[0-9a-f]+", "the id of a VPC endpoint"),
    )
    waf: bool = _key(False, "`true`: AWS WAF in front of the API")
    caller_limit: int = _key(
        0,
        "for `waf=true`: calls of one credential in five minutes, 10 or more; 0: callers share `throttle_rate`",
        limits=(10, 2_000_000_000),
    )
    caller_accounts: tuple[str, ...] = _key(
        (),
        "other accounts whose principals may call the API, where their own policies allow it; for `auth=iam`",
        form=like(r"\d{12}", "the number of an account"),
    )
    caller_organization: str = _key(
        "",
        "the same for all accounts of an organization, such as `o-a1b2c3d4e5`",
        form=like(r"o-[a-z0-9]{10,32}", "the id of an organization"),
    )
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
    domain_name: str = _key(
        "",
        "host name of the API; needs `certificate_arn`, and a DNS record that you create",
        form=like(HOST, "a host name in lower case"),
    )
    certificate_arn: str = _key(
        "",
        "ACM certificate for `domain_name`, in the region of the stacks",
        form=like(_ARN.format("acm", r"certificate/[\w-]+"), "the ARN of an ACM certificate"),
    )
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
        form=like(r"[!-~]+", "the id of a client"),
    )
    console_token_host: str = _key(
        "",
        "for `console_client_id`: the host of the token endpoint, if it differs from the issuer's, as with Cognito",
        form=like(HOST, "a host name in lower case"),
    )
    alarm_email: str = _key(
        "",
        "address that alarms are sent to; empty: no alarm is sent by mail",
        form=_ADDRESS,
    )
    alarm_topic_arn: str = _key(
        "",
        "SNS topic of your own that alarms are sent to",
        form=like(_ARN.format("sns", r"[\w-]{1,256}"), "the ARN of an SNS topic"),
    )
    rejection_email: str = _key(
        "",
        "address that rejected registrations are mailed to, each with its faults",
        form=_ADDRESS,
    )
    spend_per_hour: int = _key(
        5,
        "dollars that models may cost in an hour before an alarm; 0: no alarm",
        limits=(1, 1_000_000),
    )
    log_retention_days: int = _key(
        90,
        "days that logs of functions, API and network are kept; one of CloudWatch's choices",
        form=Form(_RETENTION.__contains__, f"one of {', '.join(map(str, _RETENTION))}"),
    )
    settings: Settings = Settings()
    """The values of the keys that are settings."""
    kms_key_arn: str = _key(
        "",
        "KMS key of your own for tables, index, logs and environment variables; empty: keys that AWS owns or manages",
        replaces="the OpenSearch domain, whose index is made again from Profiles",
        form=like(_ARN.format("kms", _KEY_ID), "the ARN of a KMS key"),
    )
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

    @property
    def language_models(self) -> tuple[str, ...]:
        """The chosen reranker and writer and those that operators may choose instead, each once."""
        chosen = (self.rerank_model, self.writer_model, *self.switch_models)
        return tuple(dict.fromkeys(model for model in chosen if model != "none"))

    def is_by_region(self, model: str) -> bool:
        """Whether the region decides how a model is invoked."""
        return not self.inference_profile and model in NOVA

    def profile_of(self, model: str, region: str) -> InferenceProfile | None:
        """The profile that a model is invoked through in a region that has no fault; none: directly."""
        return profile_in(region) if self.is_by_region(model) else self.profile

    def settings_of(self, function: str) -> dict[str, Any]:
        """The settings that a function gets from keys of the context, by name."""
        return {
            each.name: getattr(self.settings, each.name)
            for each in fields(self.settings)
            if function in each.metadata["stack"]
        }
