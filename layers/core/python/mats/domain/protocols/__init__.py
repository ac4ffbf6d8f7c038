"""Descriptors of MCP, A2A, OpenAPI, skills and Bedrock: what they let be searched, and how a capability is called."""
