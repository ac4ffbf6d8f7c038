"""One capability each, with its grants."""
