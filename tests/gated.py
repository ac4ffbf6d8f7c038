"""What the gate must see, and what not: `python -m tests.gated --data DATA` plants each change and runs the gate.

Each change is planted alone, in a copy of the tree. Exit code 1 if a fault passes the gate, or a change that is
harmless does not.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutants import CODE, ROOT

_CALIBRATION, _SCALE, _SIGNALS = "calibration.json", "domain/search/scale.py", "domain/search/signals.py"
_BLEND, _POSTINGS, _BENCH = "domain/search/blend.py", "adapters/sqlite/postings.py", "evaluation/systems/workbench.py"

FAULTS = (
    (_CALIBRATION, '"pairs_share": 0.4', '"pairs_share": 0.0'),
    (_SCALE, "LEXICAL_SHARE = 0.6", "LEXICAL_SHARE = 0.1"),
    (_CALIBRATION, '"match": 0.72', '"match": 0.55'),
    ("domain/profile/index_fields.py", '"parameters": 1.2', '"parameters": 3.0'),
    (_CALIBRATION, '"even": 0.35', '"even": 0.3'),
)
HARMLESS = (
    (_SCALE, "return sorted(scores, key=", "return sorted(reversed(list(scores)), key="),
    (_SCALE, "self.pairs_share * pairs / (pairs + _PAIRS_EVEN)",
     "(self.pairs_share * (pairs / (_PAIRS_EVEN + pairs)))"),
    (_SCALE, "return score / (score + self.c)", "return 1 - self.c / (score + self.c)"),
    (_SCALE, "(self.even - mixture - shift) / self.spread", "-(mixture + shift - self.even) / self.spread"),
    (_SCALE, "in lexical.items():", "in reversed(list(lexical.items())):"),
    (_SCALE, "lexical + (1 - self.lexical_share) * neural", "(lexical - neural) + neural"),
    (_SIGNALS, "total = sum(present.values())", "total = sum(sorted(present.values()))"),
    (_SIGNALS, "zip(weighed.values(), values, strict=True)", "reversed([*zip(weighed.values(), values, strict=True)])"),
    (_BLEND, "sorted(results, key=key)", "sorted(reversed(results), key=key)"),
    (_BLEND, "scoring) for candidate in candidates]", "scoring) for candidate in reversed(candidates)]"),
    (_BLEND, "max((result.relevance for result in reranked or ranked), default=None)",
     "min((-result.relevance for result in reranked or ranked), default=0.0) * -1 if ranked else None"),
    ("domain/search/bm25.py", "math.log((every - held + 0.5) / (held + 0.5))",
     "math.log(every - held + 0.5) - math.log(held + 0.5)"),
    (_POSTINGS, "_PART = 16_384", "_PART = 1_024"),
    (_POSTINGS, "_FEW = 4", "_FEW = 40"),
    (_POSTINGS, "_GROWTH = 8", "_GROWTH = 2"),
    ("adapters/sqlite/matrix.py", "_RESCORED * depth,", "2 * _RESCORED * depth,"),
    (_BENCH, "_BATCH = 64", "_BATCH = 7"),
    (_BENCH, "            for start in", "            registrations = registrations[::-1]\n            for start in"),
    ("domain/text/words.py", "set(map(stem, content_words(text)))", "{stem(word) for word in content_words(text)}"),
    ("usecases/discover.py", "list(order.ids[: self.window])", "[*order.ids[: self.window]]"),
)  # fmt: skip


def passes(tree: Path, gates: list[list[str]]) -> bool:
    """Whether a tree passes every gate. Raises RuntimeError: one could not be run."""
    environment = {**os.environ, "PYTHONPATH": str(tree / CODE.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    for arguments in gates:
        command = [sys.executable, "-m", "mats.local.cli", "gate", *arguments]
        ran = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode and " fell from " not in ran.stderr:
            raise RuntimeError(ran.stderr[-2_000:])
        if ran.returncode:
            sys.stdout.write("".join(f"    {line}\n" for line in ran.stderr.splitlines() if " fell from " in line))
            return False
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of judged data sets; without it, the sample alone is asked")
    options = parser.parse_args()
    gates = [["--baseline", "examples/baseline.json"]]
    if options.data:
        data = str(options.data.resolve())
        sets = ("--set", "agents", "--set", "mcp-tools-closed")
        gates.append(["--baseline", "experiments/baseline.json", "--data", data, *sets])
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="mats-gated-") as folder:
        tree = Path(folder)
        for name in ("layers", "examples", "experiments/baseline.json", "pyproject.toml"):
            (tree / name).parent.mkdir(exist_ok=True)
            (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, tree / name)
        for wanted, changes in ((False, FAULTS), (True, HARMLESS)):
            for name, before, after in changes:
                file = tree / CODE / name
                text = file.read_text(encoding="utf-8")
                if before not in text:
                    raise LookupError(f"{name} has no {before!r}: correct the change")
                file.write_text(text.replace(before, after), encoding="utf-8")
                right = passes(tree, gates) == wanted
                file.write_text(text, encoding="utf-8")
                wrong += not right
                sys.stdout.write(f"{'right' if right else 'WRONG'}: {name}: {before.strip()} -> {after.strip()}\n")
                sys.stdout.flush()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
