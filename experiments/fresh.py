"""Tell which results are older than what they depend on, and measure those anew: `python -m experiments.fresh --help`.

Each results file keeps a digest of every source that it depends on. Of Python the syntax tree is digested without
docstrings, so neither a rebase nor a comment makes results old.
"""

import argparse
import ast
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mats.evaluation import results as stored
from mats.evaluation.results import RESULTS
from mats.resources import REPOSITORY

_MATS, _HERE = "layers/core/python/mats", "experiments"
_ANSWER = tuple(
    f"{_MATS}/{name}"
    for name in (
        "bootstrap/policies.py", "calibration.json", "domain/policies/*.py", "domain/policies/products.txt",
        "domain/profile/index_fields.py",
        "domain/profile/index_keys.py", "domain/profile/profile.py", "domain/profile/wording.py",
        "domain/protocols/catalogue.py", "domain/protocols/descriptors.py", "domain/protocols/operation_words.py",
        "domain/search/*.py", "domain/text/acts.py",
        "domain/text/common_words.py", "domain/text/spelling.py", "domain/text/words.py",
        "usecases/discover.py", "usecases/found.py", "adapters/sqlite/index.py", "adapters/sqlite/matrix.py",
        "adapters/sqlite/postings.py", "adapters/encoder/*.py",
    )
)  # fmt: skip
"""What decides which results an answer has, without a language model."""
_TOLD = tuple(f"{_MATS}/domain/policies/{name}.py" for name in ("lessons", "memory"))
"""Policies that do nothing where operators and callers have told nothing, as in most experiments."""
_STORE = tuple(f"{_MATS}/{name}" for name in ("adapters/sqlite/*.py", "adapters/encoder/*.py", "usecases/enrich.py"))
_PROMPT = tuple(f"{_MATS}/{name}" for name in ("prompts/rerank.md", "domain/prompts/rerank_prompt.py"))
_SERVING = tuple(f"{_MATS}/{name}" for name in ("adapters/threads.py", "usecases/stages.py", "usecases/rerank.py"))
_TOOLS = tuple(f"{_MATS}/{name}" for name in ("edge/mcp/tools.py", "edge/schema.py"))
_OPENSEARCH = tuple(f"{_MATS}/adapters/opensearch/{name}.py" for name in ("index", "mapping"))
_BENCHMARKS = f"{_HERE}/benchmarks"
_FORM = tuple(f"{_HERE}/{name}.py" for name in ("measures", "panels", "variants"))

SOURCES: Mapping[str, Sequence[str]] = {
    "aws-cold": ("functions/*/handler.py", f"{_MATS}/bootstrap/cloud.py", "layers/vendor/requirements.txt"),
    "aws-parity": (*_OPENSEARCH, *_ANSWER, f"{_BENCHMARKS}/aws/__main__.py"),
    "bench-answer": (*_ANSWER, f"{_MATS}/edge/schema.py", "examples/registry.jsonl"),
    "bench-import": (*_STORE, f"{_BENCHMARKS}/pipeline.py"),
    "bench-latency": (*_ANSWER, f"{_BENCHMARKS}/serving.py"),
    "bench-load": (*_SERVING, f"{_MATS}/local/service.py", f"{_BENCHMARKS}/load.py"),
    "bench-mcp": (*_TOOLS, f"{_BENCHMARKS}/mcp.py"),
    "bench-peers": (*_ANSWER, f"{_BENCHMARKS}/peers.py", f"{_BENCHMARKS}/peers_process.py"),
    "bench-rerank": (*_PROMPT, f"{_BENCHMARKS}/reranker.py"),
    "bench-scale": (*_ANSWER, f"{_BENCHMARKS}/serving.py", f"{_HERE}/data/enlarge.py"),
    "bench-scanner": (f"{_MATS}/domain/capability/suspicion.*", f"{_BENCHMARKS}/scanner.py"),
    "experiment-ablate": (
        *_ANSWER,
        *_TOLD,
        *(f"{_MATS}/domain/learning/{name}.py" for name in ("outcome", "remembered", "voting")),
        f"{_HERE}/ablate/*.py",
        f"{_HERE}/attacks/*.py",
    ),
    "experiment-language-model": (
        *_ANSWER,
        *_FORM,
        *_PROMPT,
        f"{_HERE}/studies/language_model.py",
        f"{_HERE}/recordings.py",
    ),
    "vendor-layer": ("layers/*/requirements.txt", "infra/vendor.py"),
}
"""The sources of each results file; any other experiment depends on what an answer does, and on its study."""
KEPT: Mapping[str, str] = {
    "aws-growth": "half a day of filling a node; docs/scale.md has the commit of each row",
    "calibration": "measuring it again would fit the constants of the service again; docs/scoring.md has its commit",
}
"""Results that may be older than their sources, and why: the pages that show them name the commit."""


def sources_of(name: str) -> Sequence[str]:
    """Paths below the repository that a results file depends on, sorted. Raises LookupError: a pattern finds none."""
    study = f"{_HERE}/studies/{name.removeprefix('experiment-').replace('-', '_')}.py"
    found: set[str] = set()
    patterns = SOURCES.get(name, (*_ANSWER, *_FORM, study))
    for pattern in patterns:
        matches = {str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob(pattern)}
        if not matches:
            raise LookupError(f"{name} depends on {pattern}, which is not there: correct {_HERE}/fresh.py")
        found |= matches
    return sorted(found.difference(_TOLD).union(pattern for pattern in patterns if pattern in _TOLD))


@cache
def digest(path: Path) -> str:
    """A digest of what a file does: of a Python file without comments and docstrings, of any other all of it."""
    text = path.read_bytes()
    if path.suffix == ".py":
        text = repr(_shape(ast.parse(text))).encode()
    return hashlib.sha256(text).hexdigest()[:12]


def _shape(value: Any) -> Any:
    """A syntax tree as nested tuples, the same under every version of Python: without what is empty."""
    if isinstance(value, ast.AST):
        fields = ((name, _shape(inner)) for name, inner in ast.iter_fields(value))
        return (type(value).__name__, *(field for field in fields if field[1] not in (None, ())))
    if isinstance(value, list):
        return tuple(_shape(each) for each in value if not _is_docstring(each))
    return value


def _is_docstring(value: Any) -> bool:
    constant = value.value if isinstance(value, ast.Expr) else None
    return isinstance(constant, ast.Constant) and isinstance(constant.value, str)


def write_results(name: str, results: dict[str, Any], folder: Path | None = None) -> Path:
    """Write results with their provenance and the digests of their sources; the path of the file."""
    try:
        sources = {path: digest(REPOSITORY / path) for path in sources_of(name)}
    except LookupError:
        sources = {}  # Of a benchmark that nothing tracks
    return stored.write_results(name, {**results, "sources": sources}, folder)


def changes_of(name: str, results: Mapping[str, Any]) -> Iterator[str]:
    """The sources that differ from those that were measured; `sources` if the results do not say."""
    known = results.get("sources")
    if not known:
        yield "their sources were noted"
        return
    now = {path: digest(REPOSITORY / path) for path in sources_of(name)}
    gone = (path for path in known if not (REPOSITORY / path).exists())
    for path in sorted({*gone, *now}):
        if known.get(path) != now.get(path):
            yield f"{path} changed"


def stale() -> Iterator[tuple[str, list[str], float]]:
    """Each results file that is missing, or older than its sources: its name, what changed, the seconds it takes."""
    studies = (path.stem.replace("_", "-") for path in (REPOSITORY / _HERE / "studies").glob("[a-z]*.py"))
    for path in sorted({*RESULTS.glob("*.json"), *(RESULTS / f"experiment-{name}.json" for name in studies)}):
        if not path.exists():
            yield path.stem, ["it had results"], 60.0
        elif path.stem not in KEPT:
            results = json.loads(path.read_text(encoding="utf-8"))
            if reasons := list(changes_of(path.stem, results)):
                yield path.stem, reasons, float(results.get("seconds") or 60)


def commands(names: Iterable[str], data: Path) -> Iterator[list[str]]:
    """The commands that measure these results, the fewest that do."""
    by_kind: dict[str, list[str]] = {}
    for name in names:
        kind, _, rest = name.partition("-")
        by_kind.setdefault(name if name in ("experiment-ablate", "vendor-layer") else kind, []).append(rest)
    of_data = ["--data", str(data), "--results", str(RESULTS)]
    programs = {
        "experiment": ["experiments", "run", *of_data],
        "experiment-ablate": ["experiments", "ablate", *of_data],
        "bench": ["experiments.benchmarks", *of_data],
        "aws": ["experiments.benchmarks.aws", *of_data],
    }
    for kind, known in by_kind.items():
        if kind == "vendor-layer":
            yield ["make", "--no-print-directory", "vendor"]
        else:
            yield [sys.executable, "-m", *programs[kind], *(known if kind != "experiment-ablate" else ())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder of judged data sets")
    parser.add_argument("--run", action="store_true", help="measure what is old anew")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="results to measure, old or not; default: all old ones"
    )
    options = parser.parse_args()
    old = list(stale())
    for name, reasons, seconds in old:
        more = f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""
        sys.stdout.write(f"{name}: measured before {reasons[0]}{more}; takes some {seconds:.0f} s\n")
    sys.stdout.write(f"{len(old)} old, some {sum(seconds for *_, seconds in old) / 60:.0f} minutes: make fresh\n")
    failed = 0
    for command in commands(options.names or [name for name, *_ in old], options.data) if options.run else ():
        sys.stderr.write(f"{' '.join(command)}\n")
        failed += subprocess.run(command, cwd=REPOSITORY, check=False).returncode != 0  # noqa: S603
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
