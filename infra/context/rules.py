"""Valid values, and keys that need or exclude each other. Each rule yields the faults of a context."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mats.setting_values import is_prior

if TYPE_CHECKING:
    from infra.context.keys import Context

_NAME = re.compile(r"[a-z][a-z0-9-]{0,14}[a-z0-9]")
"""Leaves a domain, the shortest of the names, its 28 characters."""
_ZONE = re.compile(r"[a-z]{2}(-[a-z]+)+-\d[a-z]")
_HOST = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}")
_ORIGIN = re.compile(rf"https://{_HOST.pattern}(:\d+)?")
_ARN = r"arn:aws[\w-]*:{}:[a-z0-9-]+:\d{{12}}:{}"
_CERTIFICATE = re.compile(_ARN.format("acm", r"certificate/[\w-]+"))
_TOPIC = re.compile(_ARN.format("sns", r"[\w-]{1,256}"))
_KMS_KEY = re.compile(_ARN.format("kms", r"key/([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32})"))
_CLIENT = re.compile(r"[!-~]+")
_EMAIL = re.compile(r"[^@\s,]+@[^@\s,]+\.[^@\s,]+")
_RETENTION = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
_LIMITS = {
    "storage_gb": (10, 16_000),
    "enrichment_concurrency": (2, 1_000),
    "discovery_concurrency": (1, 10_000),
    "throttle_rate": (1, 10_000),
    "caller_limit": (10, 2_000_000_000),
    "spend_per_hour": (1, 1_000_000),
    "versions_days": (1, 3_650),
    "receipt_days": (0, 365),
}
"""Lowest and highest value; 0 is always possible."""


def _capacity(context: Context) -> Iterator[str]:
    if not _NAME.fullmatch(context.name) or "--" in context.name:
        yield f"name must be 2 to 16 of a-z, 0-9 and single hyphens, from a letter on, not {context.name!r}"
    if context.instance_type and not re.fullmatch(r"[a-z0-9-]+\.[a-z0-9]+\.search", context.instance_type):
        yield f"instance_type must be a type such as r7g.large.search, not {context.instance_type!r}"
    if context.instance_count < 0 or (context.instance_count > 1 and context.instance_count % 3):
        yield f"instance_count must be 1 or a multiple of 3, not {context.instance_count}"
    if context.production and context.instance_count == 1:
        yield "instance_count=1 does not survive a zone: size=production needs 3 or more"
    for key, (lowest, highest) in _LIMITS.items():
        value = getattr(context, key)
        if value and not lowest <= value <= highest:
            yield f"{key} must be from {lowest} to {highest}, not {value}"
    if not is_prior(context.trust_prior):
        yield f"trust_prior must be from 0 to 100, or none, not {context.trust_prior!r}"
    if context.log_retention_days not in _RETENTION:
        choices = ", ".join(map(str, _RETENTION))
        yield f"log_retention_days must be one of {choices}, not {context.log_retention_days}"


def _network(context: Context) -> Iterator[str]:
    zones = context.availability_zones
    for zone in zones:
        if not _ZONE.fullmatch(zone):
            yield f"availability_zones: {zone!r} is not a zone, such as eu-west-1a"
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


def _given_network(context: Context) -> Iterator[str]:
    if context.vpc_id:
        if context.network != "vpc":
            yield "vpc_id is for network=vpc"
        if not re.fullmatch(r"vpc-[0-9a-f]+", context.vpc_id):
            yield f"vpc_id must be the id of a VPC, not {context.vpc_id!r}"
        if len(context.subnet_ids) != len(context.availability_zones):
            yield f"vpc_id needs a subnet in subnet_ids for each of availability_zones, not {len(context.subnet_ids)}"
    elif context.subnet_ids:
        yield "subnet_ids is for vpc_id"
    for subnet in context.subnet_ids:
        if not re.fullmatch(r"subnet-[0-9a-f]+", subnet):
            yield f"subnet_ids: {subnet!r} is not the id of a subnet"


def _front(context: Context) -> Iterator[str]:
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
    if context.domain_name and not _HOST.fullmatch(context.domain_name):
        yield f"domain_name must be a host name in lower case, not {context.domain_name!r}"


def _callers(context: Context) -> Iterator[str]:
    if context.caller_limit and not context.waf:
        yield "caller_limit needs waf=true, which counts the calls"
    if context.auth != "iam" and (context.caller_accounts or context.caller_organization):
        yield "caller_accounts and caller_organization are for auth=iam: a token says nothing of an account"
    for account in context.caller_accounts:
        if not re.fullmatch(r"\d{12}", account):
            yield f"caller_accounts: {account!r} is not the number of an account"
    if context.api == "private":
        if context.network != "vpc":
            yield "api=private needs network=vpc"
        if bool(context.vpc_id) != bool(context.api_endpoint_id):
            yield "api=private with vpc_id needs api_endpoint_id, and without vpc_id makes an endpoint itself"
        for key in ("domain_name", "console"):
            if getattr(context, key):
                yield f"{key} needs api=public"
    elif context.api_endpoint_id:
        yield "api_endpoint_id is for api=private"


def _formats(context: Context) -> Iterator[str]:
    for key, form, meaning in (
        ("alarm_email", _EMAIL, "one address"),
        ("rejection_email", _EMAIL, "one address"),
        ("certificate_arn", _CERTIFICATE, "the ARN of an ACM certificate"),
        ("alarm_topic_arn", _TOPIC, "the ARN of an SNS topic"),
        ("kms_key_arn", _KMS_KEY, "the ARN of a KMS key"),
        ("caller_organization", re.compile(r"o-[a-z0-9]{10,32}"), "the id of an organization"),
        ("api_endpoint_id", re.compile(r"vpce-[0-9a-f]+"), "the id of a VPC endpoint"),
    ):
        value = getattr(context, key)
        if value and not form.fullmatch(value):
            yield f"{key} must be {meaning}, not {value!r}"


def _console(context: Context) -> Iterator[str]:
    if context.console and context.auth != "jwt":
        yield "console=true needs auth=jwt, because browsers cannot sign"
    if context.console_client_id:
        if not context.console:
            yield "console_client_id is for console=true"
        if not _CLIENT.fullmatch(context.console_client_id):
            yield f"console_client_id must be the id of a client, not {context.console_client_id!r}"
        if context.jwt_issuer and not _ORIGIN.fullmatch(context.issuer_origin):
            yield f"console_client_id needs a jwt_issuer with a host name, not {context.jwt_issuer!r}"
    if context.console_token_host:
        if not context.console_client_id:
            yield "console_token_host is for console_client_id"
        if not _HOST.fullmatch(context.console_token_host):
            yield f"console_token_host must be a host name in lower case, not {context.console_token_host!r}"


RULES: tuple[Callable[[Context], Iterator[str]], ...] = (
    _capacity,
    _network,
    _given_network,
    _front,
    _callers,
    _formats,
    _console,
)
