"""Attacks on the ranking by registrations: those of the `table`, and `takeovers` of one request."""
