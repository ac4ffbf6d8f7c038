"""Measurements of what runs in AWS, over the servers of the tests: `make bench-aws`."""
