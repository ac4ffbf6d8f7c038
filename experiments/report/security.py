"""Render the tables of docs/security.md from the results of the attacks."""

from collections.abc import Mapping

from experiments.report.results import read_results
from mats.evaluation.results import RESULTS, Json

_RESULTS = RESULTS / "bench-attacks.json"
_SETS = ("sample", "tools")
_HEAD = "first, unrated / trusted | places | lost @1 / @15 | flagged"
_NONE, _RATED = "none", "targets rated"


def security_tables() -> str:
    """The tables of the results file; a sentence if there is none."""
    if not _RESULTS.exists():
        return "Not measured yet."
    return render_attacks(read_results(_RESULTS))


def render_attacks(results: Json) -> str:
    """The attacks, the flags on the honest, and what else was measured: attacks on one request, and false reports."""
    parts = [_attacks(results), _flags(results["honest"])]
    if "takeovers" in results:
        parts.append(_takeovers(results["takeovers"]))
    if all("false_reports" in results[name] for name in _SETS):
        parts.append(_false_reports(results))
    return "\n\n".join(parts)


def _takeovers(by_set: Mapping[str, list[Json]]) -> str:
    heads = (f"{name}: gone | places | first | honest flagged" for name in by_set)
    lines = [
        f"| attack on one request | beside | {' | '.join(heads)} |",
        "|---|---|" + "---:|---:|---:|---:|" * len(by_set),
    ]
    for rows in zip(*by_set.values(), strict=True):
        cells = (
            f"{row['gone']} of {row['found']} | {row['places']:.1f} | {_share(row)} | {row['honest_flagged']}"
            for row in rows
        )
        lines.append(f"| {rows[0]['attack']} | {rows[0]['beside']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _false_reports(results: Json) -> str:
    """The worst over the kinds of trust that were assigned."""
    head = "places moved for others / for itself | answers with a move of more than a place | first"
    lines = [
        f"| false reports, of one caller unless said | {' | '.join(f'{name}: {head}' for name in _SETS)} |",
        "|---|" + "---:|---:|---:|" * len(_SETS),
    ]
    rows: dict[tuple[str, str], dict[str, list[Json]]] = {}
    for name in _SETS:
        for by_crowd in results[name]["false_reports"].values():
            for crowd, found in by_crowd.items():
                for row in found:
                    rows.setdefault((row["attack"], crowd), {}).setdefault(name, []).append(row)
    for (attack, crowd), by_set in rows.items():
        cells = (_worst(by_set[name]) for name in _SETS)
        lines.append(f"| {attack}; {crowd} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _worst(rows: list[Json]) -> str:
    moved, own, answers = (max(row[name] for row in rows) for name in ("moved", "own_moved", "moved_answers"))
    first = max((row["first"] for row in rows if "first" in row), default="–")  # results of before lack it
    return f"{moved} / {own} | {answers} of {rows[0]['answers']} | {first}"


def _attacks(results: Json) -> str:
    lines = [
        f"| attack | knows | {' | '.join(f'{name}: {_HEAD}' for name in _SETS)} |",
        "|---|---|" + "---:|---:|---:|---:|" * len(_SETS),
    ]
    rows = {name: _rows(results[name]["attacks"]) for name in _SETS}
    every = [each for by_trust in rows.values() for each in by_trust.values()]
    attacks = {attack: row["knows"] for each in every for attack, row in each.items()}
    for attack, knows in attacks.items():
        cells = (_cells(rows[name][_NONE].get(attack), rows[name][_RATED].get(attack)) for name in _SETS)
        lines.append(f"| {attack} | {knows} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _rows(by_trust: Json) -> dict[str, dict[str, Json]]:
    """The rows of each trust by attack."""
    return {trust: {row["attack"]: row for row in one["attacks"]} for trust, one in by_trust.items()}


def _cells(unrated: Json | None, trusted: Json | None) -> str:
    """The cells of one registry; the measures after the first are those without trust, where there are any."""
    if (measured := unrated or trusted) is None:
        return "– | – | – | –"
    first = " / ".join(_share(row["all"]) if row else "–" for row in (unrated, trusted))
    row = measured["all"]
    return f"{first} | {row['places']:.1f} | {row['lost@1']} / {row['lost@15']} | {row['flagged']}"


def _share(row: Json) -> str:
    return f"{row['rank1']} of {row['queries']}"


def _flags(honest: Json) -> str:
    total = honest["all"]
    return (
        f"Of {total['registrations']:,} honest registrations {total['ever']:,} ({100 * total['share']:.2f} %) are "
        "flagged, at registration or in the answers to their set's queries."
    )
