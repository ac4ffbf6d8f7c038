"""Render the parts of README and docs that come from experiments/results."""

import json
import sys
from collections.abc import Callable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.report.results import load_results, paper
from experiments.report.scale import growth_table
from experiments.report.security import attack_tables
from experiments.studies.ablate import table as policy_table
from experiments.studies.language_model import together
from infra import cost
from mats.evaluation.results import Json
from mats.local.cli.search import answer_lines
from mats.resources import REPOSITORY

README = REPOSITORY / "README.md"
DOCS = REPOSITORY / "docs"
_MARKS = "<!-- {name}: rendered by `make readme` -->", "<!-- end of {name} -->"


def _template(name: str) -> str:
    return Path(__file__).with_name(f"{name}.md").read_text(encoding="utf-8").strip()


def _problem() -> str:
    total = together(load_results("experiment-language-model"))
    label, grade = ({arm: 100 * share for arm, share in total[key].items()} for key in ("by_label", "by_grade"))
    documents = load_results("experiment-main")["sets"]["tools"]["documents"]
    sizes = {"queries": total["queries"], "graded": total["graded"], "documents": documents}
    return _template("problem").format(label=label, grade=grade, **sizes)


def _comparison() -> str:
    systems, known = load_results("experiment-main")["sets"]["tools"]["systems"], paper()["scale"]
    _, paper_last = known["systems"]["full-ctx"]
    return _template("compare").format(
        documents=load_results("experiment-scale")["systems"]["hybrid"][-1]["size"],
        paper_last=100 * paper_last,
        paper_size=known["sizes"][1],
        crossover=known["crossover"],
        report="../experiments/results/report/report.md",
        **{name: 100 * systems[name]["metrics"]["match@1"]["mean"] for name in ("bm25", "dense", "hybrid")},
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
    benchmarks = {name: load_results(f"bench-{name}") for name in ("openapi", "latency", "scale", "mcp")}
    mcp, total = benchmarks["mcp"], together(load_results("experiment-language-model"))
    label = {arm: 100 * share for arm, share in total["by_label"].items()}
    read = mcp["definitions"] + mcp["answer_of_five"]["text"]["p50"]
    return _template("reach").format(**sets, **benchmarks, label=label, queries=total["queries"], read=read)


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


def _results_block() -> str:
    main = load_results("experiment-main")
    source, machine = main["provenance"], main["provenance"]["machine"]
    origin = (
        f"Match@k in %, bootstrap 95 % intervals over queries; measured at commit {source['commit']} "
        f"on {machine['cores']} cores ({machine['cpu']}), Python {source['python']}."
    )
    return "\n\n".join((_retrieval(main), _speed(), origin))


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


def _pair(system: Json) -> str:
    return f"{100 * system['match@1']['mean']:.1f} / {100 * system['match@15']['mean']:.1f}"


def _points(gain: Json) -> str:
    return f"{100 * gain['mean']:+.1f} [{100 * gain['low']:+.1f}, {100 * gain['high']:+.1f}]"


def _speed() -> str:
    """The table `speed.md` with the results of the benchmarks in its places."""
    benchmarks = ("latency", "scale", "million", "import", "rerank", "mcp", "load", "console", "openapi")
    results = {name: load_results(f"bench-{name}") for name in benchmarks}
    results |= {name: load_results(f"aws-{name}") for name in ("cold", "parity")}
    deployed = {"documents": 100_000, "dimension": 1_024, "encoding": "float"}  # With Titan's vectors
    rows = load_results("aws-growth")["rows"]
    results["own_share"] = next(row for row in rows if deployed.items() <= row.items())
    slowest = max(results["console"]["pages_ms"].items(), key=lambda page: float(page[1]["p50"]))
    return _template("speed").format(**results, layer=load_results("vendor-layer"), slowest=slowest)


PAGES: Mapping[Path, Mapping[str, Callable[[], str]]] = {
    README: {"shortlist": _terminal, "results": _reach},
    DOCS / "scoring.md": {"answer": _answer},
    DOCS / "results.md": {
        "results": _results_block,
        "problem": _problem,
        "comparison": _comparison,
        "policies": lambda: policy_table(load_results("experiment-ablate")),
    },
    REPOSITORY / "experiments" / "results" / "attacks.md": {
        "attacks": lambda: attack_tables(load_results("bench-attacks"))
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
