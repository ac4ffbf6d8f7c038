"""Registry, trust, profiles and callers in tables of DynamoDB."""
