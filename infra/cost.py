"""Estimated cost of a month in AWS for a given traffic, with every formula, and the domain it needs: `make cost`."""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from infra.alarms import OWN, PIPES, charged_metrics
from infra.context import Context
from infra.sizes import SIZES
from infra.vendor import ROOT
from mats.domain.prompts.usage import Prices
from mats.settings import TITAN, Settings

GROWTH = ROOT / "experiments" / "results" / "aws-growth.json"
"""Growth of the index, as measured for docs/decisions/0061."""
_RERANK = ROOT / "experiments" / "results" / "bench-rerank.json"
_PRICES = Path(__file__).with_name("prices.json")
_MODEL_PRICES = ROOT / "layers" / "core" / "python" / "mats" / "prices.json"
HOURS = 730
SECONDS = HOURS * 3600
METRICS = sum(map(len, OWN.values())) + len(PIPES)
"""Custom metrics: those that functions write, and the Pipes' state; those of refusals apart."""
ALARM_METRICS = charged_metrics(usd_per_hour=Context().spend_per_hour)
NIGHTS = 30
PIECE_S = 780
"""A piece of maintenance ends two minutes before the function's timeout."""
TRANSITIONS = 4
"""States that an execution passes through for each piece, at most."""
INTERFACE_ENDPOINTS = 2
"""Bedrock and EventBridge; DynamoDB's is a gateway, which costs nothing."""
SQS_POLLS = 2 * 5 * SECONDS // 20
"""Lambda asks an empty queue five at a time, each waiting 20 seconds."""
STREAM_READS = 4 * SECONDS
"""A Pipe reads a shard four times a second; counted as if each were charged."""


class CannotEstimate(ValueError):
    """The traffic or the deployment cannot be priced; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Assumed load per query and per change; replace them by figures of your dashboard."""

    discovery_gb: float = 1769 / 1024
    """The memory of the discovery function; a snapshot and a restore of it are charged by this size, too."""
    discovery_s: float = 1.0
    kept_versions: int = 3
    """Versions of discovery, each with a snapshot; older ones are deleted every night."""
    queries_per_restore: int = 200
    """Queries that an execution environment answers before Lambda takes it away."""
    maintenance_gb: float = 1.0
    maintenance_s_per_1000: float = 6.0
    """Seconds of a nightly reconciliation for a thousand capabilities, most of them reads."""
    deployments: int = 4
    """In a month; after each, registrations, profiles and index are compared twice."""
    enrichment_gb: float = 1.0
    enrichment_s: float = 4.0
    query_tokens: int = 20
    profile_tokens: int = 400
    writer_input_tokens: int = 1_500
    writer_output_tokens: int = 350
    write_units: int = 66
    """Of a change: the item, twice the profile and once the version before, 8 kB each, in transactions; two marks."""
    read_units: int = 16
    reconcile_read_units: int = 26
    """Of a capability that is compared: scans of both tables, then its item, its trust and three times its profile."""
    stored_kb: float = 30.0
    """Of a capability in all tables, with earlier versions."""
    indexed_kb: float = 20.0
    """Of a capability in one copy of the index, graph included (aws-growth.json)."""
    query_log_kb: float = 8.0
    change_log_kb: float = 1.0
    receipt_kb: float = 4.0
    """Of a query's vector, its text and the ids shown; a write unit for each kB."""
    receipt_writes: int = 2
    """Before and after the ranking."""
    tally_read_units: float = 7.5
    """Of 15 candidates, each reported on by up to 30 callers; half a unit for 4 kB."""
    reported_share: float = 0.2
    """Answers that callers report on."""
    report_write_units: int = 13
    """Of a transaction: the receipt that stays, an outcome and its tally, twice each; and a place in the index."""
    feedback_gb_s: float = 0.03
    report_rows: int = 2
    """The receipt that stays, and an outcome; each is an event."""
    learning_gb_s: float = 0.03


ASSUMED = Assumptions()


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

    def __post_init__(self) -> None:
        faults = []
        if self.size not in SIZES:
            faults.append(f"size must be {' or '.join(SIZES)}, not {self.size!r}")
        if self.network not in ("public", "vpc"):
            faults.append(f"network must be public or vpc, not {self.network!r}")
        numbers = {"queries": self.queries, "changes": self.changes, "capabilities": self.capabilities}
        faults += [f"{name} must not be negative" for name, number in numbers.items() if number < 0]
        if faults:
            raise CannotEstimate("; ".join(faults))


def fits(traffic: Traffic, assumed: Assumptions = ASSUMED) -> bool:
    """Whether the index leaves half of the domain's storage free, which merges and a reindex need."""
    size = SIZES[traffic.size]
    return traffic.capabilities * assumed.indexed_kb * size.zones <= size.nodes * size.gb_each * 1e6 / 2


# --- the bill ---


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the bill. `usd` is `quantity` × `price` / `per`, in dollars a month."""

    service: str
    quantity: float
    unit: str
    price: float
    per: int
    why: str
    fixed: bool = False
    """Whether it does not depend on traffic."""

    @property
    def usd(self) -> float:
        return self.quantity * self.price / self.per

    @property
    def formula(self) -> str:
        quantity = f"{self.quantity:,.0f}" if self.quantity >= 100 else f"{self.quantity:.3g}"
        price = f"{self.price:.10f}".rstrip("0").rstrip(".")
        return f"{quantity} {self.unit} × ${price}" + (f" / {self.per:,}" if self.per != 1 else "")


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices with their source."""

    table: Mapping[str, Any]
    models: Prices

    @classmethod
    def load(cls) -> Self:
        """Load the prices in the repository."""
        return cls(_load_json(_PRICES), Prices.parse(_load_json(_MODEL_PRICES)))

    def __call__(self, key: str, quantity: float, why: str) -> Line:
        """A line at the price of this key.

        Raises:
            CannotEstimate: it has no price.
        """
        if key not in self.table["prices"]:
            raise CannotEstimate(f"{_PRICES.name} has no price of {key}")
        price = self.table["prices"][key]
        return Line(price["service"], quantity, price["unit"], price["usd"], price["per"], why)

    def tokens(self, model: str, calls: int, per_call: tuple[float, float], why: str) -> Iterator[Line]:
        """Lines for the input and output tokens of a model.

        Raises:
            CannotEstimate: it has no price.
        """
        names = ("tokens in", "tokens out")
        for name, each, one in zip(names, per_call, ((10**6, 0), (0, 10**6)), strict=True):
            million = self.models.usage(model, *one).usd
            if million is None:
                raise CannotEstimate(f"the price of {model} is not known; add it to mats/prices.json")
            if each:
                yield Line(f"Bedrock {model}", calls * each, name, million, 10**6, f"{calls:,} × {each:,.0f} {why}")


def estimate(traffic: Traffic, price: PriceList, assumed: Assumptions = ASSUMED) -> list[Line]:
    """Every line of the month's bill.

    Raises:
        CannotEstimate: something has no price.
    """
    given = (traffic, price, assumed)
    fixed = [replace(line, fixed=True) for part in (_standing, _maintenance) for line in part(*given)]
    return [*fixed, *(line for part in (_queries, _changes) for line in part(*given))]


def _standing(traffic: Traffic, price: PriceList, assumed: Assumptions) -> Iterator[Line]:
    size = SIZES[traffic.size]
    yield price(size.node, size.nodes * HOURS, f"{size.nodes} × {HOURS} hours")
    if size.masters:
        yield price(size.master, size.masters * HOURS, f"{size.masters} masters × {HOURS} hours")
    yield price("gp3_gb", size.nodes * size.gb_each, f"{size.nodes} × {size.gb_each} GB")
    versions, gb = assumed.kept_versions, assumed.discovery_gb
    yield price("snapstart_gb_s", versions * gb * SECONDS, f"{versions} versions × {gb:.3g} GB × {SECONDS:,} s")
    streams = len(PIPES)
    yield price("dynamodb_stream_read", streams * STREAM_READS, f"{streams} streams × 4 a second × {SECONDS:,} s")
    yield price("sqs_request", SQS_POLLS, f"2 queues × 5 pollers × {SECONDS:,} s / 20 s")
    yield price("workflow_request", SECONDS / 300, f"the Pipes' state, {SECONDS:,} s / 300 s")
    yield price("metric", METRICS, f"{METRICS} metrics")
    yield price("alarm", ALARM_METRICS, f"{ALARM_METRICS} metrics in alarms")
    yield price("dashboard", 1, "1 dashboard")
    yield price("key", 1, "the key of the alarms' topic")
    stored = traffic.capabilities * assumed.stored_kb / 1e6
    for key in ("dynamodb_gb", "dynamodb_backup_gb"):
        yield price(key, stored, f"{traffic.capabilities:,} capabilities × {assumed.stored_kb:g} kB")
    if traffic.network == "vpc":
        endpoints, zones = INTERFACE_ENDPOINTS, size.nodes
        why = f"{endpoints} endpoints × {zones} zones × {HOURS} hours"
        yield price("endpoint_hour", endpoints * zones * HOURS, why)


def _maintenance(traffic: Traffic, price: PriceList, assumed: Assumptions) -> Iterator[Line]:
    """Comparisons of everything, every night and twice for each deployment."""
    runs = NIGHTS + 2 * assumed.deployments
    compared = runs * traffic.capabilities
    count = f"{runs} comparisons × {traffic.capabilities:,} capabilities"
    yield price("dynamodb_read", compared * assumed.reconcile_read_units, count)
    seconds = compared * assumed.maintenance_s_per_1000 / 1000
    why = f"{count} × {assumed.maintenance_s_per_1000:g} s / 1,000 × {assumed.maintenance_gb:g} GB"
    yield price("lambda_gb_s", seconds * assumed.maintenance_gb, why)
    pieces = runs * max(1, math.ceil(seconds / runs / PIECE_S)) + NIGHTS
    yield price("lambda_request", pieces, f"pieces of {PIECE_S} s, and the nightly look at versions")
    yield price("state_transition", pieces * TRANSITIONS, f"{TRANSITIONS} for each piece")


def _queries(traffic: Traffic, price: PriceList, assumed: Assumptions) -> Iterator[Line]:
    queries, gb, seconds = traffic.queries, assumed.discovery_gb, assumed.discovery_s
    count = f"{queries:,} queries"
    yield price("api_call", queries, count)
    yield price("lambda_request", queries, count)
    yield price("lambda_gb_s", queries * gb * seconds, f"{count} × {gb:.3g} GB × {seconds:g} s")
    per_restore = assumed.queries_per_restore
    why = f"a restore of {gb:.3g} GB for {per_restore} queries"
    yield price("snapstart_restore_gb", queries / per_restore * gb, why)
    yield from price.tokens(TITAN, queries, (assumed.query_tokens, 0), "of a query (assumed)")
    measured = _load_json(_RERANK)  # by `make bench BENCH=rerank`
    in_and_out = (float(measured["input_tokens"]["p50"]), float(measured["output_tokens"]["p50"]))
    yield from price.tokens(traffic.rerank_model, queries, in_and_out, f"a call (median, {_RERANK.name})")
    logged, why = queries * assumed.query_log_kb / 1e6, f"{count} × {assumed.query_log_kb:g} kB"
    yield price("log_gb", logged, why)
    yield from _receipts(traffic, price, assumed)
    if traffic.network == "vpc":
        yield price("endpoint_gb", logged, f"{why}, about as much as is logged")


def _receipts(traffic: Traffic, price: PriceList, assumed: Assumptions) -> Iterator[Line]:
    """A receipt for each answer, what callers report about some of them, and the tallies of candidates."""
    queries, kb = traffic.queries, assumed.receipt_kb
    why = f"{queries:,} receipts × {assumed.receipt_writes} × {kb:g} kB"
    yield price("dynamodb_write", queries * assumed.receipt_writes * kb, why)
    yield price("dynamodb_gb", queries * kb / 1e6, f"receipts of a month, {kb:g} kB")
    units = assumed.tally_read_units
    yield price("dynamodb_read", queries * units, f"{queries:,} queries × {units:g}")
    reports = queries * assumed.reported_share
    count = f"{assumed.reported_share:.0%} of {queries:,} answers are reported on"
    yield price("api_call", reports, count)
    yield price("lambda_request", reports, count)
    yield price("lambda_gb_s", reports * assumed.feedback_gb_s, f"{count} × {assumed.feedback_gb_s:g} GB s")
    yield price("dynamodb_write", reports * assumed.report_write_units, f"{count} × {assumed.report_write_units}")
    rows = reports * assumed.report_rows
    count = f"{count} × {assumed.report_rows} rows"
    yield price("pipe_request", rows, count)
    yield price("event", rows, count)
    yield price("sqs_request", rows * 3, f"{count} × sent, received, deleted")
    yield price("lambda_request", rows, f"{count}, at most")
    yield price("lambda_gb_s", rows * assumed.learning_gb_s, f"{count} × {assumed.learning_gb_s:g} GB s")


def _changes(traffic: Traffic, price: PriceList, assumed: Assumptions) -> Iterator[Line]:
    changed, gb, seconds = traffic.changes, assumed.enrichment_gb, assumed.enrichment_s
    count = f"{changed:,} changes"
    yield price("dynamodb_write", changed * assumed.write_units, f"{count} × {assumed.write_units}")
    yield price("dynamodb_read", changed * assumed.read_units, f"{count} × {assumed.read_units}")
    yield price("pipe_request", changed, count)
    yield price("event", changed, count)
    yield price("archive_gb", changed / 1e6, f"{count} × 1 kB")
    yield price("sqs_request", changed * 3, f"{count} × sent, received, deleted")
    yield price("lambda_request", changed, count)
    yield price("lambda_gb_s", changed * gb * seconds, f"{count} × {gb:g} GB × {seconds:g} s")
    written = (assumed.writer_input_tokens, assumed.writer_output_tokens)
    yield from price.tokens(traffic.writer_model, changed, written, "a description (assumed)")
    yield from price.tokens(TITAN, changed, (assumed.profile_tokens, 0), "of a profile (assumed)")
    yield price("log_gb", changed * assumed.change_log_kb / 1e6, f"{count} × {assumed.change_log_kb:g} kB")


def _load_json(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


# --- the domain: one shard, with a copy on each of up to three nodes, so every node must hold all of it ---

NODES = 3
NODE_TYPES = {"r7g.large.search": (2, 16), "r7g.xlarge.search": (4, 32), "r7g.2xlarge.search": (8, 64),
              "r7g.4xlarge.search": (16, 128)}  # fmt: skip
"""Cores and GB of memory. More capabilities or queries need bigger nodes, not more of them."""
_MAX_HEAP_GB = 32
_CACHE = 0.8
"""Share of the memory beside the heap for what a vector search reads."""
_BUSY = 0.5
"""Share of the cores: at a higher one, queries wait for each other, and the loss of a node is not survived."""
_FREE_DISK = 2
"""Times the index: a reindex makes a second one."""
_MIN_GB = 10
_PEAK = 10
"""Times the mean of queries a second."""


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
    """Three nodes that carry an index and a load."""

    index: MeasuredIndex
    node: str
    gb_each: int
    usd: float
    """A month, without masters."""

    def __str__(self) -> str:
        index, how = self.index, "measured" if self.index.measured else "estimated from what was measured"
        return (
            f"The index of {index.capabilities:,} capabilities, {how}: {gigabytes(index.disk_gb)} on disk and "
            f"{gigabytes(index.memory_gb)} of memory in each copy, {index.cpu_ms:.0f} ms of a core for a query.\n"
            f'Enough for it: CONTEXT="size=production instance_type={self.node} storage_gb={self.gb_each}", '
            f"{self.usd:,.0f} dollars a month for {NODES} such nodes."
        )


def index_of(capabilities: int, *, dimension: int = 1_024, encoding: str = "float") -> MeasuredIndex:
    """The index at this size: sizes in proportion to the nearest larger one measured, or else the largest.

    Processor time between two sizes follows a power of the size, and beyond the largest the power of the last two, or
    grows in proportion if there is but one.

    Raises:
        CannotEstimate: nothing was measured.
    """
    chosen = [row for row in growth_rows() if (row["dimension"], row["encoding"]) == (dimension, encoding)]
    if not chosen:
        raise CannotEstimate(f"{GROWTH.name} has no index of {dimension:,} components: docs/decisions/0061")
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
    """What was measured, a row for each size, dimension and encoding."""
    return list(_load_json(GROWTH)["rows"]) if GROWTH.exists() else []


def _cpu_ms(points: Sequence[tuple[int, float]], capabilities: int) -> float:
    first, first_ms = points[0]
    if capabilities <= first:
        return first_ms
    if len(points) == 1:
        return first_ms * capabilities / first
    pairs = list(pairwise(points))
    (low, low_ms), (high, high_ms) = next((pair for pair in pairs if pair[1][0] >= capabilities), pairs[-1])
    power = math.log(high_ms / low_ms) / math.log(high / low)
    return float(high_ms * (capabilities / high) ** power)


def domain_for(index: MeasuredIndex, per_second: float, price: PriceList) -> DomainChoice:
    """The smallest domain in three zones for an index and this many queries a second.

    Raises:
        CannotEstimate: no type of node is big enough: the registry needs cells.
    """
    for node, (cores, memory_gb) in NODE_TYPES.items():
        cache_gb = _CACHE * (memory_gb - min(memory_gb / 2, _MAX_HEAP_GB))
        if index.memory_gb <= cache_gb and per_second * index.cpu_ms / 1000 <= _BUSY * NODES * cores:
            each = max(_MIN_GB, 10 * math.ceil(_FREE_DISK * index.disk_gb / 10))
            usd = price(node, NODES * HOURS, "").usd + price("gp3_gb", NODES * each, "").usd
            return DomainChoice(index=index, node=node, gb_each=each, usd=usd)
    raise CannotEstimate(
        f"{index.capabilities:,} capabilities and {per_second:,.0f} queries a second are more than a domain of three "
        f"{next(reversed(NODE_TYPES))} carries: see docs/scale.md"
    )


def domain_text(traffic: Traffic, price: PriceList) -> str:
    """The index and the domain of a registry with this traffic, as text."""
    try:
        return str(domain_for(index_of(traffic.capabilities), _PEAK * traffic.queries / SECONDS, price))
    except CannotEstimate as error:
        return str(error)


def gigabytes(size: float) -> str:
    """Two decimals below 1 GB, one from there on."""
    if size < 0.01:
        return "under 0.01 GB"
    return f"{size:.1f} GB" if size >= 1 else f"{size:.2f} GB"


# --- the command ---


def report(traffic: Traffic, lines: Sequence[Line], price: PriceList) -> str:
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
        text += ["", f"{traffic.capabilities:,} capabilities fill more than half of a {traffic.size} domain."]
    source = price.table
    text += [
        "",
        domain_text(traffic, price),
        "",
        f"Prices: {source['what']}; {source['region']}, {source['as_of']}; {source['source']}.",
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
        traffic, price = Traffic(**given), PriceList.load()
        lines = estimate(traffic, price)
    except CannotEstimate as error:
        sys.exit(str(error))
    output = report(traffic, lines, price)
    if as_json:
        listed = [asdict(line) | {"usd": line.usd, "formula": line.formula} for line in lines]
        total = sum(line.usd for line in lines)
        output = json.dumps({"traffic": asdict(traffic), "lines": listed, "usd": total}, indent=1)
    sys.stdout.write(f"{output}\n")


if __name__ == "__main__":
    main()
