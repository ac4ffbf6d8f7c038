"""Capabilities as tools for the APIs of models."""
