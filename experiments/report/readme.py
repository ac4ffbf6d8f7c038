"""Render the parts of README and docs that come from experiments/results."""

import json
import sys
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.data.sets import VENDORS
from experiments.report.cells import MATCHED, gained_lost
from experiments.report.policies import table as policy_table
from experiments.report.results import load_results, paper
from experiments.report.scale import growth_table
from experiments.studies.language_model import SETS
from infra import cost
from mats.bootstrap.models import RERANKED, load_calibration
from mats.evaluation.results import Json
from mats.local.cli.search import answer_lines
from mats.resources import REPOSITORY

README = REPOSITORY / "README.md"
DOCS = REPOSITORY / "docs"
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
_MARKS = "<!-- {name}: rendered by `make readme` -->", "<!-- end of {name} -->"


def _template(name: str) -> str:
    return Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8").strip()


def _problem() -> str:
    called = load_results("experiment-language-model")["sets"]
    systems, sizes = called["all"]["systems"], [called[name]["documents"] for name in SETS]
    matched, writer = systems["pipeline-hybrid"]["matched"], load_results("experiment-writer")["sets"]
    return _template("problem").format(
        sets=NUMBERS[len(sizes)],
        fewest=min(sizes),
        most=max(sizes),
        queries=called["all"]["queries"],
        label=_labels(systems),
        change=gained_lost(systems["pipeline-hybrid"]["mcnemar"]),
        matched=100 * matched,
        warning="" if matched >= MATCHED else ": too many for a fair row",
        rerank=load_results("bench-rerank"),
        **{part: _compare_written(writer[f"all: {part}"]) for part in ("written", "others")},
    )


def _labels(systems: Json) -> dict[str, str]:
    return {arm: _with_interval(one["metrics"]["match@1"]) for arm, one in systems.items()}


def _with_interval(value: Json) -> str:
    return f"{100 * value['mean']:.0f} % [{100 * value['low']:.0f}, {100 * value['high']:.0f}]"


def _comparison() -> str:
    known = paper()
    of_paper = list(known["tables"]["fig:scaling-within"].values())[-1]
    in_one_run = load_results("bench-peers")
    peers = in_one_run["sets"]["tools"]
    names = {"fastmcp": "fastmcp-bm25", "regex": "fastmcp-regex", "mats": "mats"}
    return _template("compare").format(
        documents=peers["documents"],
        paper_last=100 * of_paper["full-ctx"]["match@1"],
        paper_size=known["sizes"]["Tools / ToolRet"][0],
        crossover=known["crossover"],
        report="../experiments/results/report/report.md",
        paper_main=100 * known["tables"]["tab:main-mat1"]["Tools / ToolRet"]["full-ctx"]["match@1"],
        drawn=peers["queries"],
        version=in_one_run["versions"]["fastmcp-bm25"].removeprefix("fastmcp "),
        **{key: 100 * peers["systems"][name]["match@1"]["mean"] for key, name in names.items()},
    )


def _reach() -> str:
    main = load_results("experiment-main")
    sets = {
        name: {
            "documents": main["sets"][name]["documents"],
            "plain": _pair(main["sets"][name]["systems"]["bm25"]["metrics"]),
            "ours": _pair(main["sets"][name]["systems"]["hybrid"]["metrics"]),
        }
        for name in ("tools", "agents", "skills", "models")
    }
    benchmarks = {name: load_results(f"bench-{name}") for name in ("latency", "scale", "mcp")}
    mcp, called = benchmarks["mcp"], load_results("experiment-language-model")["sets"]["all"]
    read = mcp["definitions"] + mcp["answer_of_five"]["text"]["p50"]
    label, queries = _labels(called["systems"]), called["queries"]
    asked = load_results("experiment-operations")["sets"]["all"]
    api = {name: _pair(system["metrics"], "match@5") for name, system in asked["systems"].items()}
    operations, imported = asked["systems"]["hybrid"]["operations"], asked["queries"]
    return _template("reach").format(
        **sets, **benchmarks, label=label, queries=queries, read=read, api=api, operations=operations,
        imported=imported, vendors=NUMBERS[len(VENDORS)],
    )  # fmt: skip


def _compare_written(panel: Json) -> dict[str, Any]:
    """Right first results on raw and on written registrations, in %, and the queries that changed."""
    shares = (100 * panel["systems"][name]["metrics"]["match@1"]["mean"] for name in ("hybrid", "hybrid, written"))
    change = panel["systems"]["hybrid, written"]["mcnemar"]
    return {"queries": panel["queries"], **dict(zip(("raw", "enriched"), shares, strict=True)), **change}


def _terminal() -> str:
    """The measured answer as `mats search` prints it."""
    measured = load_results("bench-answer")
    answer = {"excluded": [], **measured["answer"]}
    console = Console(file=StringIO(), width=120)
    with console.capture() as printed:
        console.print(*answer_lines(answer, explain=False, why_degraded="", reports=True), sep="\n")
    command = f'mats search "{measured["query"]["query"]}" --limit {len(answer["results"])}'
    lines = [f"$ {command}", *(line.rstrip() for line in printed.get().splitlines())]
    return "\n".join(("```console", *lines, "```"))


def _answer() -> str:
    """The measured answer with its first result, formatted, without empty attributes."""
    answer = dict(load_results("bench-answer")["answer"])
    answer["results"] = [{key: value for key, value in answer["results"][0].items() if value not in ("", None)}]
    return f"```json\n{_format_json(answer)}\n```"


def _format_json(value: Any, indent: str = "") -> str:
    """JSON with a line per attribute of an answer and of a result, nested values on one line."""
    if isinstance(value, dict) and ("results" in value or "score" in value):
        entries = (f"{indent}  {json.dumps(key)}: {_format_json(inner, indent + '  ')}" for key, inner in value.items())
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[" + ", ".join(_format_json(inner, indent) for inner in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _in_sight(sets: Json) -> str:
    return (
        "In sight: the field weights, the constants of the scale, the thresholds and the policies were chosen with "
        f"these {NUMBERS[len(sets)]} sets in view."
    )


def _results_block() -> str:
    main = load_results("experiment-main")
    source, machine = main["provenance"], main["provenance"]["machine"]
    origin = (
        f"Match@k in %, bootstrap 95 % intervals over queries; measured at commit {source['commit']} "
        f"on {machine['cores']} cores ({machine['cpu']}), Python {source['python']}. {_in_sight(main['sets'])}"
    )
    return "\n\n".join((_retrieval(main), origin, _speed()))


def _retrieval(results: Json) -> str:
    lines = [
        "| data set | capabilities | queries | plain BM25 @1 / @15 | mats, no LLM @1 / @15 | gain @1 | gain @15 |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, one in results["sets"].items():
        plain, ours = one["systems"]["bm25"]["metrics"], one["systems"]["hybrid"]["metrics"]
        gain = one["systems"]["hybrid"]["over_bm25"]
        lines.append(
            f"| {name} | {one['documents']:,} | {one['queries']:,} | {_pair(plain)} | **{_pair(ours)}** "
            f"| {_points(gain['match@1'])} | {_points(gain['match@15'])} |"
        )
    return "\n".join(lines)


def _pair(system: Json, among: str = "match@15") -> str:
    return f"{100 * system['match@1']['mean']:.1f} / {100 * system[among]['mean']:.1f}"


def _points(gain: Json) -> str:
    return f"{100 * gain['mean']:+.1f} [{100 * gain['low']:+.1f}, {100 * gain['high']:+.1f}]"


def _speed() -> str:
    """The table `speed.md` with the results of the benchmarks in its places."""
    benchmarks = ("latency", "scale", "import", "rerank", "mcp", "load")
    results = {name: load_results(f"bench-{name}") for name in benchmarks}
    results |= {name: load_results(f"aws-{name}") for name in ("cold", "parity")}
    deployed = {"documents": 100_000, "dimension": 1_024, "encoding": "float"}  # With Titan's vectors
    rows = load_results("aws-growth")["rows"]
    results["own_share"] = next(row for row in rows if deployed.items() <= row.items())
    layer, scanner = load_results("vendor-layer"), load_results("bench-scanner")
    flags = {
        f"{part}_{label}": 100 * one["flagged"] / one["registrations"]
        for part, writers in (("kept", "by writers, kept back"), ("seen", "by writers, seen"))
        for label in ("attacks", "honest")
        for one in [scanner["corpora"][f"{writers}: {label}"]]
    }
    return _template("speed").format(**results, layer=layer, scanner=scanner, **flags)


def _operations() -> str:
    """What people ask of the operations of public APIs, by sort."""
    results = load_results("experiment-operations")
    lines = ["| requests | | plain BM25: first / among five | mats, no LLM | `none` though one serves |"]
    lines.append("|---|" + "---:|" * 4)
    for sort, one in results["sets"].items():
        plain, ours = (_pair(one["systems"][name]["metrics"], "match@5") for name in ("bm25", "hybrid"))
        false = 100 * one["systems"]["hybrid"]["false_none"]
        lines.append(f"| {sort} | {one['queries']} | {plain} | **{ours}** | {false:.1f} |")
    source, count = results["provenance"], results["sets"]["all"]["systems"]["hybrid"]["operations"]
    told = (
        f"In %, over {count:,} operations of {NUMBERS[len(VENDORS)]} vendors, at commit {source['commit']:.7}. "
        "Policies were made on the other half; of them, those that lose here went."
    )
    return "\n".join((*lines, "", told))


_PEERS = {
    "fastmcp-regex": "FastMCP's regex search, the words of the request as alternatives",
    "fastmcp-bm25": "FastMCP's BM25 search",
    "rank-bm25": "rank-bm25, the plain BM25 of this page",
    "bm25s": "bm25s, stemmed",
    "faiss": "plain vector store (faiss, exact), with the vectors of mats",
    "mats-words": "mats, words only",
    "mats": "mats, no LLM",
}
_FITTED = ("tools", "agents", "skills", "mcp-tools-closed")


def _peers() -> str:
    """Peers and ours over the same sets in one run, then the public sets beside published numbers."""
    results = load_results("bench-peers")
    sets = {name: results["sets"][name] for name in _FITTED if name in results["sets"]}
    first = next(iter(sets))
    heads = (f"{name} ({one['queries']:,} queries) @1 / @15" for name, one in sets.items())
    lines = [f"| system | {' | '.join(heads)} | gained / lost at 1, {first} | median ms, {first} |"]
    lines.append(f"|---|{'---:|' * (len(sets) + 2)}")
    for name, title in _PEERS.items():
        systems, test = [one["systems"][name] for one in sets.values()], sets[first]["systems"][name]["against_mats"]
        change = "" if name == "mats" else f"+{test['gained']} / −{test['lost']}"
        cells = " | ".join(_pair(system) for system in systems)
        lines.append(f"| {title} | {cells} | {change} | {systems[0]['ms']['p50']:.1f} |")
    source = results["provenance"]
    lines += [
        "",
        f"Match@k in %, in one run at commit {source['commit']:.7} on {source['machine']['cores']} cores, with "
        f"{', '.join(sorted(set(results['versions'].values())))}. Gained / lost: queries on which mats alone is right, "
        "and on which the other alone is. Times are of a search in process; those with vectors encode the query. "
        f"{_in_sight(sets)} Nothing of the peers was.",
    ]
    public = {key: results["sets"][name] for key, name in (("live", "livemcp-tasks"), ("golden", "mcp-golden"))}
    for one in public.values():
        for name, system in one["systems"].items():
            one[name] = f"{100 * system['recall@5']['mean']:.1f} | {100 * system['all@15']['mean']:.1f}"
    task = 100 / public["live"]["queries"]
    return "\n".join((*lines, "", _template("peers").format(**public, task=task)))


def _verdicts() -> str:
    """The thresholds of verdicts as they are served, and how they were fitted."""
    fitted = load_results("calibration")
    encoder, tested = next((name, one["tested"]["told"]) for name, one in fitted["verdict"].items())
    return _template("verdicts").format(
        reranked=RERANKED,
        hybrid=load_calibration("sqlite-bm25-1", encoder).thresholds,
        encoder=encoder,
        **{name: 100 * told["none"] for name, told in tested.items()},
        sets=NUMBERS[len(fitted["sets"])],
        commit=fitted["provenance"]["commit"],
    )


PAGES: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    README: {"shortlist": _terminal, "results": _reach},
    DOCS / "scoring.md": {"answer": _answer, "verdicts": _verdicts},
    DOCS / "results.md": {
        "results": _results_block,
        "problem": _problem,
        "comparison": _comparison,
        "peers": _peers,
        "operations": _operations,
        "policies": lambda: policy_table(load_results("experiment-ablate")),
    },
    DOCS / "scale.md": {"growth": lambda: "\n".join(growth_table())},
    DOCS / "aws.md": {"cost": lambda: "\n".join(cost.table())},
}
"""The parts of pages that are rendered, by the name in their marks."""


def render(path: Path) -> str:
    """The page with its parts as results and prices have them now."""
    page = path.read_text(encoding="utf-8")
    for name, text in PAGES[path].items():
        start, end = (mark.format(name=name) for mark in _MARKS)
        head, rest = page.split(start)
        _, tail = rest.split(end)
        page = f"{head}{start}\n{text()}\n{end}{tail}"
    return page


def main() -> None:
    """Write each page as it is rendered now, and say which have changed."""
    for path in PAGES:
        before, after = path.read_text(encoding="utf-8"), render(path)
        path.write_text(after, encoding="utf-8")
        sys.stderr.write(f"{path.name} {'is up to date' if after == before else 'updated'}\n")
