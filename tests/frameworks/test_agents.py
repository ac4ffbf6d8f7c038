"""The agents of docs/integrations find a tool, call it and report, with a scripted model and their real packages."""

import json

import pytest

from tests.frameworks.conftest import Program
from tests.frameworks.scripted_model import Call, scripted_model
from tests.frameworks.tool_server import NOWHERE, ToolServer

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
    with scripted_model(find_call_report) as model:
        printed = program.run("agent.py", f"{model.url}/v1")
    assert "stdio and streamable HTTP" in printed
    assert tools.asked == [QUESTION]
    assert {tuple(sorted(offered)) for offered in model.offered} == {tuple(sorted(TOOLS))}
    assert [(id, json.loads(events)) for _, id, events in program.outcomes() - before] == [(ID, ["succeeded"])]


GEOCODE = "io.github.modelcontextprotocol.google-maps/maps_geocode"


def look_up(returned: list[str]) -> Call | str:
    """What a model does that only has to say which tool there is."""
    match returned:
        case []:
            return Call("search_capabilities", {"query": "turn a street address into coordinates"})
        case [found]:
            assert GEOCODE in found, found
            return Call("get_capability", {"id": GEOCODE})
        case [*_, shown]:
            assert "address" in shown, shown
            return f"It is {GEOCODE}."


@pytest.mark.parametrize("page", ["strands.md", "openai-agents.md"])
def test_an_agent_looks_up_over_mcp(page: str, program: Program):
    program.write(page, "over_mcp.py")
    with scripted_model(look_up) as model:
        printed = program.run("over_mcp.py", f"{model.url}/v1")
    assert f"It is {GEOCODE}." in printed
    assert {*map(tuple, model.offered)} == {("search_capabilities", "get_capability", "report_outcome")}


TRY = f"""
import asyncio
from find_then_call import call_tool, find_tools
others = [tool["name"] for tool in find_tools("ask a question about a GitHub repository") if tool["name"] != "{FOUND}"]
print(asyncio.run(call_tool("{FOUND}", {{"repoName": "{NOWHERE}", "question": "Why?"}})))
print(asyncio.run(call_tool(others[0], {{}})))
print(asyncio.run(call_tool("nobody_said", {{}})))
"""


def test_a_failed_call_is_reported_and_an_untrusted_tool_is_not_called(program: Program, tools: ToolServer):
    tools.asked.clear()
    before = program.outcomes()
    program.write("find-then-call.md", "find_then_call.py")
    (program.folder / "try_it.py").write_text(TRY)
    failed, untrusted, unknown = program.run("try_it.py").splitlines()
    assert f"{NOWHERE} is not indexed" in failed
    assert [(id, json.loads(events)) for _, id, events in program.outcomes() - before] == [(ID, ["failed"])]
    assert "cannot be called" in untrusted
    assert "cannot be called" in unknown
    assert len(tools.asked) == 1
