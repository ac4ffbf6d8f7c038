"""The paper's pipeline as values: query, BM25, fusion, scale, blend, verdict, answer."""
