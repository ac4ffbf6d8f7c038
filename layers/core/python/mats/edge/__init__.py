"""The application and its interfaces: HTTP, API Gateway, MCP, ARD, SQS; their logs and metrics."""
