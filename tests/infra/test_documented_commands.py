"""The commands of README and docs/aws.md for a first deployment, run in a fresh clone.

Without an account a command has to come to the point where it needs one.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from botocore import xform_name
from botocore.exceptions import UnknownServiceError
from botocore.session import Session

from infra.vendor import ROOT
from tests.infra.fresh_clone import Clone
from tests.infra.synth import templates

pytestmark = [pytest.mark.server, pytest.mark.slow]

SECTIONS = {
    "README.md": ["In an AWS account"],
    "docs/aws.md": ["Deploy", "Check the account"],
}
NEEDS_AN_ACCOUNT = (
    "Unable to resolve AWS account to use",
    "terminal (TTY) is not attached so we are unable to get a confirmation",
    "AWS: Unable to locate credentials",
    "CloudFormation: Unable to locate credentials",
)
"""The messages of commands that need an account, or a person to confirm."""
TYPED = re.compile(r"(make|npx|pip|python3?|\.venv/bin/python) ")
NOT_IN_BOTOCORE = {"s3", "sso"}  # Commands of the AWS CLI's own
GLOBAL = {"--query", "--output", "--region", "--profile"}


def section(page: str, heading: str) -> str:
    """The text below a heading, up to the next one that is not below it."""
    text = (ROOT / page).read_text("utf-8")
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert found, f"{page} has no section {heading!r}"
    below = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", below, re.MULTILINE)
    return below[: end.start()] if end else below


def code(text: str) -> Iterator[str]:
    """Lines of code blocks, whole, and code between backticks, without prompts, comments and line breaks."""
    block = re.compile(r"^```\w*\n(.*?)^```$|((?:^    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)
    for fenced, indented in block.findall(text):
        for line in re.sub(r"\\\n", " ", fenced or indented).splitlines():
            yield re.sub(r"\s+#.*", "", line).strip().removeprefix("$ ")
    for paragraph in block.sub("\n", text).split("\n\n"):
        for span in re.findall(r"`([^`]+)`", paragraph):
            yield re.sub(r"\s+", " ", span)


def commands() -> list[str]:
    """Each command of the sections once, in the order of the pages, but tests and rehearsals."""
    lines = (
        line for page, headings in SECTIONS.items() for heading in headings for line in code(section(page, heading))
    )
    return list(
        dict.fromkeys(
            line for line in lines if TYPED.match(line) and not line.startswith(("make test", "make rehearse"))
        )
    )


class Typist:
    """Types commands in a fresh clone: those of make there, the others in an activated environment."""

    def __init__(self, folder: Path) -> None:
        self.clone = Clone.make(folder)
        self.clone.environment(
            ".venv", *(f"requirements/{n}.txt" for n in ("lock", "assets", "model")), "requirements.txt"
        )
        self.other = self.clone.environment("another", "requirements.txt")

    def complaint(self, command: str) -> str:
        """Why a command does not come as far as it can; empty if it does."""
        activated = None if command.startswith(("make", ".venv")) else self.other
        ran = self.clone.run(command, activated=activated)
        fine = ran.returncode == 0 or any(said in ran.stdout for said in NEEDS_AN_ACCOUNT)
        return "" if fine else f"$ {command}\n{ran.stdout[-2000:]}"


@pytest.fixture(scope="module")
def typist() -> Iterator[Typist]:
    templates()  # skips where the CDK or Node is missing
    (ROOT / "build").mkdir(exist_ok=True)
    with TemporaryDirectory(dir=ROOT / "build") as folder:  # on the file system of what it links
        yield Typist(Path(folder, "clone"))


def test_every_command_of_a_first_deployment_works_in_a_fresh_clone(typist: Typist):
    wrong = [complaint for command in commands() if (complaint := typist.complaint(command))]
    assert not wrong, "\n\n".join(wrong)


def test_every_call_of_the_aws_cli_exists():
    session = Session()
    lines = (line for page in (ROOT / "docs").glob("*.md") for line in code(page.read_text("utf-8")))
    typed = [found[0] for line in lines if (found := re.search(r"\baws [a-z0-9-]+ [a-z-]+.*", line))]
    assert len(typed) > 5
    for line in typed:
        words = re.split(r" [|;] |\)\"|; ", line)[0].split()
        if words[1] in NOT_IN_BOTOCORE:
            continue
        try:
            model = session.get_service_model(words[1])
        except UnknownServiceError:
            pytest.fail(f"there is no service of {line}")
        operations = {xform_name(name, "-"): model.operation_model(name) for name in model.operation_names}
        operation = operations.get(words[2])
        assert operation, f"there is no operation of {line}"
        options = {f"--{xform_name(name, '-')}" for name in operation.input_shape.members} | GLOBAL
        assert {word for word in words if word.startswith("--")} <= options, line
