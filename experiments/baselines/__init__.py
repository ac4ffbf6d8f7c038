"""The paper's baselines: systems that find without the pipeline."""
