"""The child process of the scale benchmark: answers queries over a registry, reports latency and memory."""

import json
import os
import resource
import sys

from mats.bootstrap.local import local_system
from mats.evaluation.benchmarks.pipeline import latencies
from mats.settings import Settings


def main() -> None:
    """Read queries from standard input, write the results to standard output."""
    texts = json.load(sys.stdin)
    local = local_system(Settings.from_env(os.environ))
    figures = latencies(local.discover, texts)
    figures["resident_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    json.dump(figures, sys.stdout)
    local.close()


if __name__ == "__main__":
    main()
