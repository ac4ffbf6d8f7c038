"""What operators teach, over the sample registry and the real encoder."""

from mats.domain.learning.outcome import taught_id
from tests.command import Reply, ask
from tests.integration.conftest import Mats, Service, rows, serving

REQUEST, ID = "get my cash back from the shop", "com.paypal.mcp/create_refund"
UNRELATED = "turn a street address into coordinates"


def post(service: Service, lesson: dict) -> Reply:
    return ask(service, "/registry/lessons", lesson, method="POST")


def first(mats: Mats, request: str) -> tuple[str, str, float]:
    answer = mats("search", request, "--json").json
    return answer["verdict"], answer["results"][0]["id"], answer["results"][0]["relevance"]


def test_a_taught_request_puts_its_capability_first_and_moves_no_other(sample: Mats):
    never_shown = "ai.qodo/PR-Agent"
    unrelated = sample("search", UNRELATED, "--json").json["results"]
    sample("teach", REQUEST, never_shown)
    assert first(sample, f"{REQUEST.upper()}?")[:2] == ("match", never_shown)
    sample("teach", REQUEST, ID)  # in place of the former
    assert sample("teach", "--list", "--json").json == [{"request": REQUEST, "id": ID, "asleep": False}]
    assert first(sample, REQUEST)[:2] == ("match", ID)
    near = "get my cash back from a store"
    assert first(sample, near)[1] == ID
    assert sample("search", UNRELATED, "--json").json["results"] == unrelated
    assert sample("teach", "--forget", REQUEST).code == 0
    assert sample("teach", "--forget", REQUEST).code == 1
    assert first(sample, REQUEST)[1] != ID


def test_a_lesson_is_about_the_text_that_was_there(sample: Mats):
    sample("teach", REQUEST, ID).done()
    edited = sample("edit", ID, "--tag", "mine").done()
    assert sample("search", REQUEST, "--json").json["results"][0]["id"] == ID, edited.err
    namespace, _, name = ID.partition("/")
    other = {"namespace": namespace, "name": name, "kind": "tool", "description": "Boils noodles and serves them."}
    sample("add", "-", stdin=rows(other)).done()
    assert first(sample, REQUEST)[1] != ID
    assert first(sample, "get my cash back from a store")[1] != ID
    assert "teach it again" in sample("teach", "--list").out
    sample("teach", REQUEST, ID).done()
    assert first(sample, REQUEST)[1] == ID


def test_a_lesson_outlives_its_registration_and_is_erased_with_it(sample: Mats):
    item = sample("show", ID, "--json").json["registration"]
    sample("teach", REQUEST, ID)
    assert sample("remove", ID).code == 0
    assert first(sample, REQUEST)[1] != ID
    sample("import", "-", stdin=rows(item))
    assert [one["asleep"] for one in sample("teach", "--list", "--json").json] == [True]
    sample("teach", REQUEST, ID)
    assert first(sample, REQUEST)[1] == ID
    sample("erase", ID, "--yes")
    assert sample("teach", "--list", "--json").json == []


def test_the_service_takes_lessons_of_operators_and_reports_of_nobody_become_one(sample: Mats):
    with serving(sample) as service:
        lesson = {"request": REQUEST, "id": ID}
        assert post(service, lesson).json == lesson
        assert ask(service, "/registry/lessons").json == {"lessons": [{**lesson, "asleep": False}]}
        answer = ask(service, "/discover", {"query": REQUEST, "explain": True}, method="POST").json
        assert answer["results"][0]["id"] == ID
        assert answer["results"][0]["why"]["used_for"]["texts"] == [REQUEST]
        report = {"query_id": taught_id(REQUEST), "outcomes": [{"id": ID, "event": "wrong"}]}
        assert ask(service, "/feedback", report, method="POST").status == 404
        assert post(service, {"request": REQUEST}).json == {"request": REQUEST, "withdrawn": True}
        assert post(service, {"request": REQUEST, "id": "a/b"}).status == 404
