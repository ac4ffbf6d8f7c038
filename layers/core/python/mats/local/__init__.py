"""The system on one machine: a command line and an HTTP service over the same application as in AWS."""
