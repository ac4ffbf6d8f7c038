"""Render the answer and the tables of the README from evaluation/results."""

import json
import sys
from typing import Any

from mats.evaluation.reporting.results import RESULTS, Json, read_results
from mats.resources import REPOSITORY

README = REPOSITORY / "README.md"
_MARKS = "<!-- {name}: rendered by `make readme` -->", "<!-- end of {name} -->"
_MODEL = "all-MiniLM-L6-v2"


def main() -> None:
    before = README.read_text(encoding="utf-8")
    after = render_readme(before)
    README.write_text(after, encoding="utf-8")
    sys.stderr.write("README.md is up to date\n" if after == before else "README.md updated\n")


def render_readme(readme: str) -> str:
    """The README with the answer and the tables of the results."""
    main = _load("experiment-main")
    tables = "\n\n".join((_retrieval(main), _speed(), _origin(main["provenance"])))
    return _replace_block(_replace_block(readme, "answer", _answer()), "results", tables)


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
    """Percentage points with their 95 % interval."""
    return f"{100 * gain['mean']:+.1f} [{100 * gain['low']:+.1f}, {100 * gain['high']:+.1f}]"


def _speed() -> str:
    rows = ("| what | measured |", "|---|---|", *_on_this_machine(), *_under_load(), *_in_aws())
    return "\n".join(rows)


def _on_this_machine() -> tuple[str, ...]:
    small, large, taken, call = map(_load, ("bench-latency", "bench-scale", "bench-import", "bench-rerank"))
    memory = taken["resident_mb"]
    return (
        f"| one answer over {small['documents']:,} tools, {_MODEL} included | p50 {small['ms']['p50']:.1f} ms, "
        f"p99 {small['ms']['p99']:.1f} ms |",
        f"| one answer over {large['documents']:,} capabilities | p50 {large['ms']['p50']:.1f} ms, "
        f"p99 {large['ms']['p99']:.1f} ms, {large['resident_mb']:,} MB resident |",
        f"| registering {taken['documents']:,} tools end to end | {taken['per_second']:.0f} a second, "
        f"{memory['at_the_end']:,} MB resident at the end, {memory['at_a_tenth']:,} MB at a tenth |",
        f"| one rerank call over {call['k']} tools | p50 {call['input_tokens']['p50']:,.0f} and at most "
        f"{call['input_tokens']['max']:,.0f} tokens in, at most {call['output_tokens']['max']:.0f} out |",
    )


def _under_load() -> tuple[str, ...]:
    """HTTP with concurrent clients, and the slowest page of the console."""
    load, console = _load("bench-load"), _load("bench-console")
    crowd, dead = load["clients"], load["reranker_dead_breaker_open"]["dead"]
    name, slowest = max(console["pages_ms"].items(), key=lambda page: float(page[1]["p50"]))
    return (
        f"| one answer over HTTP with a reranker stand-in that takes {load['reranker_ms']} ms "
        f"| p50 {load['one_client']['ms']['p50']:.0f} ms |",
        f"| the same, {crowd['count']} clients at once for {crowd['seconds']} s "
        f"| p50 {crowd['ms']['p50']:,.0f} ms, p95 {crowd['ms']['p95']:,.0f} ms, "
        f"{crowd['errors']} errors in {crowd['answers']:,} answers |",
        f"| one answer over HTTP while the reranker is dead | p50 {dead['ms']['p50']:.0f} ms |",
        f"| the slowest page of the console over {console['documents']:,} capabilities ({name}), "
        f"from following a link until it is painted | p50 {slowest['p50']:.0f} ms, p95 {slowest['p95']:.0f} ms |",
    )


def _in_aws() -> tuple[str, ...]:
    """Over a real OpenSearch node and Lambda's runtime client."""
    answer, cold, parity = map(_load, ("aws-answer", "aws-cold", "aws-parity"))
    ours, grown = answer["merged"]["ms"], answer["as_filled"]["ms"]
    starts, layer = cold["discovery"], _load("vendor-layer")["layers"]["vendor"]
    size = f"{answer['documents']:,} capabilities of {answer['dimension']:,} components"
    return (
        f"| our share of an answer over OpenSearch with {size}: all but the reranker's own time "
        f"| p50 {ours['p50']:.0f} ms, p99 {ours['p99']:.0f} ms |",
        "| the same as the single writes leave the index, before `mats reindex` or a merge "
        f"| p50 {grown['p50']:.0f} ms, p99 {grown['p99']:.0f} ms |",
        f"| Match@15 over OpenSearch against the local index, {parity['documents']:,} tools "
        f"| {parity['match@15_difference_pp']:+.1f} pp |",
        f"| discovery function, cold: started / first answer, models answering at once "
        f"| {starts['init_ms']['median']:.0f} / {starts['init_and_first_ms']['median']:.0f} ms |",
        f"| enrichment function, cold | {cold['enrichment']['init_ms']['median']:.0f} ms |",
        f"| layer of third-party packages, unzipped | {layer['unzipped_mb']:.1f} MB |",
    )


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
