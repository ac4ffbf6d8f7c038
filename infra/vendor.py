"""The layers of wheels: installed for the Lambda platform by uv, pruned, byte-compiled; without Docker or the CDK.

What is pruned, and why: docs/decisions/0011-vendor-layer.md.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHON = "3.13"
LAMBDA = "aarch64-manylinux_2_28"
SERVICES = ("bedrock", "bedrock-runtime", "dynamodb", "events", "s3")
"""AWS services that the functions call: botocore's data of all others is pruned."""
LIMIT_MB = 50
_IN_LAMBDA = "/opt/python"


class CannotBuild(RuntimeError):
    """A tool is missing or failed; the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Wheels:
    """A layer of third-party packages, by the folder of its lock file under `layers/`."""

    name: str

    @property
    def lock(self) -> Path:
        """Every package with its version and hashes."""
        return ROOT / "layers" / self.name / "requirements.txt"

    def fingerprint(self, interpreter: Path | None) -> str:
        """Hash of everything the layer depends on: lock, platform, services, compiler, and this file."""
        compiled = f"cpython-{PYTHON}" if interpreter else "source"
        how = Path(__file__).read_text("utf-8")  # what is pruned, and how it is compiled
        inputs = "\n".join((self.lock.read_text("utf-8"), LAMBDA, *SERVICES, compiled, how))
        return hashlib.sha256(inputs.encode()).hexdigest()

    def build(self, folder: Path, interpreter: Path | None, *, platform: str = LAMBDA) -> Path:
        """Build `folder/python`, replacing it; without an interpreter the modules are not compiled.

        Raises CannotBuild: uv is missing or failed, or a module could not be compiled.
        """
        target = folder / "python"
        shutil.rmtree(target, ignore_errors=True)
        _install(self.lock, target, platform)
        _prune(target)
        if interpreter:
            _compile(interpreter, target)
        return target


VENDOR = Wheels("vendor")
JWT = Wheels("jwt")
FILES = Wheels("files")


@cache
def interpreter() -> Path | None:
    """A Python of the functions' version on this machine, if there is one.

    A command on the PATH may be a broken shim, so each candidate is run to get its version.
    """
    return next((path for path in _candidates() if _version(path) == PYTHON), None)


def compile_note(found: Path | None) -> str:
    """One line about how a build is compiled."""
    if found:
        return f"Byte-compiled with {found}."
    return (
        f"There is no Python {PYTHON} here, so the layer is not compiled: cold starts are seconds slower. "
        f"Install one (`uv python install {PYTHON}`) and build again."
    )


def size_mb(path: Path) -> float:
    """Megabytes (10^6 bytes) of all files, as Lambda counts an unzipped layer."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable)
    if found := shutil.which(f"python{PYTHON}"):
        yield Path(found)
    commands = [[shutil.which("pyenv") or "", "whence", "--path", f"python{PYTHON}"]]
    if find_spec("uv"):
        commands.append([*_uv(), "python", "find", "--no-python-downloads", "--managed-python", PYTHON])
    for command in commands:
        if command[0]:
            yield from (Path(line) for line in _run(command).stdout.splitlines())


def _version(python: Path) -> str:
    if not python.is_file():
        return ""
    return _run([str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).stdout.strip()


def _uv() -> list[str]:
    if find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    if found := shutil.which("uv"):
        return [found]
    raise CannotBuild("the layers are built with uv, which is not installed: pip install uv")


def _install(lock: Path, target: Path, platform: str) -> None:
    wanted = ["--python-platform", platform, "--python-version", PYTHON, "--only-binary", ":all:", "--require-hashes"]
    ran = _run([*_uv(), "pip", "install", "--quiet", *wanted, "--requirement", str(lock), "--target", str(target)])
    if ran.returncode:
        raise CannotBuild(f"uv could not install {lock.relative_to(ROOT)} for {platform}:\n{ran.stderr.strip()}")


def _prune(target: Path) -> None:
    """Remove scripts, type stubs, packages' own tests and the data of AWS services that are not called."""
    unused = [target / "bin", target / ".lock", *target.glob("**/tests"), *target.glob("**/*.pyi")]
    for library in ("botocore", "boto3"):
        unused += [data for data in (target / library / "data").glob("*/") if data.name not in SERVICES]
    for path in unused:
        path.unlink() if path.is_file() else shutil.rmtree(path, ignore_errors=True)


def _compile(interpreter: Path, target: Path) -> None:
    """Compile every module so that Lambda never does, with the paths it will have there.

    Unchecked: the hash of the source is neither read nor compared at import, and no time stamp gets into the layer.
    """
    how = ["-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", "-s", str(target), "-p", _IN_LAMBDA]
    ran = _run([str(interpreter), *how, str(target)], environment={"PYTHONHASHSEED": "0"})
    if ran.returncode:
        raise CannotBuild(f"{interpreter} could not compile the layer:\n{(ran.stdout + ran.stderr).strip()[:2000]}")


def _run(command: Sequence[str], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    inherited = {**os.environ, **(environment or {})}  # noqa: TID251 - for the tool, not read here
    try:
        return subprocess.run(  # noqa: S603 - commands of ours, no shell
            list(command), capture_output=True, text=True, check=False, env=inherited
        )
    except OSError as error:
        return subprocess.CompletedProcess(list(command), 127, "", str(error))


def main(arguments: Sequence[str] | None = None) -> None:
    """Build a layer into a folder and say how big it is."""
    parser = argparse.ArgumentParser(prog="python -m infra.vendor", description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layer", choices=(VENDOR.name, JWT.name, FILES.name), default=VENDOR.name)
    given = parser.parse_args(arguments)
    found = interpreter()
    try:
        built = Wheels(given.layer).build(given.folder, found)
    except CannotBuild as error:
        sys.exit(str(error))
    sys.stdout.write(f"{compile_note(found)}\n")
    size = size_mb(built)
    if size > LIMIT_MB:
        sys.exit(f"The layer {given.layer} has {size:.1f} MB, which is more than {LIMIT_MB} MB.")


if __name__ == "__main__":
    main()
