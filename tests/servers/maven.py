"""Real servers written in Java, put together by Maven once and kept in a cache outside the repository."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent / "java"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mats" / "servers"
PATIENCE_S = 900.0


class AssemblyFailed(Exception):
    """Maven or the compiler refused; the message is what it said."""


def missing(name: str) -> str | None:
    """What this machine lacks to run the server `name`, in words; None when there is everything."""
    if _java_version() < 17:
        return "JDK 17 or later"
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
    launchers = [str(path) for path in source.glob("*.java")]
    _run(["javac", "-nowarn", "--release", "17", "-d", str(target), "-cp", f"{target}/lib/*", *launchers], lock)


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


def _java_version() -> int:
    """The release of both the compiler and the virtual machine; 0 when one is missing."""
    if not shutil.which("java") or not shutil.which("javac"):
        return 0
    said = subprocess.run(["javac", "-version"], capture_output=True, text=True, check=False)
    found = re.match(r"javac (\d+)", said.stdout + said.stderr)
    return int(found[1]) if found else 0
