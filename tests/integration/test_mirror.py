"""The owner's mirror of the local registry: command and HTTP."""

import json
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.integration.conftest import serving, tool

HIDDEN = "\u202e"
ITEMS = [tool("refund", description="Give money back for a card payment")]


def test_the_command_shows_what_was_asked_and_escapes_it(mats):
    mats("search", "--json", f"give {HIDDEN}money back for a card payment")
    shown = mats("mirror", "--json").json
    assert (shown["requests"], shown["causes"]) == (1, {})
    printed = mats("mirror", shown["capabilities"][0]["id"])
    assert "1 time; 0 lost" in printed.out
    assert HIDDEN not in printed.out
    assert "never among the first 5 of 1 request;" in mats("mirror").out
    assert mats("mirror", "com.acme/nothing").code == 1


def test_the_service_has_the_same(mats):
    mats("search", "--json", "give money back for a card payment")
    with serving(mats) as service:

        def ask(**query: object) -> dict:
            with urlopen(f"{service.url}/registry/mirror?{urlencode(query)}") as response:
                return json.load(response)

        assert ask(limit=1_000) == mats("mirror", "--json").json
        [one] = ask()["capabilities"]
        assert ask(id=one["id"]) == mats("mirror", one["id"], "--json").json
        codes = []
        for query in ({"id": "com.acme/nothing"}, {"days": 0}, {"limit": "x"}):
            with pytest.raises(HTTPError) as refused:
                ask(**query)
            refused.value.close()
            codes.append(refused.value.code)
        assert codes == [404, 422, 422]


def test_without_texts_the_answer_says_so(mats):
    mats("search", "--json", "give money back", MATS_LOG_QUERIES="hash")
    assert "the texts of 1 requests are not stored" in mats("mirror").err
