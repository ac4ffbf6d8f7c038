"""checkov over the templates: each finding has a reason next to the resource, and each reason a finding."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import skip_or_fail
from tests.infra.synth import templates
from tests.infra.test_stacks import CONTEXTS

pytestmark = pytest.mark.server

CHECKOV = Path(sys.prefix, ".checkov", "bin", "checkov")


class Finding(NamedTuple):
    """A check that a resource fails."""

    check: str
    resource: str


@pytest.fixture(scope="module")
def distinct() -> dict[str, dict[str, Any]]:
    """Every template that some context makes, by context and stack; each once."""
    made = {f"{context}: {name}": each for context in CONTEXTS for name, each in templates(**CONTEXTS[context]).items()}
    by_content = {json.dumps(each, sort_keys=True): name for name, each in made.items()}
    return {name: json.loads(content) for content, name in by_content.items()}


def test_each_finding_has_a_reason_and_each_reason_a_finding(distinct: dict[str, dict[str, Any]], tmp_path: Path):
    accepted = {name: _take_acceptances(each) for name, each in distinct.items()}
    found = _findings(distinct, tmp_path)
    without_reason = {name: found[name] - accepted[name].keys() for name in distinct}
    assert {name: each for name, each in without_reason.items() if each} == {}
    stale = {name: accepted[name].keys() - found[name] for name in distinct}
    assert {name: each for name, each in stale.items() if each} == {}
    assert all(reason for each in accepted.values() for reason in each.values())


def test_checkov_would_have_said_so(tmp_path: Path):
    careless = {"Type": "AWS::S3::Bucket", "Properties": {}}
    found = _findings({"careless": {"Resources": {"Careless": careless}}}, tmp_path)
    assert Finding("CKV_AWS_53", "Careless") in found["careless"]


def _take_acceptances(template: dict[str, Any]) -> Mapping[Finding, str]:
    """The accepted checks of the metadata, removed from it, because checkov does not look at what it is to skip."""
    return {
        Finding(each["id"], id): each["comment"]
        for id, resource in template["Resources"].items()
        for each in resource.get("Metadata", {}).pop("checkov", {}).get("skip", ())
    }


def _findings(templates: Mapping[str, Any], folder: Path) -> dict[str, set[Finding]]:
    """The findings of checkov, which has a virtual environment of its own, in each template."""
    if not CHECKOV.is_file():
        skip_or_fail("checkov (make test-servers installs it)")
    names = dict(zip((f"/{n}.json" for n in range(len(templates))), templates, strict=True))
    for file, name in names.items():
        Path(folder, file[1:]).write_text(json.dumps(templates[name]))
    command = [str(CHECKOV), "--directory", str(folder), "--framework", "cloudformation", "--output", "json"]
    offline = {**os.environ, "HTTPS_PROXY": "http://127.0.0.1:9"}
    run = subprocess.run(
        [*command, "--quiet", "--compact", "--skip-download"], env=offline, capture_output=True, text=True, check=False
    )
    assert run.returncode in (0, 1), run.stderr
    said = json.loads(run.stdout)
    assert not said["results"].get("parsing_errors"), said["results"]["parsing_errors"]
    found: dict[str, set[Finding]] = {name: set() for name in templates}
    for each in said["results"]["failed_checks"]:
        found[names[each["file_path"]]].add(Finding(each["check_id"], each["resource"].rpartition(".")[2]))
    return found
