"""A fresh clone with virtual environments, cheap: what is installed here is linked into them before anything is typed.

pip finds each pinned version in place; what this machine lacks it installs, as it would in a fresh clone.
"""

import os
import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from infra.vendor import ROOT

_PIN = re.compile(r"^([\w.-]+)==", re.MULTILINE)
_NOWHERE = os.devnull
_PATIENCE_S = 300  # Nothing that is typed here takes as long, unless it installs much
_OURS = ("AWS_", "CDK_", "JSII", "MAKE", "MATS_", "MFLAGS", "PIP_", "PYTHON", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Clone:
    """A clone of this repository as it is now, uncommitted changes included."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> "Clone":
        """Clone into a new folder."""
        subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(folder)], check=True)
        listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\0"):
            if name and (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, folder / name)
        return cls(folder)

    def environment(self, name: str, *requirements: str) -> Path:
        """A virtual environment in the clone with what these files pin; returns its folder of commands."""
        made = self.folder / name
        venv.create(made, with_pip=True, symlinks=True)
        packages = next(made.glob("lib/python3*/site-packages"))
        for file in requirements:
            for pinned in _PIN.findall((self.folder / file).read_text("utf-8")):
                try:
                    _link(distribution(pinned), packages, made / "bin")
                except PackageNotFoundError:  # for another platform or Python, or not installed here
                    continue
        return made / "bin"

    def run(self, command: str, *, activated: Path | None = None) -> subprocess.CompletedProcess[str]:
        """The outcome of a command in the clone, with no AWS account and with nobody to ask."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        nobody = {
            "AWS_CONFIG_FILE": _NOWHERE,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": "eu-west-1",
            "AWS_SHARED_CREDENTIALS_FILE": _NOWHERE,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTHON": sys.executable,
        }
        path = f"{activated}{os.pathsep}{kept['PATH']}" if activated else kept["PATH"]
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env={**kept, **nobody, "PATH": path}, timeout=_PATIENCE_S,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip


def _link(installed: Distribution, packages: Path, commands: Path) -> None:
    """Link a distribution's files, and write its commands for another interpreter."""
    for file in installed.files or ():
        source = Path(str(installed.locate_file(file)))
        if not source.is_file():
            continue
        if source.parent == Path(sys.executable).parent:
            _, _, script = source.read_bytes().partition(b"\n")
            (commands / source.name).write_bytes(f"#!{commands}/python\n".encode() + script)
            shutil.copymode(source, commands / source.name)
            continue
        target = packages / file
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except FileExistsError:
            continue
        except OSError:  # another file system
            shutil.copyfile(source, target)
