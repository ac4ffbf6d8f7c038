"""Cold starts under Lambda's own runtime client: time until the first event is asked for, and until it is answered.

The layers are those of the functions, built for this machine's processor and byte-compiled by the functions' Python.
"""

import os
import platform
import re
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.benchmarks.runner import module_process
from infra.vendor import PYTHON, VENDOR, interpreter
from mats.adapters.dynamodb.tables import Tables
from mats.settings import Settings
from tests.aws.core_layer import copy_core_layer
from tests.aws.deployment import REGION
from tests.aws.runtime import Function

ROOT = Path(__file__).parents[3]
_RUNS = 9
_EVENTS: Mapping[str, dict[str, Any]] = {
    "discovery": {
        "httpMethod": "POST",
        "path": "/discover",
        "body": '{"query": "refund a card payment"}',
        "requestContext": {"identity": {"userArn": "arn:aws:iam::123456789012:user/buyer"}},
    },
    "enrichment": {"Records": []},
}


@contextmanager
def _layers(python: Path) -> Iterator[list[Path]]:
    """The Python path of a function in Lambda: core layer, wheels, and the runtime client of the image."""
    with tempfile.TemporaryDirectory(prefix="mats-layers-") as folder:
        wheels = VENDOR.build(Path(folder) / "vendor", python, platform=f"{platform.machine()}-manylinux_2_28")
        client = Path(folder) / "client"
        pinned = ["--require-hashes", f"--requirement={_runtime_requirements(Path(folder))}", f"--target={client}"]
        quietly = ["--quiet", "--disable-pip-version-check", "--root-user-action=ignore", "--no-deps"]
        subprocess.run([python, "-m", "pip", "install", *quietly, *pinned], check=True)
        yield [copy_core_layer(Path(folder) / "core"), wheels, client]


def _runtime_requirements(folder: Path) -> Path:
    """A requirements file with the runtime client and its dependencies, from the lock."""
    lock = (ROOT / "requirements/lock.txt").read_text("utf-8")
    lines = re.findall(r"^(?:awslambdaric|simplejson|snapshot-restore-py)==(?:.*\\\n)*.*\n", lock, re.MULTILINE)
    path = folder / "client.txt"
    path.write_text("".join(lines), "utf-8")
    return path


def cold(settings: Settings, bedrock: str) -> dict[str, Any]:
    """Cold starts of both functions with these settings, and a stand-in for Bedrock at this address."""
    python = interpreter()
    if python is None:
        raise SystemExit(f"no Python {PYTHON} to start the functions with: install it")
    with _layers(python) as layers, module_process("tests.aws.dynamodb", "--port", "0") as dynamodb:
        around = {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock, "AWS_ENDPOINT_URL_DYNAMODB": dynamodb}
        environment = settings.to_env()
        os.environ |= around
        Tables(region=REGION).ask(
            settings.callers_table,
            "create_table",
            AttributeDefinitions=[{"AttributeName": "caller", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "caller", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
        functions = _start_functions(environment, around, layers, python)
    return {"python": PYTHON, "runs": _RUNS, **functions}


def _start_functions(
    environment: Mapping[str, str], around: Mapping[str, str], layers: list[Path], python: Path
) -> dict[str, Any]:
    """Start both functions alternately, so that load on the machine affects both alike."""
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in _EVENTS}
    for _ in range(_RUNS):
        for name, event in _EVENTS.items():
            with Function(
                folder=ROOT / "functions" / name,
                environment=environment,
                around=around,
                layers=layers,
                python=str(python),
            ) as function:
                began = function.invoke(event)
                again = function.invoke(event)
            if (
                began.error
                or began.cold_ms is None
                or (name == "discovery" and '"degraded":[]' not in began.response["body"])
            ):
                raise SystemExit(f"{name} did not answer: {began}")
            taken[name].append((began.cold_ms, began.cold_ms + began.ms, again.ms))
    kinds = ("init_ms", "init_and_first_ms", "warm_ms")
    return {
        name: {
            kind: {"median": round(statistics.median(values), 1), "max": round(max(values), 1)}
            for kind, values in zip(kinds, zip(*runs, strict=True), strict=True)
        }
        for name, runs in taken.items()
    }
