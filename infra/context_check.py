"""Parse and check the context: forms of single keys, keys that need or exclude each other, models and their regions."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from typing import Any
from urllib.parse import urlsplit

from infra.context import ENCODER, HOST, Context
from infra.inference_profiles import DIRECT, GEOGRAPHIES, NOVA, ProfileUnknown, matches, regions
from mats.settings import Settings, fault_of, parse_value

KEYS = tuple(key for key in fields(Context) if key.name != "settings")
SETTINGS = tuple(setting for setting in fields(Settings) if setting.metadata["stack"])
"""Settings that are keys, too."""
_MODEL = re.compile(r"[a-z0-9-]+\.[a-z0-9.:-]+")
_PREFIXES = ("us", "us-gov", "eu", "apac", "jp", "au", "ca", "global")


class ContextInvalid(ValueError):
    """Invalid options; the message names every fault."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(["The context is invalid:", *(f"- {fault}" for fault in faults)]))
        self.faults = faults


def parse(given: Mapping[str, Any]) -> Context:
    """Parse the values of a command line or of cdk.json; keys of the CDK itself are ignored.

    Raises:
        ContextInvalid: with every fault.
    """
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
    found = [(key, values[key.name]) for key in KEYS if key.name in values]
    faults += [fault for key, value in found for fault in _form_faults(key, value)]
    settings = {each: values.pop(each.name) for each in SETTINGS if each.name in values}
    faulty = {each.name: fault for each, value in settings.items() if (fault := fault_of(each, value))}
    faults += [f"{name} {fault}" for name, fault in faulty.items()]
    valid = {each.name: value for each, value in settings.items() if each.name not in faulty}
    context = Context(**values, settings=Settings(**valid))
    faults += [fault for rule in _RULES for fault in rule(context)]
    if faults:
        raise ContextInvalid(faults)
    return context


def check_region(context: Context, region: str) -> None:
    """Check that the models can be invoked in a region.

    Raises:
        ContextInvalid: with every fault.
    """
    if faults := list(region_faults(context, region)):
        raise ContextInvalid(faults)


def replacing(context: Context) -> dict[str, str]:
    """Resources that a later change of a chosen key would replace, by key."""
    chosen = (key for key in KEYS if getattr(context, key.name) != key.default)
    return {key.name: key.metadata["replaces"] for key in chosen if key.metadata["replaces"]}


def table() -> str:
    """The keys in Markdown, as docs/aws.md shows them."""
    rows = ["| key | default | meaning |", "|---|---|---|"]
    for key in (*KEYS, *SETTINGS):
        default = json.dumps(key.default) if isinstance(key.default, bool) else key.default
        meaning = key.metadata.get("meaning") or key.metadata["help"]
        replaces = f". Changing it replaces {found}" if (found := key.metadata.get("replaces")) else ""
        rows.append(f"| `{key.name}` | {f'`{default}`' if default else ''} | {meaning}{replaces} |")
    return "\n".join(rows) + "\n"


def _parse_value(value: object, default: object) -> object:
    """A value of cdk.json, which may have a type, or of the command line, which is text."""
    if isinstance(value, list | tuple) and isinstance(default, tuple):
        return tuple(str(part).strip() for part in value if str(part).strip())
    if isinstance(default, str) and not isinstance(value, str):
        raise ValueError("a text")
    return parse_value(str(value).strip(), default)


def _form_faults(key: "Field[Any]", value: Any) -> Iterator[str]:
    choices, limits, form = (key.metadata[name] for name in ("choices", "limits", "form"))
    if choices and value not in choices:
        yield f"{key.name} must be {' or '.join(choices)}, not {value!r}"
    if limits and value and not limits[0] <= value <= limits[1]:
        yield f"{key.name} must be from {limits[0]} to {limits[1]}, not {value}"
    if form and isinstance(value, tuple):
        yield from (f"{key.name}: {part!r} is not {form.words}" for part in value if not form.fits(part))
    elif form and value != key.default and not form.fits(value):
        yield f"{key.name} must be {form.words}, not {value!r}"


# --- keys that need or exclude each other ---


def _network_faults(context: Context) -> Iterator[str]:
    zones = context.availability_zones
    if context.production and context.instance_count == 1:
        yield "instance_count=1 does not survive a zone: size=production needs 3 or more"
    if len(set(zones)) < len(zones):
        yield "availability_zones names a zone twice"
    if context.network == "vpc":
        several = context.production or context.instance_count > 1
        wanted = 3 if several else 1
        if len(zones) != wanted:
            chosen = f"size={context.size}" if context.production or not several else "three data nodes"
            yield f"network=vpc with {chosen} needs {wanted} availability_zones, not {len(zones)}"
    elif zones:
        yield "availability_zones is for network=vpc; without it OpenSearch chooses the zones"
    if context.vpc_id:
        if context.network != "vpc":
            yield "vpc_id is for network=vpc"
        if len(context.subnet_ids) != len(zones):
            yield f"vpc_id needs a subnet in subnet_ids for each of availability_zones, not {len(context.subnet_ids)}"
    elif context.subnet_ids:
        yield "subnet_ids is for vpc_id"


def _api_faults(context: Context) -> Iterator[str]:
    if context.auth == "jwt":
        if not (urlsplit(context.jwt_issuer).scheme == "https" and urlsplit(context.jwt_issuer).hostname):
            yield f"auth=jwt needs jwt_issuer, an https address, not {context.jwt_issuer!r}"
        if not context.jwt_audience:
            yield "auth=jwt needs jwt_audience"
        if not context.jwt_claim:
            yield "jwt_claim must name a claim, such as audiences"
    elif context.jwt_issuer or context.jwt_audience:
        yield "jwt_issuer and jwt_audience are for auth=jwt"
    if bool(context.domain_name) != bool(context.certificate_arn):
        yield "domain_name and certificate_arn go together"
    if context.caller_limit and not context.waf:
        yield "caller_limit needs waf=true, which counts the calls"
    if context.auth != "iam" and (context.caller_accounts or context.caller_organization):
        yield "caller_accounts and caller_organization are for auth=iam: a token says nothing of an account"
    if context.api == "private":
        if context.network != "vpc":
            yield "api=private needs network=vpc"
        if bool(context.vpc_id) != bool(context.api_endpoint_id):
            yield "api=private with vpc_id needs api_endpoint_id, and without vpc_id makes an endpoint itself"
        yield from (f"{key} needs api=public" for key in ("domain_name", "console") if getattr(context, key))
    elif context.api_endpoint_id:
        yield "api_endpoint_id is for api=private"


def _console_faults(context: Context) -> Iterator[str]:
    if context.console and context.auth != "jwt":
        yield "console=true needs auth=jwt, because browsers cannot sign"
    if context.console_client_id and not context.console:
        yield "console_client_id is for console=true"
    origin = rf"https://{HOST}(:\d+)?"
    if context.console_client_id and context.jwt_issuer and not re.fullmatch(origin, context.issuer_origin):
        yield f"console_client_id needs a jwt_issuer with a host name, not {context.jwt_issuer!r}"
    if context.console_token_host and not context.console_client_id:
        yield "console_token_host is for console_client_id"


def _model_faults(context: Context) -> Iterator[str]:
    for key, model in (
        ("rerank_model", context.rerank_model),
        ("writer_model", context.writer_model),
        *(("switch_models", model) for model in context.switch_models),
    ):
        if model.split(".")[0] in _PREFIXES:
            yield f"{key} must be without geography, not {model!r}: inference_profile says where"
        elif model != "none" and not _MODEL.fullmatch(model):
            yield f"{key} must be the id of a Bedrock model or none, not {model!r}"
    if context.encoder_model not in (ENCODER, "none"):
        yield (
            f"encoder_model must be {ENCODER} or none, not {context.encoder_model!r}: "
            "mats has no client for another encoder on Bedrock"
        )
    try:
        profile = context.profile
    except ProfileUnknown as error:
        yield f"inference_profile {error}"
        return
    if profile and profile.geography == "global":
        for model in context.language_models:
            if model in NOVA:
                yield f"inference_profile=global: {model} has no global profile; leave inference_profile out"


_RULES = (_network_faults, _api_faults, _console_faults, _model_faults)


def region_faults(context: Context, region: str) -> Iterator[str]:
    """The faults that the choice of models has in a region."""
    nova = [model for model in context.language_models if model in NOVA]
    chosen = context.inference_profile
    if not chosen and nova and region not in regions():
        yield (
            f"{region} cannot invoke {' and '.join(nova)}, neither directly nor through a known inference profile; "
            f"deploy to one of {', '.join(regions())}, or name a profile and its regions in inference_profile, as in "
            "ca:ca-central-1,ca-west-1, or choose other models"
        )
    if chosen == "none" and nova and region not in DIRECT:
        yield (
            f"inference_profile=none: {region} takes {' and '.join(nova)} through an inference profile only; "
            "leave inference_profile out"
        )
    if chosen in GEOGRAPHIES and not matches(chosen, region):
        yield f"inference_profile={chosen} cannot be called from {region}; leave inference_profile out"
