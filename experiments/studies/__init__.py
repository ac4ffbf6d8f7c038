"""The paper's experiments: each is a function of an `ExperimentContext`, and its results are JSON."""
