"""What each policy of an answer is worth: the pipeline with it beside the pipeline without it, on the same queries."""
