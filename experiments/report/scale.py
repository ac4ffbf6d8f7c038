"""Render the tables of docs/scale.md that come from results."""

from collections.abc import Iterator
from itertools import product

from experiments.report.results import load_results

_SIZES = (10_000, 100_000, 300_000, 1_000_000)


def growth_table() -> Iterator[str]:
    rows = load_results("aws-growth")["rows"]
    yield (
        "| capabilities | components | vectors | our share: p50 / p99 | beside the size before | a query on the node "
        "| disk | memory | recall@15 / @200 | filling, on the node | commit |"
    )
    yield "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---|"
    for row in sorted(rows, key=lambda row: (-row["dimension"], row["encoding"] != "float", row["documents"])):
        state = row["as_filled"]
        beside = f"{state['beside']['p50_ratio']:.2f} ×" if "beside" in state else ""
        filled = f"{row['fill']['node_cpu_s'] / 60:.1f} core-min" if row["fill"] else ""
        yield (
            f"| {row['documents']:,} | {row['dimension']:,} | {row['encoding']} "
            f"| {state['ms']['p50']:.0f} / {state['ms']['p99']:.0f} ms | {beside} | {state['node_cpu_ms']:.0f} core-ms "
            f"| {_gigabytes(state['disk_gb'])} | {_gigabytes(state['searched_gb'])} "
            f"| {state['recall@15']:.3f} / {state['recall@200']:.3f} | {filled} | {row['commit']:.7} |"
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


def _gigabytes(size: float) -> str:
    """Two decimals below 1 GB, one from there on."""
    if size < 0.01:
        return "under 0.01 GB"
    return f"{size:.1f} GB" if size >= 1 else f"{size:.2f} GB"
