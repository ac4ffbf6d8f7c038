"""Estimated cost of a month in AWS for a given traffic, with every formula, and the domain it needs: `make cost`.

Prices, assumptions and the lines of the bill are in bill.json; replace assumptions by figures of your dashboard.
"""

import argparse
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from infra.alarms import OWN, charged_metrics
from infra.context import Context
from infra.sizes import SIZES
from infra.vendor import ROOT
from mats.domain.prompts.usage import Prices
from mats.settings import TITAN, Settings


def _load_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


GROWTH = ROOT / "experiments" / "results" / "aws-growth.json"
"""Growth of the index, as measured for docs/decisions/0061."""
RERANK = ROOT / "experiments" / "results" / "bench-rerank.json"
"""Tokens of a rerank call, as measured by `make bench BENCH=rerank`."""
_TOKENS: Mapping[str, Any] = _load_json(RERANK)
BILL: Mapping[str, Any] = _load_json(Path(__file__).with_name("bill.json"))
"""`prices` by key; `assumed`: value and meaning by name; `fixed` and `variable`: key and formula of each line."""
ASSUMED: Mapping[str, float] = {name: value for name, (value, _) in BILL["assumed"].items()}
_MODEL_PRICES = Prices.parse(_load_json(ROOT / "layers" / "core" / "python" / "mats" / "prices.json"))
HOURS = 730
SECONDS = HOURS * 3600
_FILES_UP_TO = 20_000  # Capabilities that are searched from files: docs/decisions/0091
ALARM_METRICS = charged_metrics(usd_per_hour=Context().spend_per_hour)

_SMALL = {
    "kept_versions": 0,
    "queries_per_restore": math.inf,
    "query_metrics": 0,
    "change_metrics": 0,
    "alarm_metrics": charged_metrics(usd_per_hour=Context().spend_per_hour, size="small"),
    "dashboards": 0,
}
"""What `size=small` has none of, or less: snapshots, metrics of its own, alarms, dashboards."""


class CannotEstimate(ValueError):
    """The traffic or the deployment cannot be priced; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """A month of traffic.

    Raises:
        CannotEstimate: with every fault.
    """

    queries: int = 100_000
    changes: int = 1_000
    capabilities: int = 10_000
    size: str = "trial"
    network: str = "public"
    rerank_model: str = Settings().rerank_model
    writer_model: str = Settings().writer_model
    encoder_model: str = TITAN

    def __post_init__(self) -> None:
        choices = {"size": tuple(SIZES), "network": ("public", "vpc")}
        faults = [
            f"{name} must be {' or '.join(known)}, not {getattr(self, name)!r}"
            for name, known in choices.items()
            if getattr(self, name) not in known
        ]
        counts = ("queries", "changes", "capabilities")
        faults += [f"{name} must not be negative" for name in counts if getattr(self, name) < 0]
        if faults:
            raise CannotEstimate("; ".join(faults))


def fits(traffic: Traffic) -> bool:
    """True if the index leaves half of the domain's storage free, which merges and a reindex need."""
    size = SIZES[traffic.size]
    if traffic.size == "small":
        return traffic.capabilities <= _FILES_UP_TO
    return traffic.capabilities * ASSUMED["indexed_kb"] * size.zones <= size.nodes * size.gb_each * 1e6 / 2


# --- the bill ---


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the bill. `usd` is `quantity` × `price` / `per`, in dollars a month."""

    service: str
    quantity: float
    unit: str
    price: float
    per: int
    why: str = ""
    fixed: bool = False  # True if it does not depend on traffic

    @property
    def usd(self) -> float:
        return self.quantity * self.price / self.per

    @property
    def formula(self) -> str:
        price = f"{self.price:.10f}".rstrip("0").rstrip(".")
        return f"{_format(self.quantity)} {self.unit} × ${price}" + (f" / {self.per:,}" if self.per != 1 else "")


def line_at(key: str, quantity: float, why: str = "", *, fixed: bool = False) -> Line:
    """A line at the price of a key of bill.json, or of the tokens of a model: `<model> tokens in` or `out`.

    Raises:
        CannotEstimate: it has no price.
    """
    model, _, direction = key.partition(" tokens ")
    if not direction:
        if key not in BILL["prices"]:
            raise CannotEstimate(f"bill.json has no price of {key}")
        price = BILL["prices"][key]
        return Line(price["service"], quantity, price["unit"], price["usd"], price["per"], why, fixed)
    usd = _MODEL_PRICES.usage(model, *((10**6, 0) if direction == "in" else (0, 10**6))).usd
    if usd is None:
        raise CannotEstimate(f"the price of {model} is not known; add it to mats/prices.json")
    return Line(f"Bedrock {model}", quantity, f"tokens {direction}", usd, 10**6, why, fixed)


def estimate(traffic: Traffic, assumed: Mapping[str, float] = ASSUMED) -> list[Line]:
    """Every line of the month's bill whose quantity is not 0.

    Raises:
        CannotEstimate: something has no price.
    """
    values = _values(traffic, assumed)
    return [
        line_at(key.format(**values), quantity, _explain(formula, values), fixed=kind == "fixed")
        for kind in ("fixed", "variable")
        for key, formula in BILL[kind]
        if (quantity := _product(formula, values)) and not key.format(**values).startswith("none ")
    ]


def _values(traffic: Traffic, assumed: Mapping[str, float]) -> dict[str, Any]:
    """The values of the names in keys and formulas."""
    comparisons = assumed["nights"] + 2 * assumed["deployments"]
    comparison_s = traffic.capabilities * assumed["maintenance_s_per_1000"] / 1000
    return {
        **asdict(traffic),
        **assumed,
        **asdict(SIZES[traffic.size]),
        "hours": HOURS,
        "seconds": SECONDS,
        "query_metrics": len(OWN["discovery"]) + len(OWN["feedback"]),
        "change_metrics": len(OWN["enrichment"]),
        "query_hours": min(traffic.queries, HOURS),  # a metric is charged by the hour in which it is written
        "change_hours": min(traffic.changes, HOURS),
        "alarm_metrics": ALARM_METRICS,
        "vpcs": int(traffic.network == "vpc"),
        "comparisons": comparisons,
        "pieces": comparisons * max(1, math.ceil(comparison_s / assumed["piece_s"])) + assumed["nights"],
        "rerank_input_tokens": _TOKENS["input_tokens"]["p50"],
        "rerank_output_tokens": _TOKENS["output_tokens"]["p50"],
        "files": int(traffic.size == "small"),
        **(_SMALL if traffic.size == "small" else {}),
    }


def _product(formula: str, values: Mapping[str, Any]) -> float:
    """The value of names and numbers with `*` or `/` between them."""
    result = 1.0
    for operator, term in re.findall(r"([*/]?) ?([\w.]+)", formula):
        value = float(values.get(term, term))
        result = result / value if operator == "/" else result * value
    return result


def _explain(formula: str, values: Mapping[str, Any]) -> str:
    """The formula with the value of each name, as in `100,000 queries × 20 query tokens`."""
    words = re.sub(r"\b[a-z]\w+", lambda name: f"{_format(values[name[0]])} {name[0].replace('_', ' ')}", formula)
    return words.replace("*", "×")


def _format(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


# --- the domain: one shard, with a copy on each of up to three nodes, so every node must hold all of it ---

NODES = 3
NODE_TYPES = {"r7g.large.search": (2, 16), "r7g.xlarge.search": (4, 32), "r7g.2xlarge.search": (8, 64),
              "r7g.4xlarge.search": (16, 128)}  # fmt: skip
"""Cores and GB of memory. More capabilities or queries need bigger nodes, not more of them."""
_MAX_HEAP_GB = 32
_CACHE = 0.8  # Share of the memory beside the heap for what a vector search reads
_BUSY = 0.5  # Share of the cores: at a higher one, queries wait for each other, and the loss of a node is not survived
_FREE_DISK = 2  # Times the index: a reindex makes a second one
_MIN_GB = 10
_PEAK = 10  # Times the mean of queries a second


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredIndex:
    """Size and load of an index: processor time of a query, and memory for what a vector search reads."""

    capabilities: int
    disk_gb: float
    memory_gb: float
    cpu_ms: float
    measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainChoice:
    """The type and storage of three nodes that carry an index and a load, and their cost in a month."""

    node: str
    gb_each: int
    usd: float


def index_of(capabilities: int) -> MeasuredIndex:
    """The index at this size: sizes in proportion to the nearest larger one measured, or else the largest.

    Raises:
        CannotEstimate: nothing was measured.
    """
    chosen = [row for row in growth_rows() if (row["dimension"], row["encoding"]) == (1_024, "float")]
    if not chosen:
        raise CannotEstimate(f"{GROWTH.name} has no index of 1,024 components: docs/decisions/0061")
    rows = sorted(chosen, key=lambda row: int(row["documents"]))
    near = next((row for row in rows if row["documents"] >= capabilities), rows[-1])
    share, state = capabilities / near["documents"], near["as_filled"]
    return MeasuredIndex(
        capabilities=capabilities,
        disk_gb=share * state["disk_gb"],
        memory_gb=share * state["searched_gb"],
        cpu_ms=_cpu_ms([(row["documents"], row["as_filled"]["node_cpu_ms"]) for row in rows], capabilities),
        measured=any(row["documents"] == capabilities for row in rows),
    )


def growth_rows() -> Sequence[Mapping[str, Any]]:
    """The measurements, a row for each size, dimension and encoding."""
    return list(_load_json(GROWTH)["rows"]) if GROWTH.exists() else []


def _cpu_ms(points: Sequence[tuple[int, float]], capabilities: int) -> float:
    """A power of the size between two points, and beyond the last that of the last two; or in proportion to one."""
    first, first_ms = points[0]
    if capabilities <= first:
        return first_ms
    if len(points) == 1:
        return first_ms * capabilities / first
    pairs = list(pairwise(points))
    (low, low_ms), (high, high_ms) = next((pair for pair in pairs if pair[1][0] >= capabilities), pairs[-1])
    power = math.log(high_ms / low_ms) / math.log(high / low)
    return float(high_ms * (capabilities / high) ** power)


def domain_for(index: MeasuredIndex, per_second: float) -> DomainChoice:
    """The smallest domain in three zones for an index and this many queries a second; its masters are not in the cost.

    Raises:
        CannotEstimate: no type of node is big enough: the registry needs cells.
    """
    for node, (cores, memory_gb) in NODE_TYPES.items():
        cache_gb = _CACHE * (memory_gb - min(memory_gb / 2, _MAX_HEAP_GB))
        if index.memory_gb <= cache_gb and per_second * index.cpu_ms / 1000 <= _BUSY * NODES * cores:
            each = max(_MIN_GB, 10 * math.ceil(_FREE_DISK * index.disk_gb / 10))
            usd = line_at(node, NODES * HOURS).usd + line_at("gp3_gb", NODES * each).usd
            return DomainChoice(node=node, gb_each=each, usd=usd)
    raise CannotEstimate(
        f"{index.capabilities:,} capabilities and {per_second:,.0f} queries a second are more than a domain of three "
        f"{next(reversed(NODE_TYPES))} carries: see docs/scale.md"
    )


def domain_text(traffic: Traffic) -> str:
    """The index and the domain of a registry with this traffic, as text."""
    try:
        index = index_of(traffic.capabilities)
        domain = domain_for(index, _PEAK * traffic.queries / SECONDS)
    except CannotEstimate as error:
        return str(error)
    return (
        f"The index of {index.capabilities:,} capabilities, "
        f"{'measured' if index.measured else 'estimated from what was measured'}: {gigabytes(index.disk_gb)} on disk "
        f"and {gigabytes(index.memory_gb)} of memory in each copy, {index.cpu_ms:.0f} ms of a core for a query.\n"
        f'Enough for it: CONTEXT="size=production instance_type={domain.node} storage_gb={domain.gb_each}", '
        f"{domain.usd:,.0f} dollars a month for {NODES} such nodes."
    )


def gigabytes(size: float) -> str:
    """Two decimals below 1 GB, one from there on."""
    if size < 0.01:
        return "under 0.01 GB"
    return f"{size:.1f} GB" if size >= 1 else f"{size:.2f} GB"


# --- the command ---


def report(traffic: Traffic, lines: Sequence[Line]) -> str:
    """The bill as text."""

    def row(usd: float, text: str) -> str:
        return f"  {usd:10,.2f}  {text}"

    total, fixed = sum(line.usd for line in lines), sum(line.usd for line in lines if line.fixed)
    text = [f"A month with {', '.join(f'{name}={value}' for name, value in asdict(traffic).items())}:"]
    for heading, chosen in (("Without any traffic", True), ("For the traffic", False)):
        text += ["", heading]
        text += [row(x.usd, f"{x.service}: {x.formula}   [{x.why}]") for x in lines if x.fixed == chosen]
    text += ["", row(fixed, "without traffic"), row(total - fixed, "for traffic"), row(total, "in all")]
    if traffic.queries:
        text.append(row(1000 * total / traffic.queries, "a thousand queries"))
    if not fits(traffic):
        text += ["", f"{traffic.capabilities:,} capabilities are more than size={traffic.size} is for: docs/scale.md."]
    text += [
        "",
        domain_text(traffic),
        "",
        f"Assumed: `assumed` in infra/bill.json; the tokens of a rerank call are the median in {RERANK.name}.",
        f"Prices: {BILL['what']}; {BILL['region']}, {BILL['as_of']}; {BILL['source']}.",
        "Not counted: data out to the Internet, support, a custom domain, WAF, the console, throttled retries, mail.",
    ]
    return "\n".join(text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Estimate the cost of a month in AWS."""
    parser = argparse.ArgumentParser(prog="make cost", description=main.__doc__)
    for name, default in asdict(Traffic()).items():
        is_count = isinstance(default, int)
        shown = f"{default:,}" if is_count else default
        kind = (lambda text: int(float(text))) if is_count else str  # 1e6, too
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=default, help=f"default {shown}")
    parser.add_argument("--json", action="store_true", help="for scripts")
    given = vars(parser.parse_args(arguments))
    as_json = given.pop("json")
    try:
        traffic = Traffic(**given)
        lines = estimate(traffic)
    except CannotEstimate as error:
        sys.exit(str(error))
    output = report(traffic, lines)
    if as_json:
        listed = [asdict(line) | {"usd": line.usd, "formula": line.formula} for line in lines]
        total = sum(line.usd for line in lines)
        output = json.dumps({"traffic": asdict(traffic), "lines": listed, "usd": total}, indent=1)
    sys.stdout.write(f"{output}\n")


if __name__ == "__main__":
    main()
