"""Render the answer and the tables of the README, and the tables of docs/security.md, from evaluation/results."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mats.evaluation.reporting.results import RESULTS, Json, read_results
from mats.evaluation.reporting.security import security_tables
from mats.resources import REPOSITORY

README = REPOSITORY / "README.md"
SECURITY = REPOSITORY / "docs" / "security.md"
_MARKS = "<!-- {name}: rendered by `make readme` -->", "<!-- end of {name} -->"


def main() -> None:
    for path, render in PAGES.items():
        before = path.read_text(encoding="utf-8")
        after = render(before)
        path.write_text(after, encoding="utf-8")
        sys.stderr.write(f"{path.name} {'is up to date' if after == before else 'updated'}\n")


def render_readme(readme: str) -> str:
    main = _load("experiment-main")
    tables = "\n\n".join((_retrieval(main), _speed(), _origin(main["provenance"])))
    return _replace_block(_replace_block(readme, "answer", _answer()), "results", tables)


def render_security(page: str) -> str:
    return _replace_block(page, "attacks", security_tables())


PAGES: Mapping[Path, Callable[[str], str]] = {README: render_readme, SECURITY: render_security}
"""The pages with rendered parts."""


def _replace_block(readme: str, name: str, text: str) -> str:
    start, end = (mark.format(name=name) for mark in _MARKS)
    head, rest = readme.split(start)
    _, tail = rest.split(end)
    return f"{head}{start}\n{text}\n{end}{tail}"


def _answer() -> str:
    """The measured answer to the README's query, formatted, without empty attributes."""
    answer = dict(_load("bench-answer")["answer"])
    answer["results"] = [
        {key: value for key, value in result.items() if value not in ("", None)} for result in answer["results"]
    ]
    return f"```json\n{_format_json(answer)}\n```"


def _format_json(value: Any, indent: str = "") -> str:
    """JSON with a line per attribute of an answer and of a result, nested values on one line."""
    if isinstance(value, dict) and ("results" in value or "score" in value):
        entries = (f"{indent}  {json.dumps(key)}: {_format_json(inner, indent + '  ')}" for key, inner in value.items())
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[" + ", ".join(_format_json(inner, indent) for inner in value) + "]"
    return json.dumps(value, ensure_ascii=False)


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
    benchmarks = ("latency", "scale", "import", "rerank", "mcp", "load", "console")
    results = {name: _load(f"bench-{name}") for name in benchmarks}
    results |= {name: _load(f"aws-{name}") for name in ("answer", "cold", "parity")}
    slowest = max(results["console"]["pages_ms"].items(), key=lambda page: float(page[1]["p50"]))
    template = Path(__file__).with_name("speed.md").read_text(encoding="utf-8").strip()
    return template.format(**results, layer=_load("vendor-layer"), slowest=slowest)


def _origin(source: Json) -> str:
    machine = source["machine"]
    return (
        f"Match@k in %, bootstrap 95 % intervals over queries; measured at commit {source['commit']} "
        f"on {machine['cores']} cores ({machine['cpu']}), Python {source['python']}."
    )


def _load(name: str) -> Json:
    return read_results(RESULTS / f"{name}.json")


if __name__ == "__main__":
    main()
