"""Attacks on the ranking: registrations (`table`, `takeovers`) and reports (`false_reports`), and what they reach."""
