"""Findings of the report, one sentence for each experiment that has one; computed from its results."""

from collections.abc import Callable, Mapping

import numpy as np

from experiments.report.cells import number
from experiments.report.results import measured_only
from mats.evaluation.results import Json

_OURS, _PLAIN = "hybrid", "bm25"
"""The first stage as shipped, without an LLM, and what it is compared with."""


def _accuracy(results: Json) -> str:
    gains = {}
    for name, one in results["sets"].items():
        systems = measured_only(one["systems"])
        if {_OURS, _PLAIN} <= systems.keys():
            ours, plain = (100 * systems[each]["metrics"]["match@1"]["mean"] for each in (_OURS, _PLAIN))
            gains[name] = (ours - plain, ours)
    if not gains:
        return ""
    ahead = sum(gain > 0 for gain, _ in gains.values())
    low, high = min(gains.values())[0], max(gains.values())[0]
    worst = min(gains, key=lambda name: gains[name][1])
    return (
        f"Accuracy: without an LLM, `{_OURS}` (the first stage as shipped) puts a relevant capability first more often "
        f"than plain BM25 on {ahead} of {len(gains)} sets, by {low:+.1f} to {high:+.1f} points; hardest is `{worst}`, "
        f"with {gains[worst][1]:.1f} %."
    )


def _growth(results: Json) -> str:
    systems = measured_only(results["systems"])
    ends = {name: (systems[name][0], systems[name][-1]) for name in (_OURS, _PLAIN) if systems.get(name)}
    if _OURS not in ends:
        return ""
    fall = {
        name: " to ".join(f"{100 * point['match@1']['mean']:.1f}" for point in points) for name, points in ends.items()
    }
    first, last = ends[_OURS]
    plain = f", of plain BM25 from {fall[_PLAIN]} %" if _PLAIN in fall else ""
    return (
        f"Growth: from {number(first['size'])} to {number(last['size'])} capabilities, Match@1 of `{_OURS}` falls from "
        f"{fall[_OURS]} %{plain}."
    )


def _misses(results: Json) -> str:
    shares = {
        name: one["systems"][_OURS]["misses_at_retrieval"]
        for name, one in results["sets"].items()
        if _OURS in measured_only(one["systems"])
    }
    known = {name: share["mean"] if isinstance(share, Mapping) else share for name, share in shares.items() if share}
    if not known:
        return ""
    least, most = min(known, key=lambda each: known[each]), max(known, key=lambda each: known[each])
    return (
        f"Causes: of what `{_OURS}` does not rank first, {100 * known[least]:.0f} % (`{least}`) to "
        f"{100 * known[most]:.0f} % (`{most}`) is not among its candidates; the rest is a matter of their order, "
        "which a reranker can still change."
    )


def _cost(results: Json) -> str:
    ours, bound = measured_only(results["systems"]).get(_OURS), results.get("at_most", {}).get("full-ctx")
    if not ours or not bound:
        return ""
    return (
        f"Cost: `full-ctx` puts as much of `{results['dataset']}` into a prompt as the paper's budget of characters "
        f"allows, and reads at most {number(bound['input_tokens'])} tokens for a query; `{_OURS}` calls no model and "
        f"takes {ours['ms']['total']['p50']:.1f} ms (median)."
    )


def _refusals(results: Json) -> str:
    at, grid = results["chosen"].get("match"), results["thresholds"]
    if at is None or "bereft" not in results["false_accept"]:
        return ""
    curves = results["false_accept"]["bereft"], results["false_reject"]
    accepted, rejected = (float(np.interp(at, grid, curve)) for curve in curves)
    return (
        f"Verdicts: without an LLM, {100 * accepted:.0f} % of queries whose capability is missing are told "
        f"`match`, and {100 * rejected:.0f} % of the others are not: read the first few results before you use one."
    )


FINDINGS: Mapping[str, Callable[[Json], str]] = {
    "main": _accuracy,
    "scale": _growth,
    "decomposition": _misses,
    "efficiency": _cost,
    "abstention": _refusals,
}
"""By experiment, in the order of the report; empty if its systems were not run."""
