"""Unit tests of readable queries."""

import pytest

from mats.domain.text.words import is_readable


@pytest.mark.parametrize(
    ("words", "pieces", "readable"),
    [
        (["refund", "a", "payment"], ["ref", "und", "a", "payment"], True),
        (["jira", "ticket"], ["ji", "ra", "ticket"], True),
        (["kubectl", "rollout", "restart"], ["ku", "be", "ct", "l", "roll", "out", "restart"], True),
        (["wo", "ist", "mein", "paket"], ["wo", "ist", "mein", "pak", "et"], False),
        (["datei", "umbenennen"], ["date", "i", "um", "ben", "enne", "n"], False),
        (["umbenennen"], ["um", "ben", "enne", "n"], True),
        (["jira", "umbenennen", "tickets"], ["ji", "ra", "um", "ben", "enne", "n", "tickets"], True),
        (["grafana", "parsers"], ["gr", "af", "ana", "par", "ser", "s"], True),
        (["prévision", "météo"], ["pre", "vision", "met", "eo"], False),
        (["天气"], ["天", ""], False),
        (["погода"], ["п", "о", "г", "о", "да"], False),
        (["translate", "this", "text", "天气"], ["translate", "this", "text", "天", ""], True),
        (["los", "angeles", "hotels"], ["los", "angeles", "hotels"], True),
        ([], [], True),
        (["42"], ["42"], True),
    ],
)
def test_text_that_is_spelled_or_split_is_not_read(words, pieces, readable):
    assert is_readable(words, pieces) is readable
