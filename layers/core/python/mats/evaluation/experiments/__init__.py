"""The paper's experiments: each is a function of a laboratory, and its results are JSON."""
