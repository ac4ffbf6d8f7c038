"""The Model Context Protocol: messages, tools, and streamable HTTP."""
