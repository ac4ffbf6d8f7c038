"""Import registrations from files, addresses and live servers."""
