"""What the command line writes to a terminal."""

import json

import pytest

from mats.local.cli.output import print_json


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x9b31m", "\x7f", "\u202e", "\u2066", "\u2028", "\u200f"])
def test_json_escapes_control_characters_without_changing_its_value(evil, capsys):
    value = {f"k{evil}": [f"调べる{evil}"]}
    print_json(value)
    written = capsys.readouterr().out
    assert evil not in written
    assert "调べる" in written
    assert json.loads(written) == value
