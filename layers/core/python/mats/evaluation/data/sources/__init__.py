"""Published benchmarks as judged sets of our layout, from a local copy of what their authors published."""
