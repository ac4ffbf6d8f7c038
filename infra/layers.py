"""The Lambda layers: our own code, and wheels built for the Lambda platform."""

import sys
from pathlib import Path

import jsii
from aws_cdk import AssetHashType, BundlingOptions, DockerImage, ILocalBundling
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra import core_layer as contents
from infra import vendor
from infra.vendor import JWT, VENDOR, Wheels

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE = lambda_.Architecture.ARM_64


def core_layer(scope: Construct) -> lambda_.LayerVersion:
    """`mats`, but what no function imports."""
    code = lambda_.Code.from_asset(str(contents.SOURCE), exclude=list(contents.EXCLUDE))
    return _layer(scope, "CoreLayer", code, "mats: our own code")


def vendor_layer(scope: Construct) -> lambda_.LayerVersion:
    """What discovery and enrichment import."""
    return _layer(scope, "VendorLayer", _built(VENDOR), "mats: third-party packages")


def jwt_layer(scope: Construct) -> lambda_.LayerVersion:
    """What the authorizer imports; it needs this and the core layer, not the vendor layer."""
    return _layer(scope, "JwtLayer", _built(JWT), "mats: JSON Web Tokens")


def _layer(scope: Construct, id: str, code: lambda_.Code, description: str) -> lambda_.LayerVersion:
    return lambda_.LayerVersion(
        scope,
        id,
        code=code,
        description=description,
        compatible_runtimes=[RUNTIME],
        compatible_architectures=[ARCHITECTURE],
    )


def _built(wheels: Wheels) -> lambda_.Code:
    interpreter = vendor.interpreter()
    return lambda_.Code.from_asset(
        str(wheels.lock.parent),
        asset_hash_type=AssetHashType.CUSTOM,
        asset_hash=wheels.fingerprint(interpreter),
        bundling=BundlingOptions(image=DockerImage.from_registry("unused"), local=_WithUv(wheels, interpreter)),
    )


@jsii.implements(ILocalBundling)
class _WithUv:
    """Builds a layer on this machine; the CDK asks when its output has no asset of this fingerprint."""

    def __init__(self, wheels: Wheels, interpreter: Path | None) -> None:
        self._wheels = wheels
        self._interpreter = interpreter

    def try_bundle(self, output_dir: str, *_: object, **__: object) -> bool:
        """Always built here: where it cannot be, the error says why, and Docker is not tried."""
        sys.stderr.write(f"Building the layer {self._wheels.name}. {vendor.compiled_with(self._interpreter)}\n")
        self._wheels.build(Path(output_dir), self._interpreter)
        return True
