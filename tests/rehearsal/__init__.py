"""A rehearsal of a deployment on an emulator of AWS: `make rehearse`."""
