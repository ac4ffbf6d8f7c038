"""Preview: what saving a registration would change, computed by production's own code over the real index."""
