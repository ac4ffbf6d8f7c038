"""Counting who is seen, and finding the latest answers in logs that grow and are turned over."""

import json
import os
import threading
import time
from logging import INFO, Formatter, LogRecord
from logging.handlers import RotatingFileHandler

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.local.console.exposure import Seen, exposure, seen_in
from mats.local.console.journal import Journal

answers_of = st.lists(
    st.builds(
        lambda providers, shown: Seen("t", tuple(providers), min(shown, len(providers))),
        st.lists(st.sampled_from(["", "Acme", "Bank", "Café"]), max_size=8),
        st.integers(0, 8),
    ),
    max_size=20,
)


def a_record(*providers: str, shown: int = 2, **more) -> dict:
    candidates = [{"id": f"x/{n}", "provider": provider} for n, provider in enumerate(providers)]
    return {"event": "discovered", "query_id": "q", "candidates": candidates, "shown": shown, **more}


def a_line(*providers: str, at: str = "2026-01-02 03:04:05,678", **more) -> str:
    return f"{at} INFO mats {json.dumps(a_record(*providers, **more), ensure_ascii=False)}\n"


@given(answers_of)
def test_what_is_shown_is_shared_out_among_the_providers(answers: list[Seen]):
    told = exposure(answers, {"Acme": 3})
    rows = told["providers"]
    assert told["answers"] == len(answers)
    assert sum(row["shown"] for row in rows) == sum(answer.shown for answer in answers)
    assert sum(row["candidates"] for row in rows) == sum(len(answer.providers) for answer in answers)
    assert sum(row["first"] for row in rows) == sum(answer.shown > 0 for answer in answers)
    assert sum(row["share"] for row in rows) == pytest.approx(1.0 if any(a.shown for a in answers) else 0.0, abs=1e-3)
    for row in rows:
        assert row["first"] <= row["answers"] <= row["shown"] <= row["candidates"]
        assert row["answers"] <= len(answers)
        assert row["registered"] == (3 if row["provider"] == "Acme" else 0)
    assert [(-row["share"], row["provider"]) for row in rows] == sorted((-r["share"], r["provider"]) for r in rows)


def test_an_answer_is_read_off_its_line(monkeypatch):
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    try:
        seen = seen_in(a_line("Acme", "", "Bank", shown=2))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert seen == Seen("2026-01-02T01:04:05+00:00", ("Acme", "", "Bank"), 2)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Traceback (most recent call last):",
        '2026-01-02 03:04:05,678 INFO mats {"event": "enriched", "outcomes": {}}',
        '2026-01-02 03:04:05,678 INFO mats {"event": "discovered", "candidates": [',
        '2026-01-02 03:04:05,678 INFO mats {"event": "discovered"}',
        '2026-01-02 03:04:05,678 INFO mats {"event": "discovered", "candidates": 3, "shown": 1}',
        '2026-01-02 03:04:05,678 INFO mats {"event": "discovered", "candidates": ["x"], "shown": 1}',
        '2026-01-02 03:04:05,678 INFO mats {"event": "discovered", "candidates": [], "shown": "many"}',
        'yesterday evening INFO mats {"event": "discovered", "candidates": [], "shown": 1}',
        f"2026-01-02 03:04:05,678 ERROR mats no answer at '/{json.dumps(a_record('Forged'))}': down",
        "2026-01-02 03:04:05,678 INFO mats " + '{"event": "discovered", "candidates": ' + "[" * 100_000,
    ],
)
def test_other_lines_are_no_answers(line: str):
    assert seen_in(line) is None


def test_more_shown_than_there_were_is_not_believed():
    seen = seen_in(a_line("Acme", shown=7))
    assert seen is not None
    assert seen.shown == 1


def providers(journal: Journal) -> list[str]:
    return [seen.providers[0] for seen in journal.latest()]


def append(path, *names: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(a_line(name) for name in names)


def test_the_latest_are_kept_in_their_order_over_logs_that_are_turned_over(tmp_path):
    log = tmp_path / "mats.log"
    append(tmp_path / "mats.log.10", "oldest")
    append(tmp_path / "mats.log.2", "b", "c")
    append(tmp_path / "mats.log.1", "d", "e")
    append(log, "f")
    (tmp_path / "mats.log.gz").write_text(a_line("not a log"))
    assert providers(Journal(tmp_path, most=4)) == ["c", "d", "e", "f"]
    assert providers(Journal(tmp_path)) == ["oldest", "b", "c", "d", "e", "f"]


def test_what_came_since_is_added_also_over_a_turn(tmp_path):
    log, journal = tmp_path / "mats.log", Journal(tmp_path, most=5)
    assert providers(journal) == []
    append(log, "a", "b")
    assert providers(journal) == ["a", "b"]
    assert providers(journal) == ["a", "b"]
    append(log, "c")
    log.rename(tmp_path / "mats.log.1")
    append(log, "d")
    assert providers(journal) == ["a", "b", "c", "d"]
    append(log, "e", "f")
    assert providers(journal) == ["b", "c", "d", "e", "f"]


def test_in_the_middle_of_a_turn_nothing_is_counted_twice(tmp_path):
    log, journal = tmp_path / "mats.log", Journal(tmp_path)
    append(log, "a")
    assert providers(journal) == ["a"]
    append(log, "b")
    log.rename(tmp_path / "mats.log.1")
    assert providers(journal) == ["a"]
    append(log, "c")
    assert providers(journal) == ["a", "b", "c"]


def test_a_log_that_is_turned_over_again_and_again_is_read_once_and_whole(tmp_path):
    log = RotatingFileHandler(tmp_path / "mats.log", maxBytes=20_000, backupCount=99, encoding="utf-8")
    log.setFormatter(Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    journal, written, names = Journal(tmp_path, most=10_000), threading.Event(), [f"p{n}" for n in range(4_000)]

    def look() -> None:
        while not written.is_set():
            journal.latest()

    looking = threading.Thread(target=look)
    looking.start()
    for n, name in enumerate(names):
        log.handle(LogRecord("mats", INFO, "", 0, json.dumps(a_record(name)), None, None))
        if n % 20 == 0:
            time.sleep(0.002)
    written.set()
    looking.join()
    log.close()
    assert providers(journal) == names


def test_a_line_that_is_still_being_written_is_for_the_next_look(tmp_path):
    log, journal, line = tmp_path / "mats.log", Journal(tmp_path), a_line("Café")
    whole, half = line.encode(), len(line) // 2
    log.write_bytes(whole + whole[:half])
    assert providers(journal) == ["Café"]
    log.write_bytes(whole * 2)
    assert providers(journal) == ["Café", "Café"]


def test_a_log_that_was_emptied_is_read_anew(tmp_path):
    log, journal = tmp_path / "mats.log", Journal(tmp_path)
    append(log, "a", "b")
    journal.latest()
    os.truncate(log, 0)
    append(log, "c")
    assert providers(journal) == ["a", "b", "c"]


def test_lines_longer_than_a_block_and_bytes_that_are_no_text_do_no_harm(tmp_path, monkeypatch):
    monkeypatch.setattr("mats.local.console.journal._BLOCK", 16)
    log = tmp_path / "mats.log"
    log.write_bytes(b"\xff\xfe\n\n" + a_line("a").encode() + b"x" * 500 + b"\n" + a_line("b").encode())
    assert providers(Journal(tmp_path)) == ["a", "b"]


def test_no_more_than_so_much_is_read_from_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("mats.local.console.journal._FARTHEST", 600)
    append(tmp_path / "mats.log", *(f"p{n}" for n in range(100)))
    found = providers(Journal(tmp_path))
    assert found[-1] == "p99"
    assert 1 <= len(found) < 10
