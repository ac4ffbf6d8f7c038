"""Valid and invalid registrations."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.capability import Kind, Lifecycle
from mats.domain.capability.registration import MAX_DEPTH, MAX_ITEM_BYTES, Registration, apply_patch
from mats.domain.errors import Fault, RegistrationInvalid
from tests.builders import an_item
from tests.strategies import json_values


def _faults(item: object) -> dict[str, str]:
    """The faults of an item, by attribute."""
    with pytest.raises(RegistrationInvalid) as refused:
        Registration.parse(item)
    return {fault.attribute: fault.message for fault in refused.value.faults}


def _nested(levels: int) -> dict:
    """A descriptor that is this many levels deep, itself included."""
    value: dict = {}
    for _ in range(levels - 1):
        value = {"deeper": value}
    return value


def test_namespace_name_and_kind_are_enough_and_null_counts_as_absent():
    least = {"namespace": "com.acme", "name": "x", "kind": "agent"}
    nothing_said = dict.fromkeys(["description", "tags", "input_schema", "lifecycle", "visible_to", "trust"])
    registration = Registration.parse({**least, **nothing_said})
    assert (registration.id, registration.kind, registration.lifecycle) == ("com.acme/x", Kind.AGENT, Lifecycle.ACTIVE)
    assert (registration.visible_to, registration.item()) == (None, least)
    assert _faults(dict.fromkeys(least)) == dict.fromkeys(least, "is required")


def test_string_sets_are_sorted():
    registration = Registration.parse(
        an_item(tags={"refund", "card", "money"}, visible_to=frozenset({"ops", "dev"}), examples={"b", "a"})
    )
    found = (registration.tags, registration.visible_to, registration.examples)
    assert found == (("card", "money", "refund"), ("dev", "ops"), ("a", "b"))


@pytest.mark.parametrize("name", ["استرداد_الدفع", "払い戻し", "rück/erstattung", "💸", "e\u0301", "x" * 200])
def test_a_name_may_be_of_any_script_and_direction(name):
    assert Registration.parse(an_item(name=name, description=name, tags=[name])).name == name


def test_space_around_a_text_is_not_part_of_it():
    registration = Registration.parse(an_item(namespace=" com.acme ", name="\trefund\n", tags=[" card "]))
    assert (registration.id, registration.tags) == ("com.acme/refund", ("card",))


@pytest.mark.parametrize("attribute", ["descriptor", "input_schema"])
def test_an_object_is_stored_unchanged_including_white_space(attribute):
    raw = {"properties": {"separator": {"enum": [" ", "\n", " | "]}}, " key ": 1, "key": 2}
    assert getattr(Registration.parse(an_item(**{attribute: raw})), attribute) == raw


@pytest.mark.parametrize("namespace", ["a", "com.acme", "com.acme-pay.v2", "0.1", "-", "x" * 200])
def test_a_namespace_is_dot_separated_labels(namespace):
    assert Registration.parse(an_item(namespace=namespace)).namespace == namespace


@pytest.mark.parametrize("attribute", ["descriptor", "input_schema"])
def test_thirty_two_levels_below_the_item_are_the_most(attribute):
    deepest = {attribute: _nested(MAX_DEPTH)}
    assert getattr(Registration.parse(an_item(**deepest)), attribute) == deepest[attribute]
    assert str(MAX_DEPTH) in _faults(an_item(**{attribute: _nested(MAX_DEPTH + 1)}))[""]


def test_attributes_with_default_values_are_not_written():
    said = an_item(version="", tags=[], examples=[], lifecycle="active", descriptor=None)
    assert Registration.parse(said).item() == an_item()


def test_every_fault_is_named_at_once_with_its_attribute():
    wrong = {
        "namespace": "Com Acme", "kind": "gadget", "examples": "one sentence", "lifecycle": "retired", "visible_to": [],
        "input_schema": ["not an object"], "endpoint": "x" * 2_049, "colour": "red",
    }  # fmt: skip
    faults = _faults({**wrong, "tags": ["fine", "", 3]})
    assert faults.keys() == {*wrong, "name", "tags.1", "tags.2"}
    assert faults["name"] == "is required"
    assert "com.acme" in faults["namespace"]
    assert all(kind in faults["kind"] for kind in Kind)


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        *(("trust", trust, "operators") for trust in (100, 0, "high", {"level": 3})),
        *(("visible_to", nobody, "leave it out") for nobody in ([], (), set())),
        *(("name", f"refund{c}payment", "control characters") for c in "\x00\x07\n\r\t\x1b\x7f\x85\u2028\u2029"),
        *(("name", name, "part `.` or `..`") for name in ("..", "a/../b", "./a")),
        ("tag", "x", "`tags`"),
        ("descripton", "x", "`description`"),
        ("Name", "x", "`name`"),
        ("negative_example", "x", "`negative_examples`"),
        ("inputSchema", "x", "`input_schema`"),
        ("type", "x", "`kind`"),
        ("visibility", "x", "`visible_to`"),
        ("parameters", "x", "`input_schema`"),
    ],
)
def test_a_fault_says_what_to_do_or_which_attribute_is_meant(attribute, value, said):
    assert said in _faults(an_item(**{attribute: value}))[attribute]
    assert _faults(an_item(zzz="x")) == {"zzz": "is not a known attribute"}


HIDDEN = ["\u200b", "\u200d", "\u202e", "\u00ad", "\ufe0f", "\u3164", "\ue000", "\U000e0041", "\U000e0100"]


@pytest.mark.parametrize("character", HIDDEN)
def test_hidden_characters_in_names_addresses_and_labels_are_rejected(character):
    text, code = f"refund{character}ment", f"U+{ord(character):04X}"
    schema = {"properties": {"a": {"anyOf": [{"properties": {text: {}}}]}}}
    said = dict.fromkeys(["endpoint", "version", "provider"], text)
    faults = _faults(an_item(name=text * 2, **said, tags=["a", text], type_tags=[text], input_schema=schema))
    message = f"contains a hidden character ({code} at position 7): remove it"
    assert faults.pop("name") == f"contains 2 hidden characters (the first is {code} at position 7): remove them"
    assert faults.pop("input_schema") == f"a property name {message}"
    assert faults == dict.fromkeys([*said, "tags.1", "type_tags.0"], message)


@pytest.mark.parametrize(
    "label", ["☀\ufe0f Weather", "👩🏽\u200d💻", "🏳\ufe0f\u200d🌈", "1\ufe0f\u20e3", "می\u200cخواهم"]
)
def test_what_shapes_an_emoji_or_a_letter_is_accepted_in_labels_alone(label):
    assert Registration.parse(an_item(provider=label, tags=[label], description=label)).provider == label
    assert "hidden" in _faults(an_item(name=label))["name"]


@pytest.mark.parametrize("character", HIDDEN)
def test_texts_may_contain_hidden_characters(character):
    text = f"refund{character}ment"
    schema = {"title": text, "properties": {"a": {"description": text, "enum": [text], "default": text}}}
    item = an_item(description=text, examples=[text], input_schema=schema, descriptor={text: text})
    assert Registration.parse(item).item() == item


NAMESPACES = ["", ".", "com.", ".acme", "com..acme", "Com.a", "com/a", "com a", "com_a", "cøm", "١", "x" * 201, 1]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        *(("name", name) for name in ("", " ", "\n", "x" * 201, 7, ["x"], True)),
        *(("namespace", namespace) for namespace in NAMESPACES),
        ("description", "x" * 100_001),
        ("version", "x" * 101),
        ("provider", "x" * 201),
        ("tags", ["x"] * 101),
        ("examples", ["x"] * 101),
        ("tags.1", ["fine", "x" * 201]),
        ("negative_examples.0", ["x" * 2_001]),
    ],
)
def test_what_is_no_text_of_its_length_and_letters_is_rejected(attribute, value):
    assert _faults(an_item(**{attribute.partition(".")[0]: value})).keys() == {attribute}


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_cannot_express_is_rejected(number):
    assert "number" in _faults(an_item(descriptor={"deep": [number]}))[""]


@pytest.mark.parametrize(
    "item",
    [
        an_item(description="\ud800"),
        an_item(name="a\udfffb"),
        an_item(tags=["\ud83d"]),
        an_item(tags={"\ud83d"}),
        an_item(descriptor={"\ud800": 1}),
        {**an_item(), "\ud800": 1},
    ],
    ids=["text", "name", "list", "set", "key within", "attribute"],
)
def test_a_lone_surrogate_is_rejected_with_a_printable_error(item):
    faults = _faults(item)
    assert faults
    assert json.dumps(faults, ensure_ascii=False).encode()


def test_an_item_nested_beyond_recursion_is_rejected():
    endless: list = []
    for _ in range(100_000):
        endless = [endless]
    assert str(MAX_DEPTH) in _faults(an_item(descriptor={"deep": endless}))[""]
    while endless:  # taken apart by hand, or freeing it would recurse
        endless = endless.pop()


@pytest.mark.parametrize("letter", ["x", "é", "💸"])
def test_an_item_beyond_the_limit_is_rejected_with_its_size(letter):
    empty = len(json.dumps(an_item(descriptor={"text": ""})).encode())
    text = letter * ((MAX_ITEM_BYTES - empty) // len(letter.encode()))
    assert Registration.parse(an_item(descriptor={"text": text}))
    assert "bytes; the maximum is 400,000" in _faults(an_item(descriptor={"text": text + letter}))[""]


@pytest.mark.parametrize("item", [None, "text", 3, True, [], [an_item()], b"{}"])
def test_an_item_that_is_not_an_object_or_has_keys_that_are_no_text_is_rejected(item):
    assert "JSON object" in _faults(item)[""]
    assert "1" in _faults({**an_item(), 1: "x"})


@given(st.dictionaries(st.sampled_from([*Registration.model_fields, "trust", "colour"]), json_values()) | json_values())
def test_any_json_is_either_accepted_or_rejected_with_its_faults(item):
    try:
        faults = [Fault("none", "at all")] if Registration.parse(item) else []
    except RegistrationInvalid as refused:
        faults = refused.faults
    assert faults
    assert all(fault.message for fault in faults)


ITEM = {"namespace": "com.acme", "name": "pay", "kind": "tool", "tags": ["a"], "descriptor": {"x": {"y": 1, "z": 2}}}


@pytest.mark.parametrize(("patch", "changes"), [
    ({}, {}), ({"tags": ["b"]}, {"tags": ["b"]}), ({"tags": None}, {"tags": None}), ({"version": None}, {}),
    ({"descriptor": {"x": {"y": None}, "w": [1]}}, {"descriptor": {"x": {"z": 2}, "w": [1]}}),
    ({"descriptor": {"x": 3}}, {"descriptor": {"x": 3}}), ({"input_schema": {"a": {}}}, {"input_schema": {"a": {}}}),
    ({"name": " pay "}, {}),
])  # fmt: skip
def test_a_merge_patch_changes_what_it_names(patch, changes):
    """RFC 7396."""
    expected = {name: value for name, value in {**ITEM, **changes}.items() if value is not None}
    assert apply_patch(ITEM, patch).item() == expected
    assert ITEM["descriptor"] == {"x": {"y": 1, "z": 2}}


@pytest.mark.parametrize(("patch", "attribute"), [
    ([], ""), ("x", ""), (None, ""), ({"name": "other"}, "name"), ({"namespace": "com.evil"}, "name"),
    ({"name": None}, "name"), ({"trust": 100}, "trust"), ({"id": "x"}, "id"), ({"tags": "a"}, "tags"),
    ({"descriptor": _nested(900)}, ""), ({"descriptor": {"x": "\ud800"}}, ""),
    ({"descriptor": {"x": float("nan")}}, ""),
    ({"description": "x" * 100_001}, "description"), ({"visible_to": []}, "visible_to"),
    ({"provider": "A\u200bcme"}, "provider"),
])  # fmt: skip
def test_a_patch_that_is_hostile_or_makes_another_id_is_refused(patch, attribute):
    with pytest.raises(RegistrationInvalid) as refused:
        apply_patch(ITEM, patch)
    assert {fault.attribute for fault in refused.value.faults} == {attribute}


def test_what_an_older_version_stored_can_be_patched_into_what_is_valid():
    assert apply_patch({**ITEM, "provider": "A\u200bcme"}, {"provider": "Acme"}).provider == "Acme"
