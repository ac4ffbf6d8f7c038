"""One data set, one retriever: the paper's measures with their intervals."""

from typing import Any

from evaluation.datasets import Dataset
from evaluation.metrics import Run, estimate, per_query
from evaluation.systems import Progress, Retriever, cached, registry_of, run_discover, run_plain, unheard, variant
from mats.settings import Settings


def evaluate(
    dataset: Dataset,
    retriever: Retriever,
    settings: Settings,
    *,
    indexed: Progress = unheard,
    asked: Progress = unheard,
) -> dict[str, Any]:
    """Run every query of a data set; measures, intervals, sizes and what was used."""
    if retriever is Retriever.BM25:
        return summary(dataset, retriever, settings.k, run_plain(dataset, settings.k, progress=asked), None)
    encoder = cached(settings)
    with registry_of(dataset.registrations, settings, encoder=encoder, progress=indexed) as local:
        discover = variant(local.discovery.discover, retriever)
        run = run_discover(discover, dataset.queries, progress=asked)
    return summary(dataset, retriever, settings.k, run, encoder.name if encoder else None)


def summary(dataset: Dataset, retriever: Retriever, k: int, run: Run, encoder: str | None) -> dict[str, Any]:
    """Measures of a run as JSON has them."""
    estimates = {name: estimate(values) for name, values in per_query(run, dataset.queries).items()}
    return {
        "dataset": dataset.name,
        "data_sha256": dataset.digest,
        "documents": len(dataset.registrations),
        "refused": len(dataset.refused),
        "queries": len(dataset.queries),
        "retriever": retriever,
        "k": k,
        "encoder": encoder,
        "metrics": {name: round(e.mean, 4) for name, e in estimates.items()},
        "intervals_95": {name: [round(e.low, 4), round(e.high, 4)] for name, e in estimates.items()},
    }
