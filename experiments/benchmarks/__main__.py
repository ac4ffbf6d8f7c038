"""Run benchmarks by name: print their results as JSON and write them to `experiments/results/bench-NAME.json`."""

from collections.abc import Mapping

from experiments.benchmarks import mcp, pipeline, reranker
from experiments.benchmarks.load import load
from experiments.benchmarks.peers import peers
from experiments.benchmarks.runner import Benchmark, run_benchmarks
from experiments.benchmarks.scanner import scanner

BENCHMARKS: Mapping[str, Benchmark] = {
    "latency": pipeline.latency,
    "scale": pipeline.scale,
    "import": pipeline.import_,
    "answer": pipeline.answer,
    "rerank": reranker.rerank,
    "mcp": mcp.mcp,
    "load": load,
    "scanner": scanner,
    "peers": peers,
}

if __name__ == "__main__":
    run_benchmarks("bench", BENCHMARKS, __doc__)
