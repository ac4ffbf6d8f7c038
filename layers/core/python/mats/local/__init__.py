"""The same system on one machine: a command line and a service that call the very handlers AWS calls."""
