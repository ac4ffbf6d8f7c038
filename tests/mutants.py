"""Mutants of orderings and defences: `python -m tests.mutants` plants each and runs the tests that should see it.

Each is planted alone, in a copy of the tree. First the unit tests run that import the mutated module, and those of the
whole pipeline; what survives them meets those of all policies. Exit code 1 if any survives.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CODE = Path("layers/core/python/mats")
_COPIED = ("layers", "functions", "infra", "experiments", "tests", "examples", "console", "docs", "pyproject.toml")
_PIPELINE = ("tests/unit/usecases/test_discover.py", "tests/unit/usecases/test_discover_parts.py")
_WIDE = ("tests/unit/policies",)


class Mutant(NamedTuple):
    """A fault: in a file below `mats`, the one place where `before` stands has `after`. `also` are tests of its own."""

    file: str
    before: str
    after: str
    also: str = ""


_BLEND, _SCALE, _SHORTLIST = "domain/search/blend.py", "domain/search/scale.py", "domain/search/shortlist.py"
_EXACT, _HOLDS, _RATED = "domain/policies/exact.py", "domain/policies/holds.py", "domain/policies/rated.py"
_DUPLICATES, _SENIORITY = "domain/policies/duplicates.py", "domain/policies/seniority.py"
_CLAIMS, _RELIABILITY = "domain/policies/claims.py", "domain/policies/reliability.py"

MUTANTS = (
    Mutant(_BLEND, "return reranked and Signal.LLM not in result.signals, ", "return False, "),
    Mutant(_BLEND, "for result in reranked or ranked)", "for result in ranked)"),
    Mutant(_BLEND, "-result.score, deprecated, result.id", "-result.score, False, result.id"),
    Mutant(_BLEND, "scoring = scoring if opinion.scores else scoring.without_reranker()", "pass"),
    Mutant(_BLEND, "else least + (1 - least) * value", "else value"),
    Mutant(_BLEND, "pairs, candidate.shift))\n", "pairs, candidate.shift + candidate.gain))\n"),
    Mutant("domain/search/signals.py", "0.0 if type_tags or inferred in tuple(Kind) else", "0.0 if type_tags else"),
    Mutant("domain/search/signals.py", "Signal.RETRIEVAL if signal is Signal.LLM else signal", "signal"),
    Mutant(_SCALE, "LEXICAL_SHARE = 0.6", "LEXICAL_SHARE = 0.4"),
    Mutant(_SCALE, "key=lambda id: (-scores[id], id)", "key=lambda id: -scores[id]"),
    Mutant(_SCALE, "pairs_share: float = 0.4", "pairs_share: float = 0.0"),
    Mutant("domain/search/verdict.py", "searched**2", "searched"),
    Mutant(_SHORTLIST, "if foreign and results and not exact else", "if foreign and results else"),
    Mutant(_SHORTLIST, "lists = sorted(filter(None, lists), key=lambda each: order.index(each[0]))", "pass"),
    Mutant(_SHORTLIST, "kept = list(results[:_NEAREST])", "kept = []"),
    Mutant("domain/search/lookups.py", "_GUESSED = 0.7", "_GUESSED = 1.0"),
    Mutant("domain/search/lookups.py", "_REWRITTEN = 0.9", "_REWRITTEN = 1.0"),
    Mutant("usecases/found.py", "_ABOUT_AS_RELEVANT = 0.9", "_ABOUT_AS_RELEVANT = 0.6"),
    Mutant(_EXACT, "trust = 100 if kind is Exactness.ID else profile", "trust = profile"),
    Mutant(_EXACT, "_MOST = 5", "_MOST = 50"),
    Mutant(_EXACT, "is not Exactness.ID, -profile.trust_or(self.unrated)", "is not Exactness.ID, 0"),
    Mutant(_EXACT, "replace(each, least=NAMED) if each.marks.exact else each", "each"),
    Mutant("domain/policies/lessons.py", "relevance=max(each.relevance, NAMED)", "relevance=each.relevance"),
    Mutant(_HOLDS, "grade(order[n]) >= own", "grade(order[n]) > own"),
    Mutant(_HOLDS, "order.insert(equals[-1]", "order.insert(equals[0]"),
    Mutant(_RATED, "_AS_NEAR, _MOST_AS_NEAR = 0.9, 4", "_AS_NEAR, _MOST_AS_NEAR = 0.9, 40"),
    Mutant(_RATED, "_PLACES = 3", "_PLACES = 1"),
    Mutant(_DUPLICATES, "MOST_KEPT = 3", "MOST_KEPT = 5"),
    Mutant(_DUPLICATES, "MOST_OF_A_DAY = 5", "MOST_OF_A_DAY = 50"),
    Mutant(_DUPLICATES, "SHARE = 0.8", "SHARE = 1.0"),
    Mutant(_DUPLICATES, "(echoes - set(first_echoes) - exact)", "(echoes - set(first_echoes))"),
    Mutant(_DUPLICATES, "(-each.trust_or(unrated), position", "(0, position"),
    Mutant(_DUPLICATES, "if peers and all(", "if False and all("),
    Mutant(_RATED, "if not best or best[0] in ids[: order.k]:", "if not best:"),
    Mutant(_SENIORITY, "NEW_SHARE = 0.2", "NEW_SHARE = 0.5"),
    Mutant(_SENIORITY, "_ECHOED = 0.3", "_ECHOED = 0.5"),
    Mutant(_SENIORITY, "_RATED = 0.7, 0.4, 0.3", "_RATED = 0.7, 0.4, 0.4"),
    Mutant(_SENIORITY, "_RATED = 0.7, 0.4, 0.3", "_RATED = 0.7, 0.5, 0.3"),
    Mutant(_SENIORITY, "if not beside.marks.new or beside", "if beside"),
    Mutant(_SENIORITY, "if result.unfit or result.relevance < ranked.thresholds.weak:", "if result.unfit:"),
    Mutant(_SENIORITY, "_AS_RELEVANT = 0.1", "_AS_RELEVANT = 0.0"),
    Mutant(_SENIORITY, "beside.marks.new or beside.marks.exact or", "beside.marks.new or"),
    Mutant(_SENIORITY, "ranked if ranked.reranked else self._lead", "self._lead"),
    Mutant(_SENIORITY, " or any(profile.first_registered > review for review in reviews)", ""),
    Mutant(_SENIORITY, "oldest_s + DAY_S", "oldest_s"),
    Mutant(_CLAIMS, "original.registered_s > DAY_S", "original.registered_s > 10.0"),
    Mutant(_CLAIMS, "        return trust > other\n", "        pass\n"),
    Mutant(_CLAIMS, "COPY = 0.75", "COPY = 0.95"),
    Mutant(_CLAIMS, "_COPIED = 60", "_COPIED = 600"),
    Mutant(_CLAIMS, "copied.get(each.id, ()) if each.id in active else each.marks.near", "each.marks.near"),
    Mutant(_CLAIMS, "for rule in rules[:count])", "for rule in rules[len(rules) - count :])"),
    Mutant("domain/policies/memory.py", "evidence.votes.within_reach(order.ids, order.k)", "evidence.votes"),
    Mutant("domain/policies/memory.py", "_SPARE = 2", "_SPARE = 1"),
    Mutant(_RELIABILITY, "after = limit_moves(before, ", "after = (lambda before, after, counts: after)(before, "),
    Mutant(_RELIABILITY, "each.relevance if rated else each.score", "each.relevance"),
    Mutant("domain/policies/products.py", "_STRONG = 0.5", "_STRONG = 0.1"),
    Mutant("domain/policies/products.py", "if not _is_told(tokens, span, run):", "if not tokens:"),
    Mutant("domain/policies/products.py", " if not uses[name].trusted]", "]"),
    Mutant("domain/text/variants.py", "sorted(one) == sorted(other) and ", ""),
    Mutant("domain/text/variants.py", "min(len(one), len(other)) >= _SHORTEST and ", ""),
    Mutant("domain/policies/products.py", "plain=named.rest, notes=", "notes="),
    Mutant("usecases/discover.py", "[*ahead, *behind[-_WITNESSES:]]", "ahead"),
    Mutant("usecases/rerank.py", "misfit = not 0 < len(reply.scores) <= len(sent)", "misfit = not reply.scores"),
    Mutant("edge/authorizer.py", "_LEEWAY_S = 30", "_LEEWAY_S = 3_000"),
    Mutant(
        "adapters/sqlite/registry.py",
        "rows[id] = replace(rows.get(id, NOTHING_ASSIGNED), rejected=digest)",
        "pass",
        also="tests/integration/test_trust_cli.py",
    ),
)  # fmt: skip


def plant(mutant: Mutant, tree: Path) -> str:
    """Plant a mutant; the text of its file before. Raises LookupError: its place is not there, or not the only one."""
    file = tree / CODE / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.before) != 1:
        raise LookupError(f"{mutant.file} has {mutant.before!r} {text.count(mutant.before)} times: correct the mutant")
    file.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
    return text


def suite_of(mutant: Mutant, tree: Path) -> list[str]:
    """The unit tests that import the module of a mutant, those of the pipeline, and its own."""
    module = f"mats.{mutant.file.removesuffix('.py').replace('/', '.')}"
    files = sorted((tree / "tests/unit").rglob("test_*.py"))
    own = [str(file.relative_to(tree)) for file in files if module in file.read_text(encoding="utf-8")]
    pipeline = (
        [name for name in _PIPELINE if (tree / name).exists()]
        if mutant.file.startswith(("domain/", "usecases/"))
        else []
    )
    return [*filter(None, [mutant.also]), *dict.fromkeys((*own, *pipeline))]


def is_killed(tree: Path, tests: Sequence[str]) -> bool:
    """Whether any of these tests fails in a tree."""
    if not tests:
        return False
    environment = {**os.environ, "PYTHONPATH": f"{tree / CODE.parent}:{tree}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-m",
        "not server and not long",
        *tests,
    ]
    ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False)
    if ran.returncode not in (0, 1):
        raise RuntimeError(ran.stdout.decode()[-2_000:] + ran.stderr.decode()[-2_000:])
    return ran.returncode == 1


def try_all(mutants: Sequence[Mutant], at_once: int) -> Iterator[tuple[Mutant, bool]]:
    """Each mutant with whether it was killed, in order. Raises RuntimeError: a test fails without any."""
    with tempfile.TemporaryDirectory(prefix="mats-mutants-") as folder:
        trees: SimpleQueue[Path] = SimpleQueue()
        for number in range(at_once):
            tree = Path(folder) / str(number)
            tree.mkdir()
            for name in _COPIED:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                copy(ROOT / name, tree / name)
            trees.put(tree)

        for mutant in mutants:  # each has its place, before the first is tried
            (tree / CODE / mutant.file).write_text(plant(mutant, tree), encoding="utf-8")
        every = {name for mutant in mutants for name in suite_of(mutant, tree)}
        if is_killed(tree, sorted({*every, *_WIDE})):
            raise RuntimeError("a test fails without any mutant: mend it first")

        def is_seen(mutant: Mutant) -> bool:
            tree = trees.get()
            before = plant(mutant, tree)
            try:
                return is_killed(tree, suite_of(mutant, tree)) or is_killed(tree, _WIDE)
            finally:
                (tree / CODE / mutant.file).write_text(before, encoding="utf-8")
                trees.put(tree)

        with ThreadPoolExecutor(at_once) as pool:
            yield from zip(mutants, pool.map(is_seen, mutants), strict=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", default="", help="only mutants of files whose path has this")
    parser.add_argument("--at-once", type=int, default=2, help="mutants that are tried at the same time")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if options.file in mutant.file]
    survivors = 0
    for mutant, killed in try_all(chosen, options.at_once):
        survivors += not killed
        change = f"{mutant.file}: {mutant.before.strip()} -> {mutant.after.strip()}"
        sys.stdout.write(f"{'killed  ' if killed else 'SURVIVED'} {change}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - survivors} killed, {survivors} survived\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
