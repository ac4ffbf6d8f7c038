"""What the local service serves for people: the console's files, and the registry to read and write."""
