"""Tests of the test doubles in `tests/aws` that are the only ones to know a rule of AWS."""
