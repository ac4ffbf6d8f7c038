"""How Java servers are built, started and stopped."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.aws import maven
from tests.aws.dynamodb import DynamoDBLocal
from tests.aws.jvm import ServerFailed
from tests.conftest import ROOT, skip_or_fail


@pytest.mark.server
def test_a_java_server_ends_with_the_process_that_started_it_even_when_that_is_killed() -> None:
    _require(DynamoDBLocal)
    script = (
        "import sys\nfrom tests.aws.dynamodb import DynamoDBLocal\n"
        "with DynamoDBLocal() as server: print(server.pid, server.folder, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout
        pid, folder = parent.stdout.readline().split()
        parent.kill()
    try:
        _wait_until(lambda: not _runs(int(pid)))
    finally:
        shutil.rmtree(folder)


@pytest.mark.server
def test_a_server_that_does_not_start_shows_its_log() -> None:
    _require(DynamoDBLocal)
    with pytest.raises(ServerFailed, match="Too small maximum heap"), DynamoDBLocal(java_options=["-Xmx1k"]):
        pass


def test_a_server_is_put_together_completely_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, tools = tmp_path / "java" / "toy", tmp_path / "bin"
    source.mkdir(parents=True)
    tools.mkdir()
    for name, content in (("pom.xml", "<project/>"), ("Toy.java", "class Toy {}")):
        (source / name).write_text(content)
    monkeypatch.setattr(maven, "SOURCES", source.parent)
    monkeypatch.setattr(maven, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    _script(tools / "mvn", 'for a; do case $a in -Ddist=*) touch "${a#-Ddist=}/half";; esac; done; echo broken; exit 1')
    _script(tools / "javac", "exit 0")
    with pytest.raises(maven.AssemblyFailed, match="broken"):
        maven.assembled("toy")
    assert not list((tmp_path / "cache").glob("toy-*"))

    _script(tools / "mvn", 'for a; do case $a in -Ddist=*) touch "${a#-Ddist=}/whole";; esac; done')
    home = maven.assembled("toy")
    assert [path.name for path in home.iterdir()] == ["whole"]
    assert maven.assembled("toy") == home
    (source / "Toy.java").write_text("class Toy { int changed; }")
    assert maven.assembled("toy") != home


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _runs(pid: int) -> bool:
    """Whether it still runs; one that ended and that nobody has asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def _wait_until(there: Callable[[], bool]) -> None:
    give_up = time.monotonic() + 60
    while not there():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def _require(server: type[DynamoDBLocal]) -> None:
    if lacking := server.missing():
        skip_or_fail(lacking)
