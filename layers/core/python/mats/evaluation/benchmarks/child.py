"""The measured half of the scale benchmark: opens a registry, answers queries, reports latency and memory."""

import json
import os
import resource
import sys

from mats.bootstrap.local import Local
from mats.evaluation.benchmarks.pipeline import timed
from mats.settings import Settings


def main() -> None:
    """Read the queries from standard input, write the figures to standard output."""
    texts = json.load(sys.stdin)
    local = Local(Settings.from_env(os.environ))
    figures = timed(local.discover, texts)
    figures["resident_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    json.dump(figures, sys.stdout)
    local.close()


if __name__ == "__main__":
    main()
