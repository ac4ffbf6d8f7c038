"""The console of the local service: its files, and the registry over HTTP."""
