"""Render the tables of docs/scale.md that come from results."""

from collections.abc import Iterator

from experiments.report.results import load_results

_SHOWN = 100_000  # Capabilities, from which on the page shows a size; the results have smaller ones, too


def growth_table() -> Iterator[str]:
    rows = load_results("aws-growth")["rows"]
    yield (
        "| capabilities | components | vectors | our share: p50 / p99 | beside the size before | a query on the node "
        "| disk | memory | recall@15 / @200 | filling, on the node | commit |"
    )
    yield "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---|"
    rows = [row for row in rows if row["documents"] >= _SHOWN]
    for row in sorted(rows, key=lambda row: (-row["dimension"], row["encoding"] != "float", row["documents"])):
        state = row["as_filled"]
        beside = f"{state['beside']['p50_ratio']:.2f} ×" if "beside" in state else ""
        filled = f"{row['fill']['node_cpu_s'] / 60:.1f} core-min" if row["fill"] else ""
        yield (
            f"| {row['documents']:,} | {row['dimension']:,} | {row['encoding']} "
            f"| {state['ms']['p50']:.0f} / {state['ms']['p99']:.0f} ms | {beside} | {state['node_cpu_ms']:.0f} core-ms "
            f"| {1_000 * state['disk_gb']:,.0f} MB | {1_000 * state['searched_gb']:,.0f} MB "
            f"| {state['recall@15']:.3f} / {state['recall@200']:.3f} | {filled} | {row['commit']:.7} |"
        )
