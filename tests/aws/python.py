"""The Python of the functions: of the deployed version, with the wheels of their layers and the runtime client.

`python -m tests.aws.python` puts the wheels for this machine into its virtual environment, once.
"""

import platform
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from infra.vendor import FILES, JWT, PYTHON, ROOT, VENDOR, compile_note, interpreter

_SITE = Path(sys.prefix) / "lambda"
_CLIENT = re.compile(r"^(?:awslambdaric|simplejson|snapshot-restore-py)==(?:.*\\\n)+.*\n", re.MULTILINE)


@cache
def deployed_python() -> tuple[str, tuple[Path, ...]]:
    """The interpreter, and the folders of its wheels. This Python, which has all, if there are none."""
    found = interpreter() if _SITE.is_dir() else None
    return (str(found), tuple(sorted(_SITE.glob("*/python")))) if found else (sys.executable, ())


def main() -> None:
    if not interpreter():
        sys.exit(f"{compile_note(None)} Until then the functions' tests run on Python {platform.python_version()}.")
    target = f"{platform.machine()}-manylinux_2_28"
    for wheels in (VENDOR, JWT, FILES):
        wheels.build(_SITE / wheels.name, None, platform=target)
    lock = _SITE / "client.txt"
    lock.write_text("".join(_CLIENT.findall((ROOT / "requirements" / "lock.txt").read_text("utf-8"))), "utf-8")
    wanted = ["--python-platform", target, "--python-version", PYTHON, "--only-binary", ":all:", "--require-hashes"]
    where = ["--no-deps", "--requirement", str(lock), "--target", str(_SITE / "client" / "python")]
    subprocess.run([sys.executable, "-m", "uv", "pip", "install", "--quiet", *wanted, *where], check=True)


if __name__ == "__main__":
    main()
