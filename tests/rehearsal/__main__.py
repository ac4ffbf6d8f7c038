"""Bootstrap, deploy, update, destroy and deploy again with the commands of the Makefile, on an emulator of AWS."""

import argparse
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import urlopen

import boto3

ROOT = Path(__file__).parents[2]
EMULATOR = ROOT / ".venv" / ".rehearsal" / "bin" / "python"
REGION = "us-east-1"
CHANGED = "alarm_to=ops@example.com log_retention_days=30 throttle_rate=50"
"""Of the update: new resources, and properties that change in place."""
STAND_INS = (
    "tables are moto's",
    "a domain has no nodes",
    "functions, their event sources and the state machine are stored and never run: nothing is found, repaired or sent",
    "versions are ready at once, and no alarm turns a rollout back",
    "no update fails, so nothing is rolled back",
    "IAM denies nothing, and takes a policy of more than 6,144 characters",
    "alarms, budgets of time and quotas of the account do nothing",
    f"one region, {REGION}, and of this context only what it makes: the others are synthesized by tests/infra",
)
_START_S = 120


class Failed(Exception):
    """A step did not end as it should; the message says which and how."""


@contextmanager
def emulator(folder: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """A running one: the environment that leads to it, and its log."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    log = folder / "emulator.log"
    own = {
        "GATEWAY_LISTEN": address, "LOCALSTACK_VOLUME_DIR": str(folder / "volume"), "TMPDIR": str(folder),
        "DISABLE_EVENTS": "1", "SKIP_SSL_CERT_DOWNLOAD": "1", "DNS_ADDRESS": "0",
    }  # fmt: skip
    with log.open("w") as lines:
        process = subprocess.Popen(
            [EMULATOR, Path(__file__).with_name("emulator.py")], env={**_machine(), **own}, stdout=lines, stderr=lines
        )
    url = f"http://{address}"
    try:
        _wait(f"{url}/_localstack/health", process, log)
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": REGION}
        ends = dict.fromkeys(("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"), url)
        yield {**_machine(), **keys, "AWS_DEFAULT_REGION": REGION, **ends}, log
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def _machine() -> dict[str, str]:
    """This machine's environment without anybody's account."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}


def _wait(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(_START_S):
        if process.poll() is not None:
            break
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):
            time.sleep(1)
    raise Failed(f"the emulator does not start:\n{log.read_text()[-2000:]}")


class Rehearsal:
    """The steps, each of which prints a line."""

    def __init__(self, environment: Mapping[str, str], context: str, folder: Path) -> None:
        self._environment, self._context, self._folder = environment, context, folder
        url = environment["AWS_ENDPOINT_URL"]
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": REGION}
        self._formation = boto3.client("cloudformation", endpoint_url=url, **keys)

    def run(self) -> None:
        """Every step, in order.

        Raises:
            Failed: at the first that does not end as it should.
        """
        self._make("bootstrap", "bootstrap")
        self._make("deploy", "deploy")
        first = self._resources("CREATE_COMPLETE")
        self._make("update", "deploy", more=CHANGED)
        self._resources("UPDATE_COMPLETE")
        self._make("destroy", "destroy", more=CHANGED)
        if {*self._stacks()} != {"CDKToolkit", "mats-data"}:
            raise Failed(f"after destroy there are {self._stacks()}: only the tables should stay")
        self._make("deploy again", "deploy")
        if self._resources("CREATE_COMPLETE") != first:
            raise Failed("the second deployment has other resources than the first")

    def _make(self, step: str, target: str, *, more: str = "") -> None:
        log, start = self._folder / f"{step.replace(' ', '-')}.log", time.monotonic()
        context = " ".join(filter(None, (self._context, more)))
        with log.open("w") as lines:
            done = subprocess.run(
                ["make", "--no-print-directory", target, "YES=1", f"CONTEXT={context}"],
                cwd=ROOT, env=self._environment, stdin=subprocess.DEVNULL, stdout=lines, stderr=lines, check=False,
            )  # fmt: skip
        if done.returncode:
            raise Failed(f"{step}: exit {done.returncode}\n{log.read_text()[-3000:]}")
        say(f"{step}: {time.monotonic() - start:.0f} s; {self._stacks()}")

    def _stacks(self) -> dict[str, str]:
        return {each["StackName"]: each["StackStatus"] for each in self._formation.describe_stacks()["Stacks"]}

    def _resources(self, status: str) -> list[tuple[str, str]]:
        """Those of the system, all of which must be complete."""
        if self._stacks().get("mats") != status:
            raise Failed(f"the stack mats is {self._stacks().get('mats')}, not {status}")
        (id,) = (each["StackId"] for each in self._formation.describe_stacks()["Stacks"] if each["StackName"] == "mats")
        pages = self._formation.get_paginator("list_stack_resources").paginate(StackName=id)  # not a deleted one
        found = [each for page in pages for each in page["StackResourceSummaries"]]
        if bad := [each["LogicalResourceId"] for each in found if not each["ResourceStatus"].endswith("_COMPLETE")]:
            raise Failed(f"not complete: {', '.join(bad)}")
        say(f"  {len(found)} resources")
        return sorted((each["LogicalResourceId"], each["ResourceType"]) for each in found)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Rehearse a deployment; exits with 1 if a step failed."""
    parser = argparse.ArgumentParser(prog="make rehearse", description=main.__doc__)
    parser.add_argument("--context", default="", help="options of the stacks, as in CONTEXT")
    given = parser.parse_args()
    with TemporaryDirectory(prefix="mats-rehearsal-") as folder, emulator(Path(folder)) as (environment, log):
        try:
            Rehearsal(environment, given.context, Path(folder)).run()
        except Failed as fault:
            sys.exit(f"{fault}\nThe emulator said: {log.read_text()[-3000:]}")
        unknown = sorted(set(re.findall(r'No resource provider found for "([^"]+)"', log.read_text())))
        say(f"Not played: {'; '.join(STAND_INS)}; of no effect are {', '.join(unknown) or 'no resources'}.")


if __name__ == "__main__":
    main()
