"""The tables of the attacks, from results made up here."""

from typing import Any

from experiments.report.security import attack_tables


def a_row(attack: str, first: int, **measures: Any) -> dict[str, Any]:
    group = {"queries": 50, "rank1": first, "places": 1.25, "lost@1": 3, "lost@15": 0, "flagged": 2, **measures}
    return {"attack": attack, "knows": "queries", "all": group}


def results() -> dict[str, Any]:
    counts = {"attack": "fail", "answers": 50, "own_moved": 9}
    reports = {
        str(n): {"a crowd reports": [{**counts, "moved": n, "moved_answers": n + 1, "first": n}]} for n in (1, 3)
    }

    def by_trust(*both: dict[str, Any], rated: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
        attacks = {"targets rated": {"attacks": (*both, *rated)}, "none": {"attacks": both}}
        return {"attacks": attacks, "false_reports": reports}

    taken = {"beside": "rated", "found": 44, "gone": 2, "honest_flagged": 0, **a_row("", 33)["all"]}
    return {
        "sample": by_trust(a_row("paste", 16), rated=(a_row("claim", 5),)),
        "tools": by_trust(a_row("paste", 9, places=11.84)),
        "honest": {"all": {"registrations": 19_000, "ever": 95, "share": 0.005}},
        "takeovers": {"agents": [{**taken, "attack": "20 rewordings"}]},
    }


def lines() -> list[str]:
    return attack_tables(results()).splitlines()


def test_an_attack_has_a_row_with_the_cells_of_both_registries():
    paste = "| paste | queries | 16 of 50 / 16 of 50 | 1.2 | 3 / 0 | 2 | 9 of 50 / 9 of 50 | 11.8 | 3 / 0 | 2 |"
    assert paste in lines()
    assert all(line.count("|") == paste.count("|") for line in lines()[:4])


def test_an_attack_that_needs_trust_has_no_cell_without_it():
    assert "| claim | queries | – / 5 of 50 | 1.2 | 3 / 0 | 2 | – | – | – | – |" in lines()


def test_the_flags_follow():
    assert any("Of 19,000 honest registrations 95 (0.50 %) are flagged" in line for line in lines())


def test_attacks_on_one_request_have_a_row_for_each_way():
    assert "| 20 rewordings | rated | 2 of 44 | 1.2 | 33 of 50 | 0 |" in lines()


def test_false_reports_show_the_worst_over_kinds_of_trust():
    assert "| fail; a crowd reports | 3 / 9 | 4 of 50 | 3 | 3 / 9 | 4 of 50 | 3 |" in lines()
