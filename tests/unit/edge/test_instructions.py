"""The instructions of skills, over HTTP and MCP."""

import json
from typing import Any

import pytest

from mats.edge.app import Application
from mats.edge.http import Response
from tests.aws_events import call
from tests.builders import a_profile
from tests.unit.edge.test_mcp import called
from tests.world import an_application


def a_skill(name: str, text: str, **about: Any):
    return a_profile(namespace="com.acme", name=name, kind="skill", descriptor={"instructions": text}, **about)


PDF = a_skill("docs/fill forms", "# Fill\n\nAsk first.\u202e")
NESTED = a_skill("docs", "Outer.")
INNER = a_skill("docs/instructions", "Inner.")
SECRET = a_skill("secret", "Hidden.", visible_to=("finance",))
TOOL = a_profile(namespace="com.acme", name="tool", descriptor={"instructions": "x"})
APPLICATION = an_application(PDF, SECRET, TOOL, NESTED, INNER)


def get(path: str, *, audiences=(), application: Application = APPLICATION, **headers: str) -> Response:
    return call(application, "GET", f"/capabilities/{path}", headers=headers, audiences=audiences)


@pytest.mark.parametrize("id", ["com.acme/docs/fill%20forms", "com.acme%2Fdocs%2Ffill%20forms"])
def test_instructions_are_markdown_with_hidden_characters_spelled_out(id):
    response = get(f"{id}/instructions")
    assert (response.status, response.body) == (200, "# Fill\n\nAsk first.⟨U+202E⟩")
    assert response.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_instructions_as_json():
    listed = a_skill("listed", "Go.").model_copy(
        update={"invocation": json.dumps({"protocol": "skill", "files": ["SKILL.md"]}), "suspicious": ("odd",)}
    )
    response = get("com.acme/listed/instructions", Accept="application/json", application=an_application(listed))
    assert json.loads(response.body) == {
        "id": "com.acme/listed", "instructions": "Go.", "files": ["SKILL.md"], "suspicious": ["odd"],
    }  # fmt: skip


def test_an_id_that_ends_so_is_a_capability():
    assert json.loads(get("com.acme/docs/instructions").body)["name"] == "docs/instructions"
    assert get("com.acme/docs/instructions/instructions").body == "Inner."


@pytest.mark.parametrize(
    ("path", "named"),
    [("com.acme/tool", "com.acme/tool has no instructions"), ("com.acme/x", "no capability"), ("", "no capability")],
)
def test_without_instructions_there_is_nothing(path, named):
    response = get(f"{path}/instructions")
    assert response.status == 404
    assert named in json.loads(response.body)["detail"]


def test_instructions_respect_audiences():
    hidden, unknown = (get(f"com.acme/{name}/instructions") for name in ("secret", "unknown"))
    assert hidden.status == 404
    assert hidden.body.replace("secret", "unknown") == unknown.body
    assert get("com.acme/secret/instructions", audiences=("finance",)).body == "Hidden."


def test_mcp_gives_instructions_if_asked_and_there_is_nothing_hidden():
    asked = {"id": NESTED.id, "instructions": True}
    assert called("get_capability", asked, application=APPLICATION)["structuredContent"]["instructions"] == "Outer."
    for asked in ({"id": NESTED.id}, {"id": PDF.id, "instructions": True}):
        shown = called("get_capability", asked, application=APPLICATION)["structuredContent"]
        assert not shown.get("instructions")
    assert called("get_capability", {"id": SECRET.id, "instructions": True}, application=APPLICATION)["isError"]
