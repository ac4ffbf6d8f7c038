"""Offline measurement. Imports mats; nothing but the command line imports it."""
