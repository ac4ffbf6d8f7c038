"""The service for a team: a token for every face, another for the registry."""

import json
import re
from collections.abc import Iterator

import pytest

from mats.client import Bearer, Client, NotAllowed
from tests.builders import an_item
from tests.command import Reply, make_tokens
from tests.command import ask as send
from tests.integration.conftest import Mats, Service, rows, serving, tool

ITEMS = [tool("refund", description="Give money back for a card payment")]

READ, WRITE = "read-" * 8, "write-" * 8


@pytest.fixture(scope="module")
def service(stocked: Mats) -> Iterator[Service]:
    make_tokens(stocked.home, report=READ, write=WRITE)
    with serving(stocked, "--host", "0.0.0.0", "--allowed-host", "mats.example.com") as running:
        yield Service(running.url.replace("0.0.0.0", "127.0.0.1"), running.process, running.home)


def ask(service: Service, method: str, path: str, body=None, *, token: str = "", **headers: str) -> Reply:
    return send(service, path, body, method=method, authorization=f"Bearer {token}" if token else None, **headers)


def test_greeting_names_an_address_that_a_browser_reaches(service):
    _, console, docs = (service.process.stdout.readline().decode().strip() for _ in range(3))
    assert (console, docs) == (f"{service.url} in a browser", f"{service.url}/docs for the API")


def test_the_registry_asks_for_the_write_token(service):
    item = an_item(namespace="com.acme", name="void")
    at = "/registry/capabilities/com.acme/void"
    for method, path, body in (("GET", "/registry", None), ("PUT", at, item), ("DELETE", at, None)):
        assert ask(service, method, path, body)[0] == 401
        status, headers, text = ask(service, method, path, body, token=READ)
        assert (status, json.loads(text)["detail"]) == (
            403,
            "this token may only read, report: send one with the scope write",
        )
        assert "insufficient_scope" in headers["www-authenticate"]
    assert ask(service, "PUT", at, item, token=WRITE, **{"If-None-Match": "*"})[0] == 200
    assert ask(service, "GET", at, token=WRITE)[0] == 200


def named(mats: Mats, name: str, scope: str) -> str:
    """A new token."""
    return mats("token", "add", name, "--scope", scope, "--json").json["token"]


def test_a_named_token_works_at_once_and_until_it_is_revoked(service, stocked):
    made = stocked("token", "add", "ci", "--scope", "write")
    token = made.out.strip()
    assert (made.code, token in made.err) == (0, False)
    assert ask(service, "GET", "/registry", token=token)[0] == 200
    assert ask(service, "POST", "/registry/trust", {"namespace": "com.acme"}, token=token)[0] == 403
    for refused in (("add", "ci", "--scope", "read"), ("revoke", "x"), ("add", "A b", "--scope", "read")):
        assert stocked("token", *refused).code in (1, 2)
    assert [(one["name"], one["scope"]) for one in stocked("token", "list", "--json").json][-1] == ("ci", "write")
    assert token not in stocked("token", "list").out
    assert stocked("token", "revoke", "ci").code == 0
    status, _, text = ask(service, "GET", "/registry", token=token)
    assert (status, token in text) == (401, False)
    kept = [file.read_bytes() for file in stocked.home.iterdir()]
    assert not any(token.encode() in content for content in kept)


def test_reports_of_a_named_token_are_its_own(service, stocked):
    ann, ben = named(stocked, "ann", "report"), named(stocked, "ben", "report")

    answer = json.loads(ask(service, "POST", "/discover", {"query": "refund a payment"}, token=ann)[2])
    report = {"query_id": answer["query_id"], "outcomes": [{"id": "com.acme/refund", "event": "failed"}]}
    assert ask(service, "POST", "/feedback", report, token=ben)[0] == 404
    assert ask(service, "POST", "/feedback", report, token=READ)[0] == 404
    assert ask(service, "POST", "/feedback", report, token=ann)[0] == 202
    assert stocked("token", "revoke", "ann", "--keep-reports").code == 0
    named(stocked, "ann", "report")
    assert stocked("withdraw", "token:ann", "--json").json["reports_withdrawn"] == 1
    assert stocked("token", "revoke", "ann", "--json").json == {"name": "ann", "reports_withdrawn": 0}
    assert "no token" in stocked("token", "revoke", "nobody").err
    stocked("token", "revoke", "ben")


def test_a_token_that_reads_reports_neither_over_http_nor_mcp(service, stocked):
    reads, reports = named(stocked, "reads", "read"), named(stocked, "reports", "report")
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    call = {"name": "report_outcome", "arguments": {"query_id": "x", "missing": "y"}}
    calling = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    assert "report_outcome" in ask(service, "POST", "/mcp", listing, token=reports)[2]
    assert "report_outcome" not in ask(service, "POST", "/mcp", listing, token=reads)[2]
    assert "no answer" in ask(service, "POST", "/mcp", calling, token=reports)[2]
    assert "no answer" not in ask(service, "POST", "/mcp", calling, token=reads)[2]
    assert ask(service, "POST", "/feedback", {"query_id": "x", "missing": "y"}, token=reads)[0] == 403


def test_operators_do_over_http_what_owners_cannot(service, stocked):
    writes, operates = named(stocked, "writes", "write"), named(stocked, "operates", "operate")
    for path, body in (
        ("/registry/trust", {"target": "org.rated", "trust": 60}),
        ("/registry/trust", {"target": "com.acme/refund", "trust": 70}),
    ):  # fmt: skip
        assert ask(service, "POST", path, body, token=writes)[0] in (403, 422)
        assert ask(service, "POST", path, body, token=operates)[0] == 200
    at, change = "/registry/capabilities/com.acme/refund", {"tags": ["x"]}
    assert ask(service, "PATCH", at, change, token=writes)[0] == 422
    assert ask(service, "PATCH", at, change, token=operates)[0] == 200


def test_an_import_goes_to_a_service_and_can_be_repeated(service, stocked, tmp_path):
    token, elsewhere = named(stocked, "pipeline", "write"), Mats(tmp_path / "home")
    items = [tool(f"far{number}", description="x" * 9_000, tags=["é" * 100]) for number in range(300)]
    file = tmp_path / "many.jsonl"
    file.write_bytes(rows(*items, {"namespace": "com.acme"}, tool("far0", kind="agent")))
    ran = elsewhere("import", str(file), "--url", service.url, "--json", MATS_TOKEN=token)
    assert (ran.code, ran.json["new"], len(ran.json["rejected"])) == (1, 300, 2)
    assert not elsewhere.home.exists()
    assert ask(service, "GET", "/registry/capabilities/com.acme/far299", token=token)[0] == 200
    file.write_bytes(rows(*items[:298], tool("far298"), tool("far299", kind="agent")))
    again = elsewhere("import", str(file), "--url", service.url, "--json", MATS_TOKEN=token)
    assert (again.code, again.json["unchanged"], again.json["changed"]) == (1, 298, 1)
    assert [(one["line"], one["faults"][0]["attribute"]) for one in again.json["rejected"]] == [(300, "kind")]


def test_an_import_leaves_what_operators_trust_to_them(service, stocked, tmp_path):
    writes, operates = named(stocked, "importer", "write"), named(stocked, "operator", "operate")
    assert stocked("trust", "com.trusted.*", "80").code == 0
    file = tmp_path / "one.jsonl"
    file.write_bytes(rows(tool("own"), {**tool("pay"), "namespace": "com.trusted"}))

    def send(token: str):
        return stocked("import", str(file), "--url", service.url, "--json", MATS_TOKEN=token)

    refused = send(writes)
    assert (refused.code, refused.json["new"], refused.json["rejected"][0]["line"]) == (1, 1, 2)
    assert (send(operates).code, send(writes).code) == (0, 0)  # unchanged


def test_a_batch_is_taken_item_by_item(service):
    batch = {"registrations": [tool("b0"), {"name": "x"}, {**tool("b2"), "trust": 9}, tool("b3")]}
    status, _, text = ask(service, "POST", "/registry/capabilities", batch, token=WRITE)
    answer = json.loads(text)
    assert (status, answer["placed"]) == (200, {"com.acme/b0": "new", "com.acme/b3": "new"})
    assert [(one["place"], {e["field"] for e in one["errors"]}) for one in answer["rejected"]] == [
        (1, {"namespace", "kind"}), (2, {"trust"}),
    ]  # fmt: skip
    for wrong in ({}, [], {"registrations": []}, {"registrations": [1]}, {"registrations": [{}] * 257}):
        assert ask(service, "POST", "/registry/capabilities", wrong, token=WRITE)[0] == 422


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [("mats.example.com", "https://mats.example.com", 200), ("mats.example.com", "https://evil.example", 403)],
)
def test_hosts_and_origins_are_checked_for_those_with_a_token(service, host, origin, status):
    for path, token in (("/capabilities", READ), ("/registry", WRITE)):
        assert ask(service, "GET", path, token=token, Host=host, Origin=origin)[0] == status


def test_python_client_sends_a_token(service):
    with Client(service.url, auth=Bearer(READ)) as client:
        assert client.discover("refund a payment").results
    with Client(service.url) as client, pytest.raises(NotAllowed):
        client.discover("refund a payment")


def test_command_line_sends_the_token_of_the_environment(service, tmp_path):
    elsewhere = Mats(tmp_path / "home")
    asked = ("search", "refund a payment", "--url", service.url)
    found = elsewhere(*asked, "--json", MATS_TOKEN=READ)
    assert (found.code, found.json["results"][0]["id"]) == (0, "com.acme/refund")
    tools = elsewhere(*asked, "--format", "openai_tools", MATS_TOKEN=READ)
    assert (tools.code, [tool["function"]["name"] for tool in tools.json]) == (0, ["com_acme__refund"])
    told = elsewhere(*asked, MATS_TOKEN=READ).out
    report = re.search(r"mats (feedback \w+ --url \S+ --succeeded) ID", told)
    assert report
    command = [*report[1].split(), "com.acme/refund"]
    assert elsewhere(*command, MATS_TOKEN=READ).done().out == "1 new outcome recorded\n"
    command[1] = "unknown"
    elsewhere(*command, MATS_TOKEN=READ).fails(1, "no answer 'unknown' to report on")
    elsewhere("feedback", found.json["query_id"], "--wrong", "a/b", *asked[2:], MATS_TOKEN=READ).fails(
        2, "error: --wrong: 'a/b' is not among the results"
    )
    assert not elsewhere.home.exists()


@pytest.mark.parametrize(
    ("command", "options", "token", "code", "told"),
    [
        ("import", (), "", 2, "MATS_TOKEN"),
        ("import", (), READ, 2, "may only read, report"),
        ("import", ("--dry-run",), WRITE, 2, "leave out --dry-run"),
        ("import", ("--url", "http://mats.example.com"), WRITE, 2, "must begin with https://"),
        ("import", ("--url", "http://127.0.0.1:1"), WRITE, 3, "does not answer"),
        ("search", (), "", 2, "set MATS_TOKEN"),
        (
            "search",
            (),
            "x" * 40,
            2,
            "unknown token: send a token of this service (`mats token add`) with the scope read",
        ),
        ("search", ("--url", "http://mats.example.com"), READ, 2, "must begin with https://"),
        ("search", ("--url", "https://mats.example.com"), "", 2, "set MATS_TOKEN"),
        ("search", ("--url", "http://127.0.0.1:1"), READ, 3, "does not answer"),
    ],
)
def test_what_a_service_refuses_is_one_line(service, tmp_path, command, options, token, code, told):
    file = tmp_path / "one.jsonl"
    file.write_bytes(rows(tool("own")))
    what = {"import": str(file), "search": "refund"}[command]
    ran = Mats(tmp_path / "home")(command, what, "--url", service.url, *options, MATS_TOKEN=token)
    assert (ran.code, ran.out) == (code, "")
    assert told in " ".join(ran.err.replace("│", " ").split())
    assert token == "" or token not in ran.err
    assert command == "import" or ("set MATS_TOKEN" in ran.err) is (not token)
