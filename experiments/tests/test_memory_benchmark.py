"""What the benchmark of the memory compares, over the sample registry."""

from experiments.benchmarks.memory import fill_memory, variants
from mats.domain.ranking.query import Query
from mats.evaluation.data.datasets import sample
from mats.evaluation.systems.workbench import registry_of
from mats.settings import Settings


def test_only_the_variants_with_memories_use_them_and_only_the_last_leaves_receipts(encoder):
    dataset = sample()
    served = [query for query in dataset.queries if query.relevant][:5]
    with registry_of(dataset.registrations, Settings(), encoder=encoder) as local:
        fill_memory(local, served, encoder, 20)
        used, receipts = {}, {}
        for name, answer in variants(local, 20).items():
            shortlist = answer(Query(query=served[0].text))
            used[name] = any(result.candidate.used_for for result in shortlist.ranked)
            receipts[name] = local.stores.receipts.get(shortlist.query_id) is not None
    assert list(used.values()) == [False, False, True, True]
    assert list(receipts.values()) == [False, False, False, True]
