"""Secrets in arguments and addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.text.redaction import names_secret, placeholders, redact_arguments, redact_prose, redact_url

TOKENS = (
    "sk-proj-abc123DEF456ghi789jkl",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-2345678901-abcdefGHIJKL",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N",
    "0123456789abcdef0123456789abcdef",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
)


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize(
    "argument", ["{}", "--data={}", "a,{}", "https://x.example/{}/mcp", "Bearer {}", "--x={{'a': '{}'}}"]
)
def test_tokens_are_replaced_wherever_they_stand(token, argument):
    [shown] = redact_arguments([argument.format(token)])
    assert token not in shown
    assert placeholders(shown)
    assert token not in redact_prose(f"Send {argument.format(token)} with it.")


ORDINARY = (
    "-y", "@modelcontextprotocol/server-filesystem@2025.11.25", "/srv/work/a-long-folder-name-2025/x.py",
    "server@sha256:" + "a1" * 32, "git+https://github.com/a/b@" + "a1" * 20, "git+ssh://git@github.com/a/b",
    "--no-auth", "--port=8080", "--max-tokens=4096", "PORT=80", "TLS=true", '{"tokens": 4096}',
    "{workspace}", "--stdio", "tide-tables==1.4.0", "C:\\tools\\server.exe",
)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--api-key", "hunter2"], ["--api-key", "{api-key}"]),
        (["--api-key=hunter2"], ["--api-key={api-key}"]),
        (["--dbPassword", "hunter2"], ["--dbPassword", "{dbPassword}"]),
        (["--header", "Authorization: Bearer hunter2"], ["--header", "Authorization: {Authorization}"]),
        (["--header=X-Any: hunter2"], ["--header=X-Any: {X-Any}"]),
        (["MODE=hunter2"], ["MODE={MODE}"]),
        (["--env=MODE=hunter2"], ["--env=MODE={MODE}"]),
        (["--password", "1234", "PIN=1234"], ["--password", "{password}", "PIN={PIN}"]),
        (["--max-tokens", "9" * 20], ["--max-tokens", "{max-tokens}"]),
        (["sh", "-c", "MODE=hunter2 npx -y x --port 3000"], ["sh", "-c", "MODE={MODE} npx -y x --port 3000"]),
        (
            ["/bin/bash", "-lc", "A='hunt er2' B=hunter2; export C=hunter2 && x"],
            ["/bin/bash", "-lc", "A={A} B={B}; export C={C} && x"],
        ),
        (["sh", "-c", "A= B=$(hunt er2)\\ hunter2 x"], ["sh", "-c", "A= B={B} x"]),
        (["x", "-c", "MODE=hunter2 hunter2"], ["x", "-c", "MODE={MODE}"]),
        (["postgresql://me:hunter2@db/x"], ["postgresql://{credentials}@db/x"]),
        (["https://x.example/sse?k=hunter2"], ["https://x.example/sse?k={k}"]),
        (['{"password": "hunter2"}'], ['{"password": "{password}"}']),
        (["host=db password=hunter2"], ["host=db password={password}"]),
        (["-----BEGIN PRIVATE KEY-----\nhunter2"], ["{secret}"]),
        *((["--session-timeout", value], ["--session-timeout", value]) for value in ("30", "2.5", "none", "False")),
        *(([argument, "main.py"], [argument, "main.py"]) for argument in ORDINARY),
    ],
)
def test_only_values_of_secret_names_are_replaced(arguments, shown):
    assert redact_arguments(arguments) == tuple(shown)


@given(st.lists(st.text(max_size=60), max_size=6))
def test_redacting_twice_is_redacting_once(arguments):
    once = redact_arguments(arguments)
    assert redact_arguments(once) == once
    assert len(once) == len(arguments)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:pw@x.example/a?k=v&l=w#f", "https://x.example/a?k={k}&l={l}"),
        ("https://x.example/a?token", "https://x.example/a"),
        ("https://x.example/v1/{id}/b?q={q}", "https://x.example/v1/{id}/b?q={q}"),
        ("HTTP://[::1]:80/mcp", "http://[::1]:80/mcp"),
        ("ftp://x.example/", None),
        ("/v1/things", None),
        ("https://", None),
        ("https://x.example/a b", None),
        ("https://x.example\\@y.example/", None),
        ("https://x.example/\u200b", None),
        ("https://[x", None),
        ("", None),
    ],
)
def test_an_address_has_no_secret(url, shown):
    assert redact_url(url) == shown


def test_names_of_secrets():
    assert all(map(names_secret, ("api_key", "X-Auth-Token", "--password", "githubToken", "APIKEY", "AWS_SECRET_KEY")))
    assert not any(map(names_secret, ("region", "--no-auth", "monkey", "path", "--port", "authority", "")))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password: hunter2x", "password: {password}"),
        ('"api_key": "a1b2c3d4"', '"api_key": "{api_key}"'),
        ("Bearer a1b2c3d4e5f6", "Bearer {token}"),
        ("with sk-live-4f9Qz81LmN0pR7sT2uVw inside", "with {secret} inside"),
        ("postgres://ann:pw4u@db.acme.com/x", "postgres://{credentials}@db.acme.com/x"),
        ("Basic information about tokens: their key is a string.", None),
        ("Uses Bearer authentication; password: at least eight characters, api_key: your key", None),
        ("distilbert-base-uncased-finetuned-sst-2-english, see https://acme.com/v2/refunds?key=name#top", None),
        ("Top 10 tracks of 2024 (ISO 8601), 48h", None),
    ],
)
def test_only_secrets_in_prose_are_redacted(text, shown):
    assert redact_prose(text) == (shown or text)
