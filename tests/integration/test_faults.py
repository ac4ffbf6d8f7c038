"""Kills, full disks, damaged files, taken ports: nothing acknowledged is lost."""

import gzip
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mats.local.cli import doctor
from mats.settings import Settings
from tests.conftest import ROOT, skip_or_fail
from tests.integration.conftest import Mats, serving, wait_until

ROWS = 2_000
PAGE = 4_096


def registrations(count: int) -> bytes:
    items = (
        {"namespace": "org.many", "name": f"tool-{n}", "kind": "tool", "description": f"word{n} shared"}
        for n in range(count)
    )
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


def registered(home) -> int:
    file = home / "mats.db"
    if not file.exists():
        return 0
    connection = sqlite3.connect(file, timeout=10)
    try:
        return connection.execute("SELECT count(*) FROM registry").fetchone()[0]
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


@pytest.mark.parametrize("when", ["registering", "indexing"])
def test_a_killed_import_loses_nothing_acknowledged_and_running_it_again_completes_it(mats: Mats, tmp_path, when: str):
    file = tmp_path / "many.jsonl"
    file.write_bytes(registrations(ROWS))
    process = mats.start("import", str(file))
    reached = 256 if when == "registering" else ROWS
    wait_until(lambda: registered(mats.home) >= reached)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    acknowledged = registered(mats.home)
    assert acknowledged >= reached
    if when == "indexing":  # a command processes its own change only
        mats("trust", "org.many/tool-1", "50").done()
        assert mats("show", "org.many/tool-1", "--json").json["profile"]["trust"] == 50
    again = mats("import", str(file), "--json").done()
    report = again.json
    assert report["unchanged"] >= acknowledged
    assert report["new"] + report["unchanged"] == ROWS
    stats = mats("stats", "--json").json
    assert stats["registered"] == stats["progress"]["indexed"] == ROWS
    assert stats["changes"] == {"waiting": 0, "dead": 0}
    for n in (0, 255, 256, ROWS - 1):
        assert mats("search", f"word{n}", "--json", "--limit", "1").json["results"][0]["name"] == f"tool-{n}"


def test_a_second_import_beside_the_first_ends_well(mats: Mats, tmp_path):
    file = tmp_path / "many.jsonl"
    file.write_bytes(registrations(600))
    both = [mats.start("import", str(file), "--json") for _ in range(2)]
    for process in both:
        _, err = process.communicate()
        assert process.returncode == 0, err.decode()
    wait_until(lambda: mats("stats", "--json").json["changes"]["waiting"] == 0)
    assert mats("stats", "--json").json["progress"]["indexed"] == 600


def limited(bytes_: int):
    """Files of the child can grow to so many bytes: what a full disk looks like to it."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_))

    return limit


def test_a_full_disk_is_one_clear_line_and_loses_nothing(mats: Mats, tmp_path):
    file = tmp_path / "many.jsonl"
    file.write_bytes(registrations(1_200))
    process = mats.start("import", str(file), preexec_fn=limited(700_000))
    _, err = process.communicate()
    assert process.returncode == 3
    assert b"free some space" in err
    assert b"Traceback" not in err
    acknowledged = registered(mats.home)
    assert acknowledged > 0
    again = mats("import", str(file), "--json").done()
    assert again.json["unchanged"] >= acknowledged
    assert mats("stats", "--json").json["progress"]["indexed"] == 1_200


def test_a_full_disk_does_not_stop_the_service_from_answering(mats: Mats):
    assert mats("import", "-", stdin=registrations(300)).code == 0
    size = (mats.home / "mats.db").stat().st_size
    with serving(mats, preexec_fn=limited(size // 2)) as service:
        assert mats("trust", "org.many/tool-1", "50").code == 0
        assert mats("search", "word7", "--json").code == 0
        status, answer = service.request("/discover", {"query": "word7"})
        assert (status, answer["results"][0]["name"]) == (200, "tool-7")


@pytest.mark.parametrize("damage", ["not a database at all", "\0" * 8_192])
def test_damaged_file_is_one_clear_line_and_is_not_changed(mats: Mats, damage: str):
    mats.home.mkdir()
    (mats.home / "mats.db").write_text(damage)
    for command in (["stats"], ["search", "x"], ["serve", "--port", "0"]):
        mats(*command).fails(3, "restore a copy")
    assert (mats.home / "mats.db").read_text() == damage


def test_file_damaged_in_the_middle_is_reported(mats: Mats):
    mats("import", "-", stdin=registrations(500))
    path = mats.home / "mats.db"
    content = bytearray(path.read_bytes())
    content[8_192 : len(content) // 2] = os.urandom(len(content) // 2 - 8_192)
    path.write_bytes(content)
    mats("search", "word7").fails(3, "damaged")


@pytest.mark.parametrize("seed", range(3))
def test_doctor_names_ten_damaged_pages_wherever_they_are(mats: Mats, seed: int):
    mats("import", "-", stdin=registrations(300))
    path, chance = mats.home / "mats.db", random.Random(seed)
    sound = path.read_bytes()
    pages = len(sound) // PAGE
    for tenth in range(10):
        content = bytearray(sound)
        for page in chance.sample(range(tenth * pages // 10, (tenth + 1) * pages // 10), 10):
            content[page * PAGE : (page + 1) * PAGE] = chance.randbytes(PAGE)
        path.write_bytes(content)
        faults = [row for row in doctor._registry(Settings(home=mats.home)) if row.state == "fault"]
        assert ["is damaged" in row.text for row in faults] == [True], tenth


def test_read_only_registry_is_reported(mats: Mats, tmp_path):
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        skip_or_fail("setpriv, and root writes everywhere")
    mats("add", "--namespace", "a", "--name", "b", "--kind", "tool")
    for path in (*mats.home.iterdir(), mats.home):
        path.chmod(stat.S_IREAD | stat.S_IEXEC | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    for parent in (tmp_path, *tmp_path.parents):  # pytest's own folders, up to its base
        if parent == Path(tempfile.gettempdir()):
            break
        parent.chmod(0o755)
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    ran = subprocess.run(
        [*drop, sys.executable, "-m", "mats.local.cli", "add", "--namespace", "a", "--name", "c", "--kind", "tool"],
        env={**mats.environment, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    mats.home.chmod(0o755)
    if "Permission denied" in ran.stderr and "mats" not in ran.stderr:
        skip_or_fail("interpreter that an unprivileged user may run")
    assert ran.returncode == 3, ran.stderr
    assert "read-only" in ran.stderr or "cannot be opened" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_home_that_is_a_file_is_reported(mats: Mats):
    mats.home.write_text("")
    ran = mats("stats")
    assert ran.code in (2, 3)


def test_two_services_on_one_port_are_one_service_and_one_clear_line(mats: Mats):
    with serving(mats) as service:
        ran = mats("serve", "--port", service.url.rpartition(":")[2]).fails(3, "--port")
        assert ran.err.strip().count("\n") == 0
        assert service.request("/healthz")[0] == 200


def test_a_damaged_archive_is_reported_and_the_other_files_are_taken(mats: Mats, tmp_path):
    good, bad, missing = tmp_path / "good.jsonl", tmp_path / "bad.jsonl.gz", tmp_path / "missing.jsonl"
    good.write_bytes(registrations(5))
    packed = gzip.compress(registrations(2_000))
    bad.write_bytes(packed[:200] + b"\0\0\0\0" + packed[204:])
    ran = mats("import", str(bad), str(missing), str(good), "--json")
    assert ran.code == 1
    assert {row["file"] for row in ran.json["rejected"]} >= {str(bad), str(missing)}
    assert mats("search", "word4", "--json").json["results"][0]["name"] == "tool-4"


def test_service_reports_a_damaged_file_and_continues(mats: Mats):
    assert mats("import", "-", stdin=registrations(300)).code == 0
    with serving(mats) as service:
        for file in (mats.home / "mats.db", mats.home / "mats.db-wal"):
            with file.open("r+b") as damaged:  # in place: what is shared with the process keeps its size
                damaged.write(b"no database" * (file.stat().st_size // 11))
        status, problem = service.request("/discover", {"query": "word7"})
        assert status == 503
        assert "damaged" in problem["detail"] or "disk" in problem["detail"]
        assert service.request("/healthz")[0] == 503
        assert service.request("/openapi.json")[0] == 200


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of another process")
def test_a_full_disk_shows_in_the_state_and_in_answers_until_there_is_space(mats: Mats):
    assert mats("import", "-", stdin=registrations(30)).code == 0
    with serving(mats) as service:
        item = json.loads(registrations(1))
        path = f"/registry/capabilities/{item['namespace']}/{item['name']}"
        unlimited = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        status, problem = service.request(path, {**item, "description": "Another one."}, method="PUT")
        assert (status, "the disk is full" in problem["detail"]) == (503, True)
        for _ in range(2):
            assert service.request("/discover", {"query": "word7"})[1]["degraded"] == ["receipt"]
        status, problem = service.request("/healthz")
        assert (status, "the disk is full" in problem["detail"]) == (503, True)
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, unlimited)
        wait_until(lambda: service.request("/healthz")[0] == 200)
        assert service.request(path, {**item, "description": "Another one."}, method="PUT")[0] == 200
        assert service.request("/discover", {"query": "word7"})[1]["degraded"] == []
