"""The function that deletes old versions of discovery."""
