"""The container: built from the Dockerfile by buildah over a Debian of its own, and run as its command says."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, skip_or_fail

PACKAGES = "python3,python3-venv,passwd,ca-certificates"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")  # What this machine trusts: its network may end TLS itself
ADMIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MOST_SECONDS = 900


def test_every_package_has_a_hash_and_a_version_that_the_tests_run_with():
    files = ("container", "wheel", "assets", "model", "multilingual")
    texts = {name: (ROOT / "requirements" / f"{name}.txt").read_text() for name in files}
    pins = {name: set(re.findall(r"^[\w.-]+==[^ ]+", text, re.MULTILINE)) for name, text in texts.items()}
    assert pins["container"] | pins["wheel"] <= set((ROOT / "requirements" / "lock.txt").read_text().split())
    for text in texts.values():
        packages = re.split(r"\n(?=[\w.-]+==)", text.strip())
        assert all("--hash=sha256:" in package for package in packages if "==" in package.partition("#")[0])
    installs = re.findall(r"pip install ([^&\n]+)", (ROOT / "Dockerfile").read_text())
    assert len(installs) >= 4
    assert all("--require-hashes" in words or "--no-index" in words for words in map(str.split, installs))


built = pytest.mark.long(slice="frameworks")


class Buildah:
    """The command, with images and containers in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.words = [
            "buildah",
            "--root",
            str(folder / "storage"),
            "--runroot",
            str(folder / "run"),
            "--storage-driver",
            "vfs",
        ]

    def command(self, verb: str, *words: object) -> list[str]:
        isolation = ["--isolation", "chroot", "--network", "host"] if verb in ("run", "bud") else []
        return [*self.words, verb, *isolation, *map(str, words)]

    def __call__(self, verb: str, *words: object) -> str:
        return run(*self.command(verb, *words))


def run(*words: object) -> str:
    ran = subprocess.run(
        [str(word) for word in words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=MOST_SECONDS
    )
    if ran.returncode and re.search(
        r"No matching distribution|connection broken|Failed getting release", ran.stdout + ran.stderr
    ):
        skip_or_fail("registry of packages")
    assert ran.returncode == 0, f"$ {shlex.join(map(str, words))}\n{ran.stdout}{ran.stderr}"
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def buildah(tmp_path_factory) -> Buildah:
    """With the image `base`: images of hubs are not needed, for Debian's packages make one."""
    if os.geteuid() or not (shutil.which("buildah") and shutil.which("debootstrap")):
        skip_or_fail("buildah and debootstrap, as root (apt-get install buildah debootstrap)")
    folder = tmp_path_factory.mktemp("images")
    run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "stable", folder / "debian")
    shutil.copy(CERTIFICATES, folder / "debian" / CERTIFICATES.relative_to("/"))
    (folder / "debian/usr/bin/python").symlink_to("python3")
    buildah = Buildah(folder)
    base = buildah("from", "scratch")
    buildah("add", "--quiet", base, folder / "debian", "/")
    buildah("config", "--env", f"PATH={ADMIN_PATH}", "--env", f"PIP_CERT={CERTIFICATES}", base)
    buildah("commit", "--quiet", base, "localhost/base")
    return buildah


@pytest.fixture(scope="module")
def image(buildah: Buildah) -> dict[str, Any]:
    """The configuration of the image `localhost/mats`."""
    buildah("bud", "--quiet", "--build-arg", "BASE=localhost/base", "--tag", "localhost/mats", ROOT)
    config: dict[str, Any] = json.loads(buildah("inspect", "--type", "image", "localhost/mats"))["OCIv1"]["config"]
    return config


@pytest.fixture
def service(buildah: Buildah, image: dict[str, Any]) -> Iterator[tuple[str, int, str, str]]:
    """Address and process id of the image's own command over the sample, its container, and a token."""
    container = buildah("from", "localhost/mats")
    token = buildah("run", container, "--", *image["Entrypoint"], "token", "add", "agent", "--scope", "report")
    command = shlex.join([*image["Entrypoint"], *image["Cmd"], "--port", "0", "--sample"])
    words = buildah.command("run", container, "sh", "-c", f"echo $$; exec {command}")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stderr
    pid = int(process.stdout.readline())
    try:
        line = process.stdout.readline()
        assert "ready on http" in line, line + process.stderr.read()
        yield line.split("ready on ")[1].split(" ")[0].replace("0.0.0.0", "127.0.0.1"), pid, container, token
        os.kill(pid, getattr(signal, image["StopSignal"]))
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


@built
def test_user_is_not_root_and_owns_the_volume_alone(buildah: Buildah, image: dict[str, Any]):
    assert [int(one) >= 10_000 for one in image["User"].split(":")] == [True, True]
    (volume,) = image["Volumes"]
    variables = dict(each.split("=", 1) for each in image["Env"])
    assert all(Path(variables[name]).is_relative_to(volume) for name in ("HOME", "MATS_HOME", "MATS_CACHE"))
    assert not any("TOKEN" in name for name in variables)
    container = buildah("from", "localhost/mats")
    assert buildah("run", container, "stat", "-c", "%u:%g %a", volume) == f"{image['User']} 700"
    assert buildah("run", container, "find", "/opt/mats", "-user", image["User"].partition(":")[0]) == ""


@built
def test_container_answers_with_a_token_and_stops_at_its_signal(buildah: Buildah, service: tuple[str, int, str, str]):
    url, _, container, token = service
    check = re.search(r"HEALTHCHECK.*?CMD (\[.*?\])\n", (ROOT / "Dockerfile").read_text(), re.DOTALL)
    assert check
    buildah("run", container, "--", *(word.replace("http://127.0.0.1:8080", url) for word in json.loads(check[1])))
    asked = urllib.request.Request(f"{url}/discover", b'{"query": "refund a card payment"}')
    asked.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(asked, timeout=20) as reply:
        answer = json.load(reply)
    assert (answer["degraded"], answer["without"]) == ([], ["llm"])
    assert answer["results"][0]["name"] == "create_refund"
