"""Render the tables of docs/scale.md and docs/aws.md: event path, growth of the index, domains, and a month's cost."""

from itertools import product

from infra.capacity import NODES, domain_for, gigabytes, growth_rows, index_of
from infra.cost import SECONDS, estimate
from infra.prices import PriceList, load_json
from infra.traffic import CannotEstimate, Traffic
from infra.vendor import ROOT
from mats.evaluation.reporting.rendered_pages import replace_block, rewrite

PAGE = ROOT / "docs" / "scale.md"
AWS_PAGE = ROOT / "docs" / "aws.md"
QUERIES_PER_S = 10_000
CAPABILITIES = 10_000_000
_RESULTS = ROOT / "evaluation" / "results" / "aws-event-path.json"
_SHOWN = 6
_NOT_YET = "Not measured yet."
_FROM_CURVE = " (not measured; from the curve)"
_CAPABILITIES = (10_000, 100_000, 300_000, 1_000_000)
_COMPONENTS = (1_024, 256)
_FLOAT = "float"
_PER_SECOND = (10, 100)


def render(page: str) -> str:
    """The page with those tables that it has as results and prices have them now."""
    for name, table in _TABLES.items():
        if f"<!-- {name}:" in page:
            page = replace_block(page, name, table())
    return page


def _event_path() -> str:
    results = load_json(_RESULTS)
    scenarios = {name: one for name, one in results.items() if isinstance(one, dict) and "load" in one}
    lines = [
        "| configuration | functions | writer calls a minute | findable: p50 / p99 | complete: p50 / p99 "
        "| calls refused | queue empty after |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, one in scenarios.items():
        load = one["load"]
        lines.append(
            f"| {name} | {load['concurrency']:,} | {load['writer_per_minute']:,.0f} | {_pair(one['findable_s'])} "
            f"| {_pair(one['complete_s'])} | {sum(one['refused_calls'].values()):,} | {_time(one['drained_after_s'])} |"
        )
    return "\n".join(lines)


def _pair(percentiles: dict[str, float]) -> str:
    return f"{_time(percentiles['p50'])} / {_time(percentiles['p99'])}"


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _cost() -> str:
    month = QUERIES_PER_S * SECONDS
    costs: dict[str, float] = {}
    for line in estimate(Traffic(queries=month, capabilities=CAPABILITIES, size="production"), PriceList.load()):
        costs[line.service] = costs.get(line.service, 0.0) + line.usd
    largest = sorted(costs.items(), key=lambda each: -each[1])[:_SHOWN]
    lines = ["| service | dollars a month | dollars a million queries |", "|---|---:|---:|"]
    lines += [f"| {name} | {usd:,.0f} | {1e6 * usd / month:.2f} |" for name, usd in largest]
    return "\n".join(lines)


def _growth() -> str:
    if not growth_rows():
        return _NOT_YET
    lines = [
        "| capabilities | components | vectors | our share: p50 / p99 | beside the size before | a query on the node "
        "| disk | memory | recall@15 / @200 | filling, on the node |",
        "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in sorted(growth_rows(), key=lambda row: (-row["dimension"], row["encoding"] != _FLOAT, row["documents"])):
        state = row["as_filled"]
        beside = f"{state['beside']['p50_ratio']:.2f} ×" if "beside" in state else ""
        filled = f"{row['fill']['node_cpu_s'] / 60:.1f} core-min" if row["fill"] else ""
        lines.append(
            f"| {row['documents']:,} | {row['dimension']:,} | {row['encoding']} "
            f"| {state['ms']['p50']:.0f} / {state['ms']['p99']:.0f} ms | {beside} | {state['node_cpu_ms']:.0f} core-ms "
            f"| {gigabytes(state['disk_gb'])} | {gigabytes(state['searched_gb'])} "
            f"| {state['recall@15']:.3f} / {state['recall@200']:.3f} | {filled} |"
        )
    return "\n".join([*lines, "", _not_measured()])


def _not_measured() -> str:
    """Which sizes have no row, by components and encoding."""
    measured = {(row["dimension"], row["encoding"], row["documents"]) for row in growth_rows()}
    gaps = []
    for dimension, encoding in product(_COMPONENTS, (_FLOAT, "7 bits")):
        sizes = [size for size in _CAPABILITIES if (dimension, encoding, size) not in measured]
        if sizes:
            which = "any size" if len(sizes) == len(_CAPABILITIES) else " and ".join(f"{size:,}" for size in sizes)
            gaps.append(f"{dimension:,} components as {encoding} at {which}")
    return f"Not measured: {'; '.join(gaps)}." if gaps else "Every size was measured."


def _domains() -> str:
    try:
        indices = [index_of(capabilities) for capabilities in _CAPABILITIES]
    except CannotEstimate:
        return _NOT_YET
    prices = PriceList.load()
    lines = [
        "| capabilities | queries a second | the index in each copy | domain | dollars a month |",
        "|---:|---:|---|---|---:|",
    ]
    for index in indices:
        sizes = f"{gigabytes(index.disk_gb)} on disk, {gigabytes(index.memory_gb)} of memory"
        told = f"{sizes}, {index.cpu_ms:.0f} core-ms a query"
        for per_second in _PER_SECOND:
            domain = domain_for(index, per_second, prices)
            lines.append(
                f"| {index.capabilities:,} | {per_second} | {told}{'' if index.measured else _FROM_CURVE} "
                f"| {NODES} × `{domain.node}`, {domain.gb_each} GB each | {domain.usd:,.0f} |"
            )
    return "\n".join(lines)


_TABLES = {"event path": _event_path, "growth": _growth, "domains": _domains, "cost": _cost}


if __name__ == "__main__":
    rewrite({PAGE: render, AWS_PAGE: render})
