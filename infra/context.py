"""Deployment options, as CDK context: every key with its default, its meaning and its rules, and the parser."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any
from urllib.parse import urlsplit

from infra.inference_profiles import FAMILIES, Models, ProfileUnknown, matches
from infra.sizes import SIZES, Size
from mats.settings import COHERE, TITAN, Settings, fault_of, like, option, parse_value

ENCODER, COHERE_ENCODER = f"{TITAN}:0", f"{COHERE}:0"  # The encoders on Bedrock that mats has a client for
_MODEL = re.compile(r"[a-z0-9-]+\.[a-z0-9.:-]+")
_MODEL_PREFIXES = ("us", "us-gov", "eu", "apac", "jp", "au", "ca", "global")
_ARN = r"arn:aws[\w-]*:{}:[a-z0-9-]+:\d{{12}}:{}"
_TOPIC = _ARN.format("sns", r"[\w-]{1,256}")
_KEY_ID = r"key/([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})"
_DOMAIN = "the OpenSearch domain, whose index is made again from Profiles"
_RETENTION = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)


_TYPE = like(r"[a-z0-9-]+\.[a-z0-9]+\.search", "a type such as r7g.large.search")
_ADDRESS = r"[^@\s,]+@[^@\s,]+\.[^@\s,]+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The chosen options, as `parse` checks them.

    A key with `needs` needs other keys, or values of them, as in `auth=jwt`; a change of one with `replaces` replaces
    those resources. The form of a tuple is that of each part. In the keys of `capacity`, 0 and an empty text stand for
    the default of `size`.
    """

    name: str = option(
        "mats",
        "prefix of every stack and of every physical name: one for each deployment in an account and region",
        replaces="everything: another name is another deployment",
        form=like(
            # leaves a domain, the shortest of the names, its 28 characters
            r"(?!.*--)[a-z][a-z0-9-]{0,14}[a-z0-9]",
            "2 to 16 of a-z, 0-9 and single hyphens, from a letter on",
        ),
    )
    size: str = option(
        "trial",
        "`small`: no OpenSearch domain, for some 20,000 capabilities; `trial`: one small OpenSearch node; "
        "`production`: three data nodes in three zones, higher limits, logs and tables protected from deletion, and "
        "stacks with termination protection",
        choices=("small", "trial", "production"),
    )
    instance_type: str = option(
        "", "type of data nodes; default `t3.small.search`, in production `r7g.large.search`", form=_TYPE
    )
    storage_gb: int = option(
        0, "storage of each data node in GB, 10 to 16,000; default 10, in production 40", limits=(10, 16_000)
    )
    masters: bool = option(
        False, "`true`, in production: three dedicated masters, so that a busy data node never delays an election"
    )
    engine_version: str = option(
        Settings().index_engine,
        "version of OpenSearch; a later one upgrades the domain in place, and there is no way back",
        choices=("2.19", "3.1", "3.3", "3.5", "3.7"),
    )
    throttle_rate: int = option(
        0,
        "calls of the API in a second, all callers together, bursts twice that; default 20, in production 200",
        limits=(1, 10_000),
    )
    network: str = option(
        "public",
        "`vpc`: functions and domain in private subnets, AWS's services through endpoints, no way to the Internet",
        choices=("public", "vpc"),
        replaces=_DOMAIN,
    )
    availability_zones: tuple[str, ...] = option(
        (),
        "zones of the subnets, separated by commas, for `network=vpc`: three for production, one for a trial",
        form=like(r"[a-z]{2}(-[a-z]+)+-\d[a-z]", "a zone, such as eu-west-1a"),
        needs=("network=vpc",),
    )
    vpc_id: str = option(
        "",
        "for `network=vpc`: a VPC of your own, with its endpoints for Bedrock, EventBridge and DynamoDB; empty: one "
        "is created",
        replaces=_DOMAIN,
        form=like(r"vpc-[0-9a-f]+", "the id of a VPC"),
        needs=("network=vpc",),
    )
    subnet_ids: tuple[str, ...] = option(
        (),
        "for `vpc_id`: its private subnets, one in each of `availability_zones`",
        form=like(r"subnet-[0-9a-f]+", "the id of a subnet"),
        needs=("vpc_id",),
    )
    api: str = option(
        "public",
        "`private`: the API has no public address, and answers only through an endpoint in a VPC; needs `network=vpc`",
        choices=("public", "private"),
        needs=("network=vpc",),
    )
    api_endpoint_id: str = option(
        "",
        "for `api=private` with `vpc_id`: the VPC's endpoint of `execute-api`",
        form=like(r"vpce-[0-9a-f]+", "the id of a VPC endpoint"),
        needs=("api=private",),
    )
    caller_accounts: tuple[str, ...] = option(
        (),
        "other accounts whose principals may call the API, where their own policies allow it, or organizations, such as"
        " `o-a1b2c3d4e5`; for `auth=iam`",
        form=like(r"\d{12}|o-[a-z0-9]{10,32}", "the number of an account or the id of an organization"),
        needs=("auth=iam",),
    )
    rollout: str = option(
        "",
        "how new versions of discovery and enrichment take over: `all-at-once`; `linear`, a tenth of the calls more "
        "every three minutes, and an alarm moves them back. Default: `all-at-once`, in production `linear`",
        choices=("", "all-at-once", "linear"),
    )
    auth: str = option(
        "iam",
        "`iam`: callers sign with SigV4; `jwt`: callers send a bearer token of an OpenID Connect issuer",
        choices=("iam", "jwt"),
    )
    jwt_issuer: str = option("", "for `auth=jwt`: the issuer, an https address", needs=("auth=jwt",))
    jwt_audience: str = option("", "for `auth=jwt`: the audience the tokens must name", needs=("auth=jwt",))
    jwt_client_ids: tuple[str, ...] = option(
        (),
        "for `auth=jwt`: clients whose tokens name no audience but their client, as Cognito's access tokens do",
        form=like(r"[!-+\--~]+", "the id of a client"),
        needs=("auth=jwt",),
    )
    jwt_claim: str = option(
        Settings().jwt_claim,
        "for `auth=jwt`: the claim that lists a caller's audiences, such as `cognito:groups`, or `realm_access.roles`"
        " for a list inside an object",
    )
    api_log_role: str = option(
        "set",
        "the role through which API Gateway writes the logs of all APIs of the account in the region. `set`: the "
        "stack sets it; `keep`: others have set it",
        choices=("set", "keep"),
    )
    alarm_to: str = option(
        "",
        "where alarms are sent: an address, or the ARN of an SNS topic of your own; empty: nowhere",
        form=like(f"{_ADDRESS}|{_TOPIC}", "an address or the ARN of an SNS topic"),
    )
    spend_per_hour: int = option(
        5, "dollars that models may cost in an hour before an alarm; 0: no alarm", limits=(0, 1_000_000)
    )
    log_retention_days: int = option(
        90,
        "days that logs of functions, API and network are kept; one of CloudWatch's choices",
        form=(_RETENTION.__contains__, f"one of {', '.join(map(str, _RETENTION))}"),
    )
    settings: Settings = Settings()  # The values of the keys that are settings
    kms_key_arn: str = option(
        "",
        "KMS key of your own for tables, index, logs and environment variables; empty: keys that AWS owns or manages",
        replaces=_DOMAIN,
        form=like(_ARN.format("kms", _KEY_ID), "the ARN of a KMS key"),
    )
    rerank_model: str = option(Settings().rerank_model, "Bedrock model that reranks candidates, or `none`")
    writer_model: str = option(Settings().writer_model, "Bedrock model that describes registrations, or `none`")
    inference_profile: str = option(
        "",
        "how both language models are invoked. Empty: Nova as the region needs it, others directly; `none`: directly;"
        " `us`, `eu` or `apac`: through the profile of this geography; for others name the regions that it may route "
        "to, as in `us:us-east-1,us-west-2`; `global`: for models that have such a profile; Nova has none",
    )
    encoder_model: str = option(
        ENCODER,
        "Bedrock model that encodes texts: Titan, `cohere.embed-v4:0`, or `none`: lexical search only",
        replaces="the index: changes wait until `mats reindex` has made another",
    )

    @property
    def production(self) -> bool:
        return self.size == "production"

    @property
    def files(self) -> bool:
        """True if the index is in files of a bucket."""
        return self.size == "small"

    @property
    def capacity(self) -> Size:
        """The nodes and the limits: those of `size`, where no key says otherwise."""
        size = SIZES[self.size]
        return replace(
            size,
            node=self.instance_type or size.node,
            gb_each=self.storage_gb or size.gb_each,
            masters=3 if self.masters and size.nodes > 1 else 0,
            throttle_rate=self.throttle_rate or size.throttle_rate,
        )

    @property
    def in_steps(self) -> bool:
        """True if new versions take over step by step."""
        return (self.rollout or ("linear" if self.production else "")) == "linear"

    @property
    def namespace(self) -> str:
        """The namespace of the metrics that functions write themselves; empty: they write none."""
        return self.name if self.size != "small" else ""

    @property
    def models(self) -> Models:
        return Models(self.rerank_model, self.writer_model, self.encoder_model, self.inference_profile)

    def settings_of(self, function: str) -> dict[str, Any]:
        """The settings that a function gets from keys of the context, by name."""
        return {
            each.name: getattr(self.settings, each.name)
            for each in fields(self.settings)
            if function in each.metadata["stack"]
        }


# --- the parser ---

KEYS = tuple(key for key in fields(Context) if key.name != "settings")
SETTINGS = tuple(setting for setting in fields(Settings) if setting.metadata["stack"])  # Settings that are keys, too


class ContextInvalid(ValueError):
    """Invalid options; the message names every fault."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(["The context is invalid:", *(f"- {fault}" for fault in faults)]))
        self.faults = faults


def parse(given: Mapping[str, Any]) -> Context:
    """Parse the values of a command line or of cdk.json; keys of the CDK itself are ignored. Raises ContextInvalid."""
    every = {each.name: each for each in (*KEYS, *SETTINGS)}
    faults = [
        f"there is no {name!r}; the keys are {', '.join(every)}"
        for name in given
        if name not in every and not re.search(r"[@:/]", name)
    ]
    values: dict[str, Any] = {}
    for name, key in every.items():
        if given.get(name) is None:
            continue
        try:
            values[name] = _parse_value(given[name], key.default)
        except ValueError as error:
            faults.append(f"{name} must be {error}, not {given[name]!r}")
    settings = {each: values.pop(each.name) for each in SETTINGS if each.name in values}
    faulty = {each.name: fault for each, value in settings.items() if (fault := fault_of(each, value))}
    faults += [f"{name} {fault}" for name, fault in faulty.items()]
    valid = {each.name: value for each, value in settings.items() if each.name not in faulty}
    context = Context(**values, settings=Settings(**valid))
    faults += [fault for key in KEYS for fault in _key_faults(key, context)]
    faults += [fault for rule in (_network_faults, _api_faults, _model_faults) for fault in rule(context)]
    if faults:
        raise ContextInvalid(faults)
    return context


def check_region(context: Context, region: str) -> None:
    """Check that the models can be invoked in a region. Raises ContextInvalid, with every fault."""
    if faults := list(region_faults(context, region)):
        raise ContextInvalid(faults)


def replacing(context: Context) -> dict[str, str]:
    """Resources that a later change of a chosen key would replace, by key."""
    chosen = {key.name: key.metadata.get("replaces") for key in KEYS if getattr(context, key.name) != key.default}
    return {name: replaces for name, replaces in chosen.items() if replaces}


def table() -> str:
    """The keys in Markdown, for docs/reference."""
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for key in (*KEYS, *SETTINGS):
        default = _as_text(key.default) if isinstance(key.default, bool) else key.default
        replaced = key.metadata.get("replaces")
        meaning = key.metadata["help"] + (f". Changing it replaces {replaced}" if replaced else "")
        rows.append(f"| `{key.name}` | {f'`{default}`' if default else ''} | {meaning} |")
    return "\n".join(rows) + "\n"


def _parse_value(value: object, default: object) -> object:
    """A value of cdk.json, which may have a type, or of the command line, which is text."""
    if isinstance(value, list | tuple) and isinstance(default, tuple):
        return tuple(str(part).strip() for part in value if str(part).strip())
    if isinstance(default, str) and not isinstance(value, str):
        raise ValueError("a text")
    return parse_value(str(value).strip(), default)


def _key_faults(key: "Field[Any]", context: Context) -> Iterator[str]:
    value = getattr(context, key.name)
    choices, form = key.metadata["choices"], key.metadata["form"]
    if value == key.default:
        return
    if form and isinstance(value, tuple):
        fits, words = form
        yield from (f"{key.name}: {part!r} is not {words}" for part in value if not fits(part))
    elif fault := fault_of(key, value):
        yield f"{key.name} {fault}"
        if choices:
            return
    said = f"{key.name}={_as_text(value)}" if choices or value is True else key.name
    for need in key.metadata.get("needs", ()):
        other, _, wanted = need.partition("=")
        found = getattr(context, other)
        if not found or (wanted and _as_text(found) != wanted):
            yield f"{said} needs {need}"


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- rules over several keys ---


def _network_faults(context: Context) -> Iterator[str]:
    zones = context.availability_zones
    if context.files and context.network == "vpc":
        yield "size=small needs network=public"
    if context.files and context.instance_type:
        yield "instance_type needs size=trial or production: size=small has no nodes"
    if len(set(zones)) < len(zones):
        yield "availability_zones names a zone twice"
    if context.network == "vpc":
        wanted = 3 if context.production else 1
        if len(zones) != wanted:
            yield f"network=vpc with size={context.size} needs {wanted} availability_zones, not {len(zones)}"
    if context.vpc_id and len(context.subnet_ids) != len(zones):
        yield f"vpc_id needs a subnet in subnet_ids for each of availability_zones, not {len(context.subnet_ids)}"


def _api_faults(context: Context) -> Iterator[str]:
    issuer = urlsplit(context.jwt_issuer)
    if context.auth == "jwt":
        if not (issuer.scheme == "https" and issuer.hostname):
            yield f"auth=jwt needs jwt_issuer, an https address, not {context.jwt_issuer!r}"
        if not (context.jwt_audience or context.jwt_client_ids):
            yield "auth=jwt needs jwt_audience or jwt_client_ids"
        if not context.jwt_claim:
            yield "jwt_claim must name a claim, such as audiences"
    if context.api == "private" and bool(context.vpc_id) != bool(context.api_endpoint_id):
        yield "api=private with vpc_id needs api_endpoint_id, and without vpc_id makes an endpoint itself"


def _model_faults(context: Context) -> Iterator[str]:
    for key, model in (("rerank_model", context.rerank_model), ("writer_model", context.writer_model)):
        if model.split(".")[0] in _MODEL_PREFIXES:
            yield f"{key} must be without geography, not {model!r}: inference_profile says where"
        elif model != "none" and not _MODEL.fullmatch(model):
            yield f"{key} must be the id of a Bedrock model or none, not {model!r}"
    if context.encoder_model not in (ENCODER, COHERE_ENCODER, "none"):
        yield (
            f"encoder_model must be {ENCODER}, {COHERE_ENCODER} or none, not {context.encoder_model!r}: "
            "mats has no client for another encoder on Bedrock"
        )
    try:
        profile = context.models.profile
    except ProfileUnknown as error:
        yield f"inference_profile {error}"
        return
    if profile and profile.geography == "global":
        for model in context.models.language_models:
            if model in FAMILIES[0].models:
                yield f"inference_profile=global: {model} has no global profile; leave inference_profile out"


def region_faults(context: Context, region: str) -> Iterator[str]:
    """The faults that the choice of models has in a region."""
    if region.startswith(("us-gov-", "cn-")) or region in ("ap-east-2", "ap-southeast-6"):
        yield f"{region} has no SnapStart for Python, and GovCloud and China lack more: deploy to another region"
        return
    chosen = context.inference_profile
    for family in FAMILIES:
        nova = " and ".join(model for model in context.models.language_models if model in family.models)
        if not chosen and nova and region not in family.regions:
            yield (
                f"{region} cannot invoke {nova}, neither directly nor through a known inference profile; "
                f"deploy to one of {', '.join(family.regions)}, or name a profile and regions in inference_profile, "
                "as in ca:ca-central-1,ca-west-1, or choose other models"
            )
        if chosen == "none" and nova and region not in family.direct:
            yield (
                f"inference_profile=none: {region} takes {nova} through an inference profile only; "
                "leave inference_profile out"
            )
    if chosen and chosen != "none" and ":" not in chosen and not matches(chosen, region):
        yield f"inference_profile={chosen} cannot be called from {region}; leave inference_profile out"
