"""Tests of the test doubles in `tests/servers` that are the only ones to know a rule of AWS."""
