"""What AWS calls. Each handler translates, nothing more; the local service calls the same code."""
