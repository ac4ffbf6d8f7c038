"""Implementations of the ports, one module or package per vendor. They translate data and errors, without policy."""
