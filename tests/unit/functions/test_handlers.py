"""The Lambda handlers import what they need at the start, and no more."""

import os
import subprocess
import sys

from tests.conftest import ROOT


def modules_after(imports: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after these imports."""
    environment = {name: value for name, value in os.environ.items() if name != "AWS_LAMBDA_FUNCTION_NAME"}
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys, {imports}; print(*sys.modules)"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ran.stdout.split())


def test_discovery_starts_without_rarely_needed_modules():
    answers = "mats.edge.app, mats.usecases.discover, mats.bootstrap.policies"  # loaded when it opens, in Lambda
    loaded = modules_after(
        f"functions.discovery.handler, mats.bootstrap.cloud, mats.adapters.bedrock.factory, {answers}"
    )
    assert "mats.edge.schema" in loaded
    for late in ("mcp", "openapi", "tools", "ard.", "changes"):
        assert not {name for name in loaded if name.startswith((f"mats.edge.{late}", "mcp."))}, late
    assert "mats.domain.capability.suspicion" not in loaded
    offline = {f"mats.usecases.{name}" for name in ("enrich", "reindex", "reconcile", "backfill", "browse")}
    offline |= {f"mats.adapters.{name}" for name in ("bedrock.writer", "dynamodb.profiles", "eventbridge")}
    assert not loaded & offline


def test_enrichment_starts_without_the_modules_of_answers():
    loaded = modules_after("functions.enrichment.handler, mats.bootstrap.cloud, mats.usecases.enrich")
    assert "mats.usecases.drafts" in loaded
    of_answers = {"mats.edge.app", "mats.edge.schema", "mats.usecases.discover", "mats.bootstrap.policies"}
    assert not loaded & of_answers


def test_authorizer_starts_with_the_modules_of_its_layers_only():
    loaded = modules_after("functions.authorizer.handler")
    assert "jwt" in loaded
    assert not loaded & {"pydantic", "boto3", "mats.edge.http", "mats.bootstrap"}


def test_discovery_registers_its_connections_for_the_restore_of_a_snapshot_where_the_runtime_can():
    """As Lambda does: it loads the module, takes a snapshot, restores it, and calls what is registered."""
    script = """
import importlib, snapshot_restore_py, sys
import functions.discovery.handler as handler
(work, args, kwargs), = snapshot_restore_py.get_after_restore()
print(work == handler._system().open_connections, args, kwargs)
sys.modules["snapshot_restore_py"] = None
print(importlib.reload(handler)._system().application is not None)
"""
    environment = {
        **os.environ, "AWS_LAMBDA_FUNCTION_NAME": "discovery", "MATS_INDEX_ENDPOINT": "https://search.invalid",
        "MATS_ENCODER": "none", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y",
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["True () {}", "True"]
