"""Stand-ins for the services that the real adapters talk to."""
