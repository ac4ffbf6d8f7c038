"""The worth of each policy: answers of the pipeline with it and without it, to the same queries."""
