"""Requests to models, and parsers of their replies."""
