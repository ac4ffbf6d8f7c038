"""The wheel: what it installs, and the commands it installs, in an empty virtual environment outside the clone."""

import json
import os
import re
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mats.domain.errors import command_to_install
from tests.conftest import ROOT, skip_or_fail

pytestmark = pytest.mark.server

ASSET = re.compile(r"""(?:src|href)="(/?[\w/.-]+\.(?:js|css|svg))\"""")


def run(*command: object, cwd: Path) -> str:
    """The output of a command that must succeed; without a registry of packages there is nothing to test."""
    ran = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False)
    if ran.returncode and re.search(r"No matching distribution|connection broken", ran.stderr):
        skip_or_fail("registry of Python packages")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("wheel")


@pytest.fixture(scope="session")
def wheel(elsewhere: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", elsewhere, ROOT, cwd=elsewhere)
    (built,) = elsewhere.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(elsewhere: Path) -> Path:
    """The folder of commands of an environment into which only the clone was installed, with the extra `local`."""
    run(sys.executable, "-m", "venv", elsewhere / "local", cwd=elsewhere)
    commands = elsewhere / "local" / "bin"
    run(commands / "python", "-m", "pip", "install", "--quiet", f"{ROOT}[local]", cwd=elsewhere)
    return commands


@pytest.fixture(scope="session")
def service(installed: Path, elsewhere: Path) -> Iterator[str]:
    """The address of `mats serve --sample`, run without any setting but an empty cache."""
    environment = {name: value for name, value in os.environ.items() if not re.match("MATS_|PYTHON|VIRTUAL_ENV", name)}
    process = subprocess.Popen(
        [installed / "mats", "serve", "--sample", "--port", "0"],
        cwd=elsewhere,
        env={**environment, "MATS_CACHE": str(elsewhere / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stderr
        line = process.stdout.readline()
        assert "ready on http" in line, line + process.stderr.read()
        yield line.split("ready on ")[1].split(" ")[0]
    finally:
        process.kill()
        process.communicate()


def fetch(url: str, body: object = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=20) as response:
        content: bytes = response.read()
        return content


def test_wheel_installs_one_package(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"mats"}
    assert [name for name in names if re.search(r"(^|/)(tests?|functions|infra|__pycache__)/", name)] == []


def test_install_from_the_clone_has_the_files_of_the_wheel(wheel: Path, installed: Path):
    program = "import importlib.metadata as m; print(*m.files('mats'), sep='\\n')"
    files = run(installed / "python", "-c", program, cwd=installed.parent).splitlines()
    wanted = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("mats/")}
    assert {name for name in files if name.startswith("mats/") and "__pycache__" not in name} == wanted


def test_service_has_its_console(service: str):
    page = fetch(service).decode()
    assets = ASSET.findall(page)
    assert len(assets) > 3
    assert "main.js" in page
    for asset in (*assets, "/console/main.js"):
        assert fetch(f"{service}/{asset.removeprefix('/')}") == (ROOT / asset.removeprefix("/")).read_bytes()


def test_service_has_its_documentation(service: str):
    assets = ASSET.findall(fetch(f"{service}/docs").decode())
    assert len(assets) == 3
    assert all(fetch(f"{service}{asset}") for asset in assets)
    assert "/discover" in json.loads(fetch(f"{service}/openapi.json"))["paths"]


def test_service_searches_by_meaning(service: str, elsewhere: Path):
    answer = json.loads(fetch(f"{service}/discover", {"query": "refund a card payment"}))
    assert (answer["degraded"], answer["without"]) == ([], ["llm"])
    assert answer["results"][0]["name"] == "create_refund"
    assert (elsewhere / "cache").is_dir()


def test_command_searches(service: str, installed: Path, elsewhere: Path):
    answer = json.loads(run(installed / "mats", "search", "--json", "refund a card payment", cwd=elsewhere))
    assert answer["results"][0]["name"] == "create_refund"


def test_client_extra_is_enough_for_the_client(wheel: Path, elsewhere: Path):
    run(sys.executable, "-m", "venv", elsewhere / "client", cwd=elsewhere)
    python = elsewhere / "client" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"mats[client] @ {wheel.as_uri()}", cwd=elsewhere)
    run(python, "-c", "import mats.client", cwd=elsewhere)


def test_an_install_without_extras_names_the_one_that_is_needed(wheel: Path, elsewhere: Path):
    run(sys.executable, "-m", "venv", elsewhere / "bare", cwd=elsewhere)
    commands = elsewhere / "bare" / "bin"
    run(commands / "python", "-m", "pip", "install", "--quiet", wheel, cwd=elsewhere)
    for command, extra in (
        ([commands / "mats"], "local"),
        ([commands / "python", "-c", "import mats.client"], "client"),
    ):
        ran = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
        assert ran.returncode == 1
        assert ran.stderr.splitlines()[-1].endswith(f"is not installed: {command_to_install(extra)}")


def test_commands_of_the_evaluation_name_their_extra(installed: Path, elsewhere: Path):
    ran = subprocess.run(
        [installed / "mats", "gate", "--baseline", "x"], cwd=elsewhere, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, command_to_install("evaluation") in ran.stderr) == (2, True)
