"""The output of the command line on a terminal."""

import json

import pytest

from mats.local.cli.output import complain, facts, out, plain, print_json

CONTROLS = [
    "\x00", "\x07", "\x08", "\x0b", "\x0c", "\r", "\x1b", "\x1c", "\x7f", "\x85", "\x9b", "\u2028", "\u2029",
]  # fmt: skip
HIDDEN = ["\u200b", "\u202e", "\u2066", "\u200f", "\u3164", "\ue000", "\U000e0041", "\U000e0100"]


@pytest.mark.parametrize("evil", [*CONTROLS, *HIDDEN])
def test_no_hidden_or_control_character_reaches_a_terminal(evil, capsys):
    out.print(facts([("summary", f"re{evil}fund"), ("id", f"com.acme/{evil}")]))
    out.print(plain(f"re{evil}fund"))
    complain(f"no capability 'com.acme/re{evil}fund'")
    shown = "".join(capsys.readouterr())
    assert evil not in shown
    assert ("⟨U+" in shown) == (evil in HIDDEN)


@pytest.mark.parametrize("evil", [*CONTROLS, *HIDDEN, "\x1b[2J"])
def test_json_escapes_control_characters_without_changing_its_value(evil, capsys):
    value = {f"k{evil}": [f"调べる{evil}"]}
    print_json(value)
    written = capsys.readouterr().out
    assert evil not in written
    assert "调べる" in written
    assert json.loads(written) == value
