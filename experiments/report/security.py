"""Render the tables of experiments/results/attacks.md from the results of the attacks."""

from collections.abc import Collection, Iterable, Iterator

from mats.evaluation.results import Json

_SETS = ("sample", "tools")


def attack_tables(results: Json) -> str:
    """The attacks, the flags on the honest, the attacks on one request, and false reports."""
    honest, taken = results["honest"]["all"], results["takeovers"]
    head = "first, unrated / trusted | places | lost @1 / @15 | flagged"
    reports = "places moved for others / for itself | answers with a move of more than a place | first"
    source = results["provenance"]
    return "\n\n".join(
        (
            f"Measured at commit {source['commit']:.7} on {source['machine']['cores']} cores.",
            _table(("attack", "knows"), head, _SETS, _attacks(results)),
            f"Of {honest['registrations']:,} honest registrations {honest['ever']:,} ({100 * honest['share']:.2f} %) "
            "are flagged, at registration or in the answers to their set's queries.",
            _table(
                ("attack on one request", "beside"),
                "gone | places | first | honest flagged",
                taken,
                _takeovers(zip(*taken.values(), strict=True)),
            ),
            _table(("false reports, of one caller unless said",), reports, _SETS, _false_reports(results)),
        )
    )


def _table(labels: Collection[str], head: str, sets: Collection[str], rows: Iterable[Iterable[str]]) -> str:
    """A table with the columns of `head` for each set, after some with labels."""
    rule = "---|" * len(labels) + "---:|" * (1 + head.count("|")) * len(sets)
    titles = _row([*labels, *(f"{name}: {head}" for name in sets)])
    return "\n".join((titles, f"|{rule}", *map(_row, rows)))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _attacks(results: Json) -> Iterator[Iterable[str]]:
    trusts = [results[name]["attacks"][trust]["attacks"] for name in _SETS for trust in ("targets rated", "none")]
    knows = {row["attack"]: row["knows"] for rows in trusts for row in rows}
    measures = [{row["attack"]: row["all"] for row in rows} for rows in trusts]
    for attack, known in knows.items():
        of_sample = _cells(*(by_attack.get(attack) for by_attack in measures[:2]))
        yield attack, known, of_sample, _cells(*(by_attack.get(attack) for by_attack in measures[2:]))


def _cells(trusted: Json | None, unrated: Json | None) -> str:
    """The cells of one registry; the measures after the first are those without trust, where there are any."""
    if (row := unrated or trusted) is None:
        return "– | – | – | –"
    first = " / ".join(_share(row) if row else "–" for row in (unrated, trusted))
    return f"{first} | {row['places']:.1f} | {row['lost@1']} / {row['lost@15']} | {row['flagged']}"


def _share(row: Json) -> str:
    return f"{row['rank1']} of {row['queries']}"


def _takeovers(attacks: Iterable[tuple[Json, ...]]) -> Iterator[Iterable[str]]:
    """From the results of each attack, one for each set."""
    for rows in attacks:
        cells = (
            f"{row['gone']} of {row['found']} | {row['places']:.1f} | {_share(row)} | {row['honest_flagged']}"
            for row in rows
        )
        yield rows[0]["attack"], rows[0]["beside"], *cells


def _false_reports(results: Json) -> Iterator[Iterable[str]]:
    """The worst over the kinds of trust that were assigned."""
    rows: dict[str, dict[str, list[Json]]] = {}
    for name in _SETS:
        for by_crowd in results[name]["false_reports"].values():
            for crowd, found in by_crowd.items():
                for row in found:
                    rows.setdefault(f"{row['attack']}; {crowd}", {}).setdefault(name, []).append(row)
    for attack, by_set in rows.items():
        yield attack, *(_worst(by_set[name]) for name in _SETS)


def _worst(rows: list[Json]) -> str:
    moved, own, answers, first = (
        max(row[name] for row in rows) for name in ("moved", "own_moved", "moved_answers", "first")
    )
    return f"{moved} / {own} | {answers} of {rows[0]['answers']} | {first}"
