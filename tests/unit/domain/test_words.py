"""Names, schemas, query terms, and plain text."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.text.words import (
    MAX_LEVELS,
    STOP_WORDS,
    Parameters,
    clean,
    clip,
    first_sentence,
    has_words,
    index_terms,
    is_readable,
    opening,
    pairs,
    plain,
    query_terms,
    read_parameters,
    split_identifier,
    stem,
    words,
)
from tests.strategies import json_values


@pytest.mark.parametrize(
    ("name", "spoken"),
    [
        ("getUser_v2", "get User v 2"),
        ("refund_payment", "refund payment"),
        ("HTTPServer", "HTTP Server"),
        ("parseHTML5Page", "parse HTML 5 Page"),
        ("GPT4o", "GPT 4 o"),
        ("titan-embed-v2:0", "titan embed v 2 0"),
        ("  two\twords\n", "two words"),
        ("UPPER", "UPPER"),
        ("払い戻し", "払い戻し"),
        ("__", ""),
        ("", ""),
    ],
)
def test_a_name_is_split_into_its_words(name, spoken):
    assert split_identifier(name) == spoken


@given(st.text("aB1éß払_-/. "))
def test_splitting_a_name_loses_no_letter(name):
    assert "".join(split_identifier(name).split()) == "".join(c for c in name if c.isalnum())


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("refund a customer's card payment", ("refund", "customer", "card", "payment")),
        ("I’m sure they don't, we'll see", ("sure", "see")),
        ("'s", ("s",)),
        ("refund, refunds, refunded & refunding", ("refund",)),
        ("ROTATE secrets_manager keys", ("rotate", "secrets", "manager", "keys")),
        ("转换 单位", ("转换", "单位")),
        ("devolver el dinero de un pago con tarjeta", ("devolver", "dinero", "pago", "tarjeta")),
        ("mit license for el paso", ("mit", "license", "el", "paso")),
        ("el paso hotels", ("el", "paso", "hotels")),
        ("what is it", ("what", "is", "it")),
        ("to be or not to be", ("to", "be", "or", "not")),
        ("", ()),
    ],
)
def test_a_query_is_searched_by_its_content_words(text, terms):
    assert query_terms(text) == terms


queries = st.text().filter(lambda text: not {"'", "’"} & set(text)) | st.lists(
    st.sampled_from([*sorted(STOP_WORDS)[:20], "refund", "refunds", "Payment", "payments", "card", "e-mail"])
).map(" ".join)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Refunds refunded REFUND", ["refund"] * 3),
        ("possibly possible", ["possibl"] * 2),
        ("is it JS or s", ["is", "it", "js", "or", "s"]),
        ("Café cafe\u0301 CAFÉ", ["cafe"] * 3),
        ("hỗ trợ", ["ho", "tro"]),
        ("が天气预报", ["が天", "天气", "气预", "预报"]),
        ("get_user-v2", ["get", "user", "v2"]),
    ],
)
def test_an_index_compares_stems_without_accents(text, terms):
    assert index_terms(text) == terms


@given(queries)
def test_each_stem_is_searched_once_and_stop_words_only_in_a_query_without_others(text):
    terms, asked = query_terms(text), words(text)
    telling = [word for word in asked if word not in STOP_WORDS]
    stems = [stem(term) for term in terms]
    assert len(stems) == len(set(stems))
    assert telling == [] or STOP_WORDS.isdisjoint(terms)
    assert {stem(word) for word in telling or asked} <= set(stems) <= {stem(word) for word in asked}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the balance of a card", {("balanc", "card")}),
        ("card balance", {("card", "balanc")}),
        ("plan B tickets", {("plan", "ticket")}),
        ("the customer's cards", {("custom", "card")}),
        ("what is it", set()),
        ("", set()),
    ],
)
def test_pairs_are_of_telling_words_that_follow_one_another(text, found):
    assert pairs(text) == found


SCHEMA = {
    "type": "object",
    "properties": {
        "amount_cents": {"type": "integer", "description": "How much to give back", "minimum": 1},
        "reason": {"type": "string", "enum": ["duplicate", "fraud"], "default": "duplicate"},
    },
    "required": ["amount_cents"],
    "additionalProperties": False,
}
READ = Parameters(("amount_cents", "reason"), ("How much to give back", "duplicate", "fraud"))


OPENAPI = [
    {"name": "city", "in": "query", "required": True, "description": "Where to look", "schema": {"type": "string"}},
    {"name": "days", "in": "query", "description": "How far ahead", "schema": {"type": "integer", "format": "int32"}},
]
OPENAPI_READ = Parameters(("city", "days"), ("Where to look", "How far ahead"))
SKILL = {
    "id": "s-1", "name": "Trip planning", "description": "Plans a journey.", "tags": ["travel"],
    "examples": ["three days in Rome"], "inputModes": ["text/plain"],
}  # fmt: skip
NESTED = {
    "payee": {"type": "object", "properties": {"iban": {"description": "Account"}}},
    "lines": {"type": "array", "items": {"anyOf": [{"properties": {"sku": {}}}, {"type": "null"}]}},
}
KEYWORDS = ["type", "description", "name", "properties", "items", "required", "enum", "format", "title", "id", "url"]


def a_city(text: str) -> dict[str, object]:
    return {"properties": {"city": {"description": text}}}


@pytest.mark.parametrize(
    ("sources", "read"),
    [
        (
            [{"name": "refund", "title": "Refund", "description": "Gives money back.", "inputSchema": SCHEMA}],
            Parameters(("refund", *READ.names), ("Refund", "Gives money back.", *READ.texts)),
        ),
        ([OPENAPI], OPENAPI_READ),
        ([{"parameters": OPENAPI}], OPENAPI_READ),
        ([{"city": "Where to look", "days": 3}], Parameters(("city", "days"), ("Where to look",))),
        ([{"skills": [SKILL]}], Parameters(("Trip planning",), ("Plans a journey.", "travel", "three days in Rome"))),
        ([{"properties": NESTED}], Parameters(("payee", "iban", "lines", "sku"), ("Account",))),
        (
            [{"properties": {"properties": {"type": "array", "description": "Which ones"}}}],
            Parameters(("properties",), ("Which ones",)),
        ),
        ([a_city("a"), a_city("b")], Parameters(("city",), ("a", "b"))),
        *(
            ([a_city(nothing)], Parameters(("city",), ()))
            for nothing in ("", "  ", "N/A", "none", "null", "string", "Object", "true")
        ),
    ],
)
def test_names_and_texts_of_each_form_of_parameters_are_read_once_and_in_order(sources, read):
    assert read_parameters(*sources) == read


@pytest.mark.parametrize("text", ["not { JSON", "[" * 100_000, "9" * 5_000])
def test_text_that_is_no_json_is_read_as_text(text):
    assert read_parameters(text) == Parameters((), (text,))


def test_reading_stops_quietly_where_nothing_worth_a_match_can_be():
    bottom: object = {"buried": {}}
    for _ in range(10 * MAX_LEVELS):
        bottom = [bottom]
    assert read_parameters({"city": bottom}) == Parameters(("city",), ())


keys = st.sampled_from([*KEYWORDS, "parameters", "skills", "anyOf", "$defs", "inputSchema"]) | st.text(max_size=5)
descriptions = json_values(keys=keys)


@given(st.dictionaries(keys, descriptions) | st.lists(descriptions))
def test_any_json_reads_alike_as_value_and_as_text(value):
    assert read_parameters(json.dumps(value)) == read_parameters(value)


@given(st.dictionaries(st.text(), descriptions))
def test_every_property_of_a_schema_is_a_parameter(properties):
    names, _ = read_parameters({"type": "object", "properties": properties})
    assert set(properties) <= set(names)


@given(st.text(), st.integers(1, 60))
def test_a_clipped_text_is_within_its_limit_and_a_prefix(text, limit):
    clipped = clip(text, limit)
    assert len(clipped) <= limit
    if len(text) <= limit:
        assert clipped == text
    else:
        assert clipped.endswith("…")
        assert text.startswith(clipped[:-1])


@pytest.mark.parametrize(("limit", "expected"), [(18, "refund payments…"), (7, "refund…"), (8, "refund…"), (1, "…")])
def test_a_text_is_cut_at_a_word_boundary_near_the_limit(limit, expected):
    assert clip("refund payments now please", limit) == expected


@given(st.text())
def test_a_clean_text_has_no_control_characters_and_single_spaces(text):
    cleaned = clean(text)
    assert all(unicodedata.category(c) not in ("Cc", "Cs") for c in cleaned)
    assert cleaned == " ".join(cleaned.split())
    assert clean(cleaned) == cleaned


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("  a \n\n b\tc ", "a b c"),
        ("a\x00b", "a b"),
        ("a\ud800b", "a b"),
        ("a\u00a0b\u2028c", "a b c"),
        ("\x1b\x07", ""),
    ],
)
def test_cleaning_parts_words_where_a_control_character_stood(text, cleaned):
    assert clean(text) == cleaned


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Refunds a payment. Then sends mail.", "Refunds a payment."),
        ("Works with version 2.5 only. Beware.", "Works with version 2.5 only."),
        ("Really? Yes!", "Really?"),
        ("No full stop at all", "No full stop at all"),
        ("", ""),
        ("退款。发送邮件。", "退款。"),
    ],
)
def test_the_first_sentence_ends_where_it_ends(text, first):
    assert first_sentence(text) == first


@pytest.mark.parametrize(
    ("words", "pieces", "readable"),
    [
        (["refund", "a", "payment"], ["ref", "und", "a", "payment"], True),
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
        ([], [], True),
        (["42"], ["42"], True),
    ],
)
def test_text_that_is_spelled_or_split_is_not_read(words, pieces, readable):
    assert is_readable(words, pieces) is readable


@pytest.mark.parametrize(
    ("words", "pieces", "expected"),
    [
        (["refund", "a", "payment"], ["ref", "und", "a", "payment"], True),
        (["kubectl", "rollout", "restart"], ["ku", "be", "ct", "l", "roll", "out", "restart"], True),
        (["xqzv", "blorp"], ["x", "q", "z", "v", "blo", "rp"], False),
        (["xqzv", "x2"], ["x", "q", "z", "v", "x", "2"], False),
        (["天气"], ["天", "", ""], True),
        (["погода"], ["п", "о", "г", "о", "да"], True),
        (["42"], ["42"], True),
        ([], [], True),
    ],
)
def test_latin_letters_that_fall_apart_are_no_words(words, pieces, expected):
    assert has_words(words, pieces) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Get a [claim](https://docs.example.com/a_(b)).", "Get a claim."),
        ('Read the [docs](/x "Title") and ![logo][1].', "Read the docs and logo."),
        ("See the documentation.", "See the documentation."),
        (
            'Lists forks. For more information, see "[About](https://x.example)." Newest first.',
            "Lists forks. Newest first.",
        ),
        ("Adds a key. See https://example.com/keys for more.", "Adds a key."),
        ("Reads `items[0](now)` of <path>", "Reads `items0` of <path>"),
        ("<b>Bold</b> text", "Bold text"),
        ("Nothing to change: a < b.", "Nothing to change: a < b."),
    ],
)
def test_links_keep_their_words_and_referrals_leave(text, expected):
    assert " ".join(plain(text).split()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Get claim. Returns a claim with its photos. Needs a key.", "Get claim. Returns a claim with its photos."),
        ("Creates a refund for a captured card payment. Slow.", "Creates a refund for a captured card payment."),
        ("Get claim.", "Get claim."),
        ("查询指定城市的天气预报。支持国内城市。", "查询指定城市的天气预报。"),
        ("", ""),
    ],
)
def test_an_opening_ends_once_it_says_enough(text, expected):
    assert opening(text) == expected


@given(st.text(), st.integers(min_value=2, max_value=50))
def test_an_opening_is_within_its_limit(text, limit):
    assert len(opening(text, limit)) <= limit
