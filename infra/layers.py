"""The Lambda layers: our own code, and wheels built for the Lambda platform."""

import sys
from pathlib import Path

import jsii
from aws_cdk import AssetHashType, BundlingOptions, DockerImage, ILocalBundling
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra import core_layer as contents
from infra import vendor
from infra.vendor import Wheels

RUNTIME = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE = lambda_.Architecture.ARM_64
_PACKAGES = {"vendor": "third-party packages", "files": "NumPy", "jwt": "JSON Web Tokens"}


def core_layer(scope: Construct) -> lambda_.LayerVersion:
    """`mats`, but what no function imports."""
    code = lambda_.Code.from_asset(str(contents.SOURCE), exclude=list(contents.EXCLUDE))
    return _layer(scope, "CoreLayer", code, "mats: our own code")


def wheels_layer(scope: Construct, wheels: Wheels) -> lambda_.LayerVersion:
    """Third-party packages."""
    return _layer(scope, f"{wheels.name.capitalize()}Layer", _wheels_code(wheels), f"mats: {_PACKAGES[wheels.name]}")


def _layer(scope: Construct, id: str, code: lambda_.Code, description: str) -> lambda_.LayerVersion:
    return lambda_.LayerVersion(
        scope,
        id,
        code=code,
        description=description,
        compatible_runtimes=[RUNTIME],
        compatible_architectures=[ARCHITECTURE],
    )


def _wheels_code(wheels: Wheels) -> lambda_.Code:
    interpreter = vendor.interpreter()
    return lambda_.Code.from_asset(
        str(wheels.lock.parent),
        asset_hash_type=AssetHashType.CUSTOM,
        asset_hash=wheels.fingerprint(interpreter),
        bundling=BundlingOptions(image=DockerImage.from_registry("unused"), local=_WithUv(wheels, interpreter)),
    )


@jsii.implements(ILocalBundling)
class _WithUv:
    """Builds a layer on this machine; the CDK calls it if its output has no asset of this fingerprint."""

    def __init__(self, wheels: Wheels, interpreter: Path | None) -> None:
        self._wheels = wheels
        self._interpreter = interpreter

    def try_bundle(self, output_dir: str, *_: object, **__: object) -> bool:
        """Build it here. A failure raises instead of falling back to Docker."""
        sys.stderr.write(f"Building the layer {self._wheels.name}. {vendor.compile_note(self._interpreter)}\n")
        self._wheels.build(Path(output_dir), self._interpreter)
        return True
