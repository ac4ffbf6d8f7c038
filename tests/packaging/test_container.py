"""The Dockerfile, read line by line, and what it runs tried in this environment: no container is built here."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT, skip_or_fail

MOST_SECONDS = 900


@dataclass(frozen=True)
class Instruction:
    stage: str
    """The name of its stage; empty for the last one."""
    name: str
    value: str

    @property
    def words(self) -> list[str]:
        return json.loads(self.value) if self.value.startswith("[") else shlex.split(self.value)


@cache
def instructions() -> list[Instruction]:
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    read, stage = [], ""
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, value = line.partition(" ")
        if name == "FROM":
            stage = value.partition(" AS ")[2]
        read.append(Instruction(stage, name, value.strip()))
    return read


def named(name: str, stage: str | None = None) -> list[Instruction]:
    return [each for each in instructions() if each.name == name and stage in (None, each.stage)]


def environment() -> dict[str, str]:
    """The variables of the last stage."""
    return dict(word.split("=", 1) for each in named("ENV", "") for word in each.words)


def copied() -> Iterator[tuple[str, str]]:
    """Every file or folder of the context, and where it goes in the stage."""
    for each in named("COPY", "build"):
        *sources, target = each.words
        for source in sources:
            yield source, f"{target}{Path(source).name}" if target.endswith("/") else target


def test_both_stages_have_one_exact_supported_base_and_the_last_only_what_the_first_installed():
    base = re.fullmatch(r"BASE=python:3\.(\d+)\.\d+-slim-\w+", named("ARG")[0].value)
    assert base
    assert int(base[1]) >= 11
    assert [each.value for each in named("FROM")] == ["${BASE} AS build", "${BASE}"]
    assert [each.words for each in named("COPY", "")] == [["--from=build", "/opt/mats", "/opt/mats"]]


def test_what_is_copied_is_there_and_not_ignored():
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert ignored[0] == "*"
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    sources = {source for source, _ in copied()}
    assert sources == kept
    assert all((ROOT / source).exists() for source in sources)


def test_every_package_has_a_hash():
    installs = [part for each in named("RUN") for part in each.value.split("&&") if "pip install" in part]
    assert len(installs) >= 4
    for install in installs:
        words = shlex.split(install)
        assert "--require-hashes" in words or ("--no-index" in words and words[-1].endswith("*.whl"))
    for name in ("container", "wheel", "assets", "model"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        assert text.count("==") > 0
        assert all(
            "--hash=sha256:" in pin for pin in re.split(r"\n(?=[\w-]+==)", text) if "==" in pin.partition("#")[0]
        )


def test_versions_are_those_that_the_tests_run_with():
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^[\w.-]+==[^ ]+", (ROOT / "requirements" / f"{name}.txt").read_text(), re.MULTILINE))

    assert pins("container") | pins("wheel") <= pins("lock")


def test_the_user_is_not_root_and_owns_the_volume():
    (user,) = (each.value for each in named("USER"))
    uid, gid = map(int, user.split(":"))
    assert uid >= 10_000
    assert gid >= 10_000
    after = instructions()[instructions().index(named("USER")[0]) :]
    assert "RUN" not in {each.name for each in after}
    (volume,) = (each.value for each in named("VOLUME"))
    (made,) = (each.value for each in named("RUN", ""))
    assert f"--owner {uid} --group {gid} --mode 0700 {volume}" in made
    for variable in ("HOME", "MATS_HOME", "MATS_CACHE"):
        assert Path(environment()[variable]).is_relative_to(volume)
    assert not any("TOKEN" in variable for variable in environment())


def health_check() -> list[str]:
    (check,) = (each.value for each in named("HEALTHCHECK"))
    words: list[str] = json.loads(check.partition("CMD ")[2])
    return words


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder for `/` in which the first stage was run, by the instructions of the Dockerfile."""
    root = tmp_path_factory.mktemp("image")
    places = {"/src": root / "src", "/opt": root / "opt"}
    folder = root / "src"
    folder.mkdir()
    for each in (one for one in instructions() if one.stage == "build"):
        if each.name == "COPY":
            _copy(each, folder)
        elif each.name == "RUN":
            command = each.value.replace("python -m venv", f"{sys.executable} -m venv")
            for inside, outside in places.items():
                command = re.sub(rf"(?<![\w.-]){inside}(?=[/ ]|$)", str(outside), command)
            _run(command, folder)
    return root


def _copy(instruction: Instruction, folder: Path) -> None:
    *sources, target = instruction.words
    for source in sources:
        to = folder / (f"{target}{Path(source).name}" if target.endswith("/") else target)
        to.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, to, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / source, to)


def _run(command: str, folder: Path) -> None:
    ran = subprocess.run(
        ["sh", "-ec", command], cwd=folder, capture_output=True, text=True, check=False, timeout=MOST_SECONDS
    )
    if ran.returncode and re.search(r"No matching distribution|connection broken", ran.stderr):
        skip_or_fail("registry of Python packages")
    assert ran.returncode == 0, f"$ {command}\n{ran.stdout}{ran.stderr}"


@pytest.mark.server
def test_what_is_installed_serves_as_the_command_says(built: Path):
    """As in the container: its variables alone, tokens in files, an empty volume, its health check, its stop signal."""
    volume = built / "volume"
    volume.mkdir()
    variables = {name: re.sub("^/var/lib/mats", str(volume), value) for name, value in environment().items()}
    variables["PATH"] = f"{built}/opt/mats/bin:{os.environ['PATH']}"
    secrets = []
    for name in ("read", "write"):
        (built / f"{name}-token").write_text(f"{name}-" * 8 + "\n")
        secrets.append(f"{built}/{name}-token")
    command = " ".join(named("CMD")[0].words).replace("/run/secrets/mats-read-token", secrets[0])
    command = command.replace("/run/secrets/mats-write-token", secrets[1]).replace("--port 8080", "--port 0")
    process = subprocess.Popen(
        [built / "opt/mats/bin/mats", *shlex.split(command), "--sample"],
        cwd=volume, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout
        assert process.stderr
        line = process.stdout.readline()
        assert "ready on http" in line, line + process.stderr.read()
        port = line.split("ready on ")[1].split(" ")[0].rpartition(":")[2]
        program, *words = [word.replace(":8080/", f":{port}/") for word in health_check()]
        subprocess.run([built / "opt/mats/bin" / program, *words], env=variables, check=True, timeout=60)
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/discover", b'{"query": "refund a card payment"}')
        asked.add_header("Authorization", f"Bearer {'read-' * 8}")
        with urllib.request.urlopen(asked, timeout=20) as reply:
            answer = json.load(reply)
        assert answer["without"] == ["llm"]
        assert answer["results"]
        process.send_signal(getattr(signal, named("STOPSIGNAL")[0].value))
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()
