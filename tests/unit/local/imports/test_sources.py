"""Live sources: what is kept of how they are called."""

import pytest

from mats.domain.protocols.protocol import MappedValue
from mats.local.imports.sources import live_source

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("how", "entry", "noted"),
    [
        ({"command": ["npx", "-y", "tides"]}, {"command": "npx", "args": ["-y", "tides"]}, []),
        (
            {"command": ["env", f"KEY={SECRET}", "tides", "--token", SECRET]},
            {"command": "tides", "args": ["--token", "{token}"], "env": ["KEY"]},
            ["server"],
        ),
        ({"command": ["tides", "a\u200b"]}, None, ["server"]),
        (
            {"url": "https://x.example/mcp"},
            {"url": "https://x.example/mcp", "transport": "streamable-http"},
            [],
        ),
        (
            {"url": f"https://x.example/mcp?key={SECRET}#a"},
            {"url": "https://x.example/mcp?key={key}", "transport": "streamable-http"},
            ["endpoint"],
        ),
        ({}, None, []),
    ],
)
def test_a_live_server_is_kept_without_secrets(how, entry, noted):
    source, stream = live_source("x", lambda: {"tools": []}, "com.acme", **how)
    assert source.server_entry == entry
    remarks = [note for _, value in stream if isinstance(value, MappedValue) for note in value.notes]
    assert [note.attribute for note in remarks] == noted
    assert SECRET not in f"{source}{remarks}"
