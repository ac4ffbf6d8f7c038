"""The child process of the scale benchmark: answers the queries on standard input, reports latency and memory."""

import json
import os
import sys
from contextlib import closing

from mats.bootstrap.local import local_system
from mats.evaluation.benchmarks.pipeline import latencies, resident_mb
from mats.settings import Settings

if __name__ == "__main__":
    with closing(local_system(Settings.from_env(os.environ))) as local:
        results = latencies(local.discover, json.load(sys.stdin))
        json.dump({**results, "resident_mb": resident_mb()}, sys.stdout)
