"""An MCP server over standard streams, as a program: it lists one tool, which the variable TOOL names."""

STDIO = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
    if asked["method"] == "tools/list":
        answer = {"tools": [{"name": os.environ["TOOL"], "description": "A claim.", "inputSchema": {"type": "object"}}]}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""
