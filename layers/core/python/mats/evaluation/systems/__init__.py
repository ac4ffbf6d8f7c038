"""Systems under test: the pipeline, its variants and the baselines, with the models they use."""
