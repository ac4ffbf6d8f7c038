"""An index in files of a bucket, over a stand-in for S3 on loopback: cold start, answers, changes."""

import os
import resource
import statistics
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np

from experiments.benchmarks.runner import module_process
from experiments.data.synthetic import registrations
from mats.adapters.files.bucket import Bucket
from mats.adapters.files.generations import FilesGenerations
from mats.adapters.files.index import FilesIndex, as_record
from mats.adapters.files.store import Store
from mats.domain.profile.profile import profile_of
from mats.domain.search.lookups import Vector
from mats.domain.search.query import Filter
from mats.domain.text.words import query_terms
from mats.ports import Stored
from mats.settings import Settings

SIZE, DIMENSION, QUERIES, ENCODER = 20_000, 1_024, 300, "random"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}


def files(data: Path, settings: Settings) -> dict[str, Any]:
    """Times of 20,000 capabilities with random vectors."""
    draw = np.random.default_rng(1)

    def vector() -> Vector:
        drawn = draw.standard_normal(DIMENSION).astype(np.float32)
        return array("f", (drawn / np.linalg.norm(drawn)).tobytes())

    os.environ.update(CREDENTIALS)
    with module_process("tests.aws.s3") as url:
        os.environ["AWS_ENDPOINT_URL_S3"] = url
        store = Store(Bucket("bucket"), "index")
        generations = FilesGenerations(store, ENCODER)
        name = generations.writable()[0].name
        texts = []
        made = [profile_of(each, origin="bench") for each in registrations(SIZE, seed=1)]
        for start in range(0, SIZE, 500):
            part = [each.model_copy(update={"rev": 1, "encoder": ENCODER}) for each in made[start : start + 500]]
            texts += [each.source.description for each in part if each.source]
            store.append(name, as_record([Stored(each, vector()) for each in part]))
        began = time.perf_counter()
        generations.compact(least=1)
        compaction_s = time.perf_counter() - began
        blob = store.bucket.load(store.head().generations[0].file)
        size_mb = len(blob.body) / 1e6 if blob else 0
        del blob

        cold = []
        for _ in range(3):
            index = FilesIndex(store, generations.writable, encoder=ENCODER)
            began, cpu = time.perf_counter(), time.process_time()
            index.page(Filter(), after=None, limit=1)
            cold.append((time.perf_counter() - began, time.process_time() - cpu))
            if len(cold) < 3:
                index.close()
        warm, cpus = [], []
        for number in range(QUERIES):
            terms, asked = query_terms(texts[number * 7 % SIZE]), vector()
            began, cpu = time.perf_counter(), time.process_time()
            found = list(index.lexical(terms, Filter(), depth=100))
            found += list(index.neural(asked, Filter(), depth=100))
            index.fetch(found[:15])
            warm.append(1_000 * (time.perf_counter() - began))
            cpus.append(1_000 * (time.process_time() - cpu))
        late = Stored(made[0].model_copy(update={"rev": 2, "encoder": ENCODER, "name": "zanzibar"}), vector())
        began = time.perf_counter()
        index.put([late])
        while not index.lexical(["zanzibar"], Filter(), depth=1):
            time.sleep(0.05)
        findable_s = time.perf_counter() - began
        index.close()
    return {
        "capabilities": SIZE,
        "dimension": DIMENSION,
        "file_mb": round(size_mb, 1),
        "cold_start_s": {"p50": round(statistics.median(each for each, _ in cold), 2)},
        "cold_start_cpu_s": {"p50": round(statistics.median(each for _, each in cold), 2)},
        "warm_ms": {"p50": round(statistics.median(warm), 1)},
        "warm_cpu_ms": {"p50": round(statistics.median(cpus), 1)},
        "change_findable_s": round(findable_s, 1),
        "compaction_s": round(compaction_s, 1),
        "memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
    }
