"""Writer and reranker over any service that runs language models."""
