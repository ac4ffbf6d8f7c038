"""Texts to copy that call a capability: an MCP client's configuration, curl, Python, a tool of Bedrock Converse.

Every text of an owner is one literal of its language, with hidden characters escaped. Secrets are variables whose names
are ours: a name chosen by an owner could be that of a variable with another service's secret.
"""
