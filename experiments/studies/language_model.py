"""The gain by one rerank call: real replies of a language model against the first stage."""

from collections.abc import Iterator

from experiments.context import ExperimentContext
from experiments.experiment import Experiment, Panel, arms
from experiments.measures import paired, ranking
from experiments.panels import of_queries
from experiments.recordings import Recordings
from experiments.report.cells import Sets, TableForm, change, gained_lost, share
from experiments.report.results import measured_only
from experiments.studies.main import OURS, PLAIN_BM25

SETS = ("tools", "models", "skills", "agents", "mcp-tools-closed")
TOGETHER, RERANKED = "all", "pipeline-hybrid"


def _panels(context: ExperimentContext) -> Iterator[Panel]:
    """The queries with a recorded reply, set by set, commit by commit, and together; without recordings, all."""
    recordings = Recordings(context.data / "recorded")
    replied = {name: recordings.replied(name) for name in context.sets if name in SETS}
    if not any(replied.values()):
        replied = {
            name: dict.fromkeys((query.id for query in context.dataset(name).queries), "") for name in context.sets
        }
    replied = {name: queries for name, queries in replied.items() if queries}
    for name, queries in replied.items():
        yield of_queries(name, context.dataset(name), queries)
    commits = sorted({commit for queries in replied.values() for commit in queries.values()})
    for label, chosen in (
        *((f"request of commit {commit}", {commit}) for commit in commits if commit),
        (TOGETHER, commits),
    ):
        parts = (
            of_queries("", context.dataset(name), [id for id, commit in queries.items() if commit in chosen]).parts
            for name, queries in replied.items()
        )
        yield Panel(label, tuple(part for each in parts for part in each if part.queries))


def _finding(found: Sets) -> str:
    systems = measured_only(found.get(TOGETHER, {}).get("systems", {}))
    if not {OURS, RERANKED} <= systems.keys():
        return ""
    before, after = (100 * systems[name]["metrics"]["match@1"]["mean"] for name in (OURS, RERANKED))
    return (
        f"Language model: one rerank call ({found[TOGETHER]['queries']} open queries"
        f"{', recorded replies of a strong model' if 'recorded' in systems[RERANKED] else ''}) raises Match@1 from "
        f"{before:.1f} to {after:.1f} % ({gained_lost(systems[RERANKED]['mcnemar'])})."
    )


EXPERIMENT = Experiment(
    name="language-model",
    place=5,
    title="With a language model",
    about="One rerank call over the candidates of the first stage, on the queries whose own request has a recorded "
    "reply of a large general model: an upper bound for smaller ones.",
    panels=_panels,
    arms=(*arms(PLAIN_BM25, OURS), *arms(RERANKED, before=OURS)),
    measures=(ranking, paired),
    tables=(
        TableForm(
            id="language-model-replies", caption="Match@1, %, and first results gained and lost by the call",
            columns={"match@1": share("match@1"), "gained / lost": change},
            note="A candidate without a recorded score counts as 0. Steps that a reply names are ignored.",
        ),
    ),
    finding=_finding,
)  # fmt: skip
