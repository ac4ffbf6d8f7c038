"""The agents of docs/integrations find a tool, call it and report, with a scripted model and their real packages."""

import json

import pytest

from tests.frameworks.conftest import Program
from tests.frameworks.scripted_model import Call, ScriptedModel
from tests.frameworks.tool_server import ToolServer

AGENTS = ["strands.md", "langchain.md", "llamaindex.md", "openai-agents.md"]
FOUND, ID = "com_deepwiki_mcp__ask_question", "com.deepwiki.mcp/ask_question"
TOOLS = ["find_tools", "call_tool", "report"]
QUESTION = {"repoName": "modelcontextprotocol/python-sdk", "question": "Which transports are there?"}


def find_call_report(returned: list[str]) -> Call | str:
    """What a model does that finds the tool, calls it and is content with it."""
    match returned:
        case []:
            return Call("find_tools", {"task": "ask a question about a GitHub repository"})
        case [found]:
            assert FOUND in found, found
            assert "repoName" in found, "the schema of the arguments is missing"
            return Call("call_tool", {"name": FOUND, "arguments": QUESTION})
        case [_, answer]:
            assert "stdio and streamable HTTP" in answer, answer
            return Call("report", {"name": FOUND, "event": "succeeded"})
        case [*_, said]:
            assert "reported" in said, said
            return "There are stdio and streamable HTTP."


@pytest.mark.parametrize("page", AGENTS)
def test_an_agent_finds_calls_and_reports(page: str, program: Program, tools: ToolServer):
    tools.asked.clear()
    before = program.outcomes()
    program.write("find-then-call.md", "find_then_call.py")
    program.write(page, "agent.py")
    with ScriptedModel(find_call_report) as model:
        printed = program.run("agent.py", f"{model.url}/v1")
    assert "stdio and streamable HTTP" in printed
    assert tools.asked == [QUESTION]
    assert {tuple(sorted(offered)) for offered in model.offered} == {tuple(sorted(TOOLS))}
    assert [(id, json.loads(events)) for _, id, events in program.outcomes() - before] == [(ID, ["succeeded"])]
