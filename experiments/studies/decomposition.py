"""The causes of misses: retrieval, or the order of its candidates."""

from experiments.experiment import Experiment, arms
from experiments.measures import CATEGORIES, factors
from experiments.panels import sets
from experiments.report.cells import NONE, Column, Sets, TableForm, number, share
from experiments.report.results import measured_only
from experiments.studies.main import OURS
from experiments.variants import SYSTEMS


def _count(category: str) -> Column:
    return lambda cell: number(cell["categories"][category]) if "categories" in cell else NONE


def _finding(found: Sets) -> str:
    shares = {
        name: 100 * (one["systems"][OURS]["misses_at_retrieval"] or 0)
        for name, one in found.items()
        if OURS in measured_only(one["systems"])
    }
    if not shares:
        return ""
    least, most = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    return (
        f"Causes: of what `{OURS}` does not rank first, {shares[least]:.0f} % (`{least}`) to {shares[most]:.0f} % "
        f"(`{most}`) is not among its candidates; the rest is their order, which a reranker can change."
    )


EXPERIMENT = Experiment(
    name="decomposition",
    place=30,
    title="Causes of misses",
    about="A relevant capability among the candidates, times first if there is one, is Match@1; the misses by cause.",
    panels=sets(),
    arms=arms(*(name for name in SYSTEMS if name != "regex")),
    measures=(factors,),
    tables=(
        TableForm(
            id="decomposition-factors", caption="Both factors, %, and numbers of misses", paper="§ Retrieval analysis",
            columns={
                "candidate": share("candidates"),
                "of those, first": share("conditional"),
                "match@1": share("match@1"),
                "misses at retrieval": share("misses_at_retrieval"),
                **{category: _count(category) for category in CATEGORIES},
            },
            note="Of full-ctx a retrieval miss is gold that its prompt has no room for.",
        ),
    ),
    finding=_finding,
)  # fmt: skip
