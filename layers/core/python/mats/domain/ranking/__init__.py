"""Queries, and the arithmetic of scores: BM25, fusion, blend."""
