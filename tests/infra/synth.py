"""The stacks as plain templates, for this suite and for those that run what the templates say.

A context is synthesized once in a run of the tests: the first worker that needs it leaves the templates in a file.

Where the CDK or Node is missing, the test that asks is skipped, or fails where everything is required.
"""

import json
import os
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.aws.deployment import REGION, Deployment
from tests.conftest import skip_or_fail

Template = dict[str, Any]

ZONES = "eu-west-1a,eu-west-1b,eu-west-1c"
VPC = {"network": "vpc", "availability_zones": "eu-west-1a"}
JWT = {"auth": "jwt", "jwt_issuer": "https://issuer.example.com", "jwt_audience": "mats"}
PRODUCTION = {"size": "production"}
OWN_VPC = {**VPC, "vpc_id": "vpc-0a1b2c3d", "subnet_ids": "subnet-0a1b2c3d"}
OWN_KEY = {"kms_key_arn": "arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"}
MODEL = "amazon.nova-2-lite-v1:0"
CONTEXTS = {
    "trial": {},
    "vpc, jwt, no rerank model": {**VPC, **JWT, "rerank_model": "none"},
    "private": {**VPC, "api": "private"},
    "private, a VPC and a key of one's own": {
        **OWN_VPC, **OWN_KEY, "api": "private", "api_endpoint_id": "vpce-0a1b2c3d", "api_log_role": "keep",
    },
    "callers": {
        "caller_accounts": "111122223333,444455556666,o-a1b2c3d4e5", "inference_profile": "none",
    },
    "jwt, mail": {**JWT, "alarm_to": "someone@example.com"},
    "global inference, words only, linear": {
        "inference_profile": "global", "rerank_model": MODEL, "writer_model": MODEL, "encoder_model": "none",
        "rollout": "linear",
    },
    "production": {**PRODUCTION, "masters": "true", "inference_profile": "eu"},
    "production, vpc, jwt": {**PRODUCTION, **VPC, "availability_zones": ZONES, **JWT},
    "production, bigger": {
        **PRODUCTION, "instance_type": "r7g.2xlarge.search", "storage_gb": "500", "throttle_rate": "1000",
        "log_retention_days": "365", "log_queries": "hash", "learning": "off", "engine_version": "3.5",
        "alarm_to": "arn:aws:sns:eu-west-1:123456789012:on-call",
    },
}  # fmt: skip
"""Every value of a key that makes another template, and pairs that could disturb each other; all tests share them."""


def templates(**context: str) -> dict[str, Template]:
    """The templates by the names of their stacks. Made once for each context, so not to be changed."""
    if find_spec("aws_cdk") is None or find_spec("cdk_nag") is None:
        skip_or_fail("CDK (pip install -r requirements.txt)")
    return _synthesized(tuple(sorted(context.items())))


def deployment(*, region: str = REGION, **context: str) -> Deployment:
    """The same, with every reference resolved as it is in a region."""
    made = templates(**context)
    buckets = (
        id for one in made.values() for id, each in one["Resources"].items() if each["Type"] == "AWS::S3::Bucket"
    )
    return Deployment(
        *made.values(), values={f"{id}.Arn": f"arn:aws:s3:::{id.lower()}" for id in buckets}, region=region
    )


@cache
def _synthesized(context: tuple[tuple[str, str], ...]) -> dict[str, Template]:
    shared = os.environ.get("MATS_TESTS_SHARED")
    if not shared:
        return _synthesize(dict(context))
    file = Path(shared, f"{sha256(json.dumps(context).encode()).hexdigest()[:16]}.json")
    if not file.exists():
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(_synthesize(dict(context))))
        draft.replace(file)
    made: dict[str, Template] = json.loads(file.read_text())
    return made


def _synthesize(context: dict[str, str]) -> dict[str, Template]:
    import infra  # noqa: F401 - finds Node before the CDK is imported

    try:
        from aws_cdk import App
    except (RuntimeError, OSError):
        skip_or_fail("Node, which the CDK runs on")
    from infra.stacks import add_stacks

    with TemporaryDirectory() as folder:
        app = App(context={"aws:cdk:bundling-stacks": [], **context}, outdir=folder)
        add_stacks(app)
        app.synth()
        found = sorted(Path(folder).glob("*.template.json"))
        return {path.name.removesuffix(".template.json"): json.loads(path.read_text()) for path in found}
