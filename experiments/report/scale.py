"""Render the tables of docs/scale.md and docs/aws.md that come from results and prices."""

from collections.abc import Iterator
from itertools import product

from infra.cost import NODES, SECONDS, Traffic, domain_for, estimate, gigabytes, growth_rows, index_of

_SIZES = (10_000, 100_000, 300_000, 1_000_000)


def cost_table() -> Iterator[str]:
    """The six most expensive services for 10,000 queries a second."""
    traffic = Traffic(queries=10_000 * SECONDS, capabilities=10_000_000, size="production")
    costs: dict[str, float] = {}
    for line in estimate(traffic):
        costs[line.service] = costs.get(line.service, 0.0) + line.usd
    yield from ("| service | dollars a month | dollars a million queries |", "|---|---:|---:|")
    for name, usd in sorted(costs.items(), key=lambda each: -each[1])[:6]:
        yield f"| {name} | {usd:,.0f} | {1e6 * usd / traffic.queries:.2f} |"


def growth_table() -> Iterator[str]:
    rows = growth_rows()
    yield (
        "| capabilities | components | vectors | our share: p50 / p99 | beside the size before | a query on the node "
        "| disk | memory | recall@15 / @200 | filling, on the node |"
    )
    yield "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|"
    for row in sorted(rows, key=lambda row: (-row["dimension"], row["encoding"] != "float", row["documents"])):
        state = row["as_filled"]
        beside = f"{state['beside']['p50_ratio']:.2f} ×" if "beside" in state else ""
        filled = f"{row['fill']['node_cpu_s'] / 60:.1f} core-min" if row["fill"] else ""
        yield (
            f"| {row['documents']:,} | {row['dimension']:,} | {row['encoding']} "
            f"| {state['ms']['p50']:.0f} / {state['ms']['p99']:.0f} ms | {beside} | {state['node_cpu_ms']:.0f} core-ms "
            f"| {gigabytes(state['disk_gb'])} | {gigabytes(state['searched_gb'])} "
            f"| {state['recall@15']:.3f} / {state['recall@200']:.3f} | {filled} |"
        )
    measured = {(row["dimension"], row["encoding"], row["documents"]) for row in rows}
    gaps = {
        f"{dimension:,} components as {encoding}": [
            f"{n:,}" for n in _SIZES if (dimension, encoding, n) not in measured
        ]
        for dimension, encoding in product((1_024, 256), ("float", "7 bits"))
    }
    missing = [f"{what} at {' and '.join(sizes)}" for what, sizes in gaps.items() if sizes]
    yield from ("", f"Not measured: {'; '.join(missing)}." if missing else "Every size was measured.")


def domain_table() -> Iterator[str]:
    yield "| capabilities | queries a second | the index in each copy | domain | dollars a month |"
    yield "|---:|---:|---|---|---:|"
    for index, per_second in product(map(index_of, _SIZES), (10, 100)):
        domain = domain_for(index, per_second)
        yield (
            f"| {index.capabilities:,} | {per_second} | {gigabytes(index.disk_gb)} on disk, "
            f"{gigabytes(index.memory_gb)} of memory, {index.cpu_ms:.0f} core-ms a query"
            f"{'' if index.measured else ' (not measured; from the curve)'} "
            f"| {NODES} × `{domain.node}`, {domain.gb_each} GB each | {domain.usd:,.0f} |"
        )
