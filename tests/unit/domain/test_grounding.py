"""Grounding of enrichments in registrations."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mats.domain.capability.registration import Registration
from mats.domain.profile.grounding import ground, is_bare, is_opaque, says_nothing
from mats.domain.profile.profile import Enrichment
from tests.builders import a_registration

SCHEMA = {"type": "object", "properties": {"charge_id": {"type": "string"}, "amountCents": {"type": "integer"}}}
ABOUT = "Gives money back, up to 5,000 EUR within 24h. See https://docs.acme.com/refunds or /v2/refunds."
REFUND = a_registration(description=ABOUT, input_schema=SCHEMA)
INVENTED = (
    "https://evil.com/x", "www.evil.com", "pay@evil.com", "order_id", "getUser", "ORD-4711", "v3", "4155550100",
    "/v9/users", "std::sort", "com.evil", "#4711", "https://docs.acme.community", "https://docs.acme.com/refunds-evil",
    "@evil", "a1b2c3d4", "v2.1",
)  # fmt: skip
ILLUSTRATIONS = ("4711", "12.5", "48h", "1980s", "7", "10%", "5 pm", "5pm", "14:30", "2nd", "99,000", "LH1234")
"""Numbers that a request may have although the registration does not; no claim may."""
FIELDS = ("summary", "action", "keywords", "positive_examples", "negative_examples")


def fields(prose: str, *entries: str) -> Enrichment:
    return Enrichment(
        summary=prose, action=prose, keywords=entries, positive_examples=entries, negative_examples=entries
    )


HARMLESS = fields("Gives money back.", "money back")


def written(text: str) -> Enrichment:
    """The text in every field, beside something harmless."""
    return fields(f"Gives money back. {text}", "money back", text)


@pytest.mark.parametrize("invention", INVENTED)
@pytest.mark.parametrize("around", ["{}", "Refunds {} at once", "Refunds ({}), please.", "the “{}”"])
def test_ungrounded_text_is_dropped_from_every_field(invention, around):
    kept = ground(written(around.format(invention)), REFUND)
    assert kept.enrichment == HARMLESS
    assert [note.split(":")[0] for note in kept.notes] == [f"dropped from {field}" for field in FIELDS]
    assert all(invention.strip("#@") in note for note in kept.notes)


@pytest.mark.parametrize("number", ILLUSTRATIONS)
def test_numbers_that_illustrate_a_request_stay_in_examples_only(number):
    kept = ground(written(f"refunds {number} at once"), REFUND).enrichment
    entries = ("money back", f"refunds {number} at once")
    assert kept == HARMLESS.model_copy(update={"positive_examples": entries, "negative_examples": entries})


@pytest.mark.parametrize(
    "said",
    [
        "refund a charge id", "refund chargeId 5000", "charge_id", "Charge-ID", "amount cents", "up to 5,000 EUR",
        "within 24h", "within 24 h", "see https://docs.acme.com/refunds.", "POST /v2/refunds", "refund_payment",
        "refundPayment", "up to 5000.00 EUR",
    ],
)  # fmt: skip
def test_grounded_text_stays_in_any_spelling(said):
    kept = ground(written(said), REFUND)
    assert (kept.enrichment, kept.notes) == (written(said), ())


@pytest.mark.parametrize(
    "prose",
    [
        "and/or", "e.g. a partial refund", "TCP/IP", "a well-known card-holder's bank", "U.S. dollars", "it's done…",
        "返金する。早く。", "Rückerstattung für Kund*innen", "refund (partial) – now!", "yes/no",
        "the buyer's \"money\"",
        "¿Qué pasa?", "I.e., none", "a.m. or p.m.",
    ],
)  # fmt: skip
def test_ordinary_prose_is_no_identifier(prose):
    kept = ground(Enrichment(keywords=(prose,)), REFUND)
    assert kept.enrichment.keywords == (prose,)


@pytest.mark.parametrize("gap", ["\n", "\r\n", "\t", "\n\n- ", " (", '"', "\\"])
@pytest.mark.parametrize("said", ["https://docs.acme.com/refunds", "get_refund", "pay@acme.com", "/v2/refunds", "4711"])
def test_text_before_a_name_in_the_registration_does_not_matter(said, gap):
    registration = a_registration(description=f"Gives money back. See{gap}{said}")
    assert ground(written(said), registration).enrichment == written(said)


@pytest.mark.parametrize(
    "invention",
    ["https://acme.com", "http://acme.com.au", "pay@acme.com", "x@acme.com.au", "https://acme.com.au/evil", "t.co/x",
     "root@localhost", "https://user:secret@acme.com.au"],
)  # fmt: skip
def test_a_piece_of_an_address_is_another_address(invention):
    registration = a_registration(
        description="See https://acme.com.au or write to refund-pay@acme.com.au, or x.pay@acme.com."
    )
    assert ground(written(invention), registration).enrichment.keywords == ("money back",)


@pytest.mark.parametrize("said", ["500", "1.5", "max results", "maxResults", "Only paid", "true"])
def test_keys_numbers_and_values_of_a_schema_are_evidence(said):
    schema = {"properties": {"maxResults": {"maximum": 500, "default": 1.5, "enum": ["Only_Paid", True]}}}
    registration = a_registration(input_schema=schema)
    assert ground(written(said), registration).enrichment == written(said)


def test_wordy_replies_about_long_registrations_are_read_in_passing():
    registration = a_registration(descriptor={"a": "1-a " * 90_000})
    reply = Enrichment(summary="1, " * 260, keywords=("1 w " * 70,) * 20, positive_examples=("a_b " * 70,) * 20)
    began = time.process_time()
    ground(reply, registration)
    assert time.process_time() - began < 20


def test_whole_sentences_go_and_the_others_stay_as_they_were():
    summary = "Gives money back. Costs 20 dollars per call. Takes a charge_id."
    assert ground(Enrichment(summary=summary), REFUND).enrichment.summary == "Gives money back. Takes a charge_id."


@pytest.mark.parametrize("short", ["e.g.", "i.e.", "the U.S.", "9 a.m."])
def test_a_sentence_with_an_abbreviation_is_dropped_whole(short):
    kept = ground(Enrichment(summary=f"Gives money back. Serves {short} acct_77x holders."), REFUND)
    assert (kept.enrichment.summary, len(kept.notes)) == ("Gives money back.", 1)


harmless = st.sampled_from(["refunds", "money", "and/or", "e.g.", "don't", "well-known", "返金", "TCP/IP", "buyer"])
hosts = st.from_regex(r"[a-z]{3,9}\.(com|io|example)", fullmatch=True)
planted = st.one_of(
    hosts.map("https://{}/pay".format), hosts.map("www.{}".format), hosts.map("pay@{}".format),
    st.from_regex(r"[a-z]{3,8}_[a-z]{3,8}", fullmatch=True),
    st.from_regex(r"[a-z]{3,8}[A-Z][a-z]{3,8}", fullmatch=True),
    st.from_regex(r"[A-Z]{2,4}-[0-9]{2,6}", fullmatch=True), st.integers(10**6, 10**12).map(str),
    st.integers(10**6, 10**12).map("{:,}".format),
)  # fmt: skip


@given(st.lists(harmless, max_size=6), planted, st.lists(harmless, max_size=6), st.sampled_from(FIELDS))
def test_no_invention_survives_between_harmless_words_in_any_field(before, invention, after, field):
    text = " ".join((*before, invention, *after))
    value = text if field in ("summary", "action") else (text, "money back")
    kept = ground(Enrichment.model_validate({field: value}), REFUND)
    assert invention not in " ".join(kept.enrichment.texts())
    assert kept.notes
    assert all(note.startswith(f"dropped from {field}: ") for note in kept.notes)


MUSIC = a_registration(
    name="TokApi: search", description="search songs on GitHub by natural language processing; Use the Sensor Tower API"
)


@pytest.mark.parametrize(
    "claim",
    [
        "Works with Spotify and Apple Music.", "Searches TikTok.", "TikTok search for songs.", "Runs on PostgreSQL.",
        "Spotify search for songs.", "Searches songs for IBM.", "Searches songs in the “Deezer” catalogue.",
        "Searches the iPhone.", "Searches songs free of charge.", "An award-winning search.", "Unlimited songs.",
        "Searches the top ten songs.", "Uses Spotify's songs.",
    ],
)  # fmt: skip
def test_a_sentence_with_another_product_or_a_promotional_claim_is_dropped(claim):
    prose = f"Searches songs. {claim}"
    kept = ground(Enrichment(summary=prose, action=prose), MUSIC)
    assert (kept.enrichment.summary, kept.enrichment.action) == ("Searches songs.", "Searches songs.")
    assert len(kept.notes) == 2


@pytest.mark.parametrize(
    "claim",
    [
        "Searches songs on GitHub.", "Searches Github songs.", "A TokApi tool.", "Uses NLP.", "Returns JSON or CSV.",
        "Takes URLs and IDs.", "Songs of the Sensor Tower.", "Given a song, Searches it.", "Finds songs; Returns them.",
        "Fetches Song Data.", "It Processes Language.", "The tool says: Tokenized songs.", "Open to anyone on Monday.",
        "Transcodes songs.", "Developers search songs.", "Temperatures in Celsius.",
    ],
)  # fmt: skip
def test_ordinary_capitalized_words_are_no_products(claim):
    kept = ground(Enrichment(action=claim), MUSIC)
    assert (kept.enrichment.action, kept.notes) == (claim, ())


def test_products_are_dropped_from_keywords_only():
    said = Enrichment(
        keywords=("TikTok", "Song Search"),
        positive_examples=("find a song on TikTok", "find me a song"),
        negative_examples=("play it: TikTok",),
    )
    kept = ground(said, MUSIC)
    assert kept.enrichment == said.model_copy(update={"keywords": ("Song Search",)})
    assert kept.notes == ("dropped from keywords: 'TikTok' (TikTok is not in the registration)",)


@pytest.mark.parametrize("name", ["xq7_proc", "proc-41", "f3a9 sum", "x9 calc"])
def test_an_opaque_name_grounds_no_summary_and_no_action(name):
    bare = a_registration(name=name, description=None)
    kept = ground(written("Processes data"), bare)
    assert is_opaque(name)
    assert (kept.enrichment.summary, kept.enrichment.action) == ("", "")
    assert kept.enrichment.keywords == ("money back", "Processes data")
    assert len(kept.notes) == 2


GENERIC = (
    "Demo Project", "asdfadsf", "test", "My API", "hello world", "New App v2", "untitled-1", "svc-41", "f3a9", "x9 y8",
    "T800", "___", "👋 Demo Project_v2: Me", "55ee860b-fe7e-4d66-a228-bb5320c3305d",
)  # fmt: skip


@pytest.mark.parametrize("name", GENERIC)
@pytest.mark.parametrize("about", [None, "A test project.", "my first api"])
def test_a_name_that_any_project_could_have_grounds_nothing(name, about):
    bare = a_registration(name=name, description=about)
    kept = ground(written("Processes data"), bare)
    assert says_nothing(bare)
    assert kept.enrichment == Enrichment()
    assert kept.notes == ("dropped all fields: name and description say nothing of what it does",)
    assert ground(Enrichment(), bare).notes == ()


@pytest.mark.parametrize(
    "name", ["convert_currency", "xq7_proc", "html2pdf", "sms", "test_email", "demo-invoice", "翻訳", "sample size"]
)
def test_a_telling_word_in_a_bare_name_grounds_keywords_and_examples(name):
    bare = a_registration(name=name, description=None)
    assert not says_nothing(bare)
    assert ground(written("Processes data"), bare).enrichment.positive_examples == ("money back", "Processes data")


@pytest.mark.parametrize(
    ("name", "summary", "stays"),
    [
        ("refund_payment", "Refunds a payment.", True),
        ("refund_payment", "A tool that refunds payments.", True),
        ("refund_payment", "Refunds a payment to the customer's card.", False),
        ("refund_payment", "Refunds a payment through Stripe.", False),
        ("calculator", "A calculator tool.", True),
        ("translate", "Translates.", True),
        ("translate", "Processes data.", False),
    ],
)
def test_the_summary_of_a_bare_name_uses_only_words_of_the_name(name, summary, stays):
    bare = a_registration(name=name, description=name.replace("_", " "))
    assert is_bare(bare)
    assert ground(Enrichment(summary=summary), bare).enrichment.summary == (summary if stays else "")


@pytest.mark.parametrize("more", [{"description": "Gives money back"}, {"tags": ["pay"]}, {"input_schema": SCHEMA}])
def test_a_registration_with_more_than_a_name_is_not_bare_and_grounds_what_that_says(more):
    demo = a_registration(**{"name": "Demo Project", "description": None, **more})
    assert not is_bare(demo)
    assert ground(Enrichment(keywords=("money back",)), demo).enrichment.keywords == ("money back",)


def _item(name: str, about: str) -> Registration:
    return a_registration(namespace="org.city", name=name, description=about)


@pytest.mark.parametrize("lead", [". ", ", "])
def test_most_abilities_that_writers_like_to_invent_are_dropped_from_a_summary(lead):
    rows = map(json.loads, (Path(__file__).parents[2] / "data" / "inventions.jsonl").read_text("utf-8").splitlines())
    dropped = []
    for item, about, invention in ((row, row["description"], each) for row in rows for each in row["invented"]):
        said = invention if lead == ". " else invention[0].lower() + invention[1:]
        summary = ground(Enrichment(summary=about[:-1] + lead + said), _item(item["name"], about)).enrichment.summary
        dropped.append(said not in summary)
    assert (len(dropped), sum(dropped) >= 0.8 * 60) == (60, True)


@pytest.mark.parametrize("field", ["action", "keywords", "positive_examples"])
@pytest.mark.parametrize("act", ["book a table", "pay the bill", "email the forecast", "translate it", "cancel it"])
def test_an_act_without_support_is_dropped_from_every_field_that_is_evidence(act, field):
    weather = _item("get_forecast", "Returns the weather for a city.")
    said = Enrichment.model_validate({field: act if field == "action" else [act]})
    assert ground(said, weather).enrichment == Enrichment()
    assert ground(Enrichment(negative_examples=(act,)), weather).enrichment.negative_examples == (act,)


@pytest.mark.parametrize("act", ["buy a ticket", "reserve a seat", "warn me of delays", "deposit money"])
def test_an_act_stays_that_the_registration_has_in_other_words(act):
    trains = _item("trains", "Orders tickets, posts a notification of each change to a bank's customers.")
    assert ground(Enrichment(positive_examples=(act,)), trains).enrichment.positive_examples == (act,)


@pytest.mark.parametrize(
    ("name", "about", "summary"),
    [
        ("get_forecast", "Returns the weather forecast for a city.", "Forecasts temperature and rain for any place."),
        ("getWeather", "", "Gets weather."),
        ("convert", "Turns currencies into others.", "Converts money, quotes and coins from one currency to another."),
        ("search_flights", "Find flights.", "Lists direct and connecting flights. Returns JSON or CSV."),
        ("stock_quote", "Latest price by ticker.", "Gives price, volume, news and ratings for a ticker."),
        ("resize", "Verkleinert ein Bild.", "Makes pictures smaller."),
        ("翻訳", "文書を翻訳する", "Translates documents."),
        ("buchen", "Bucht eine Reise", "Books trips."),
        ("yolov8n", "Object detector.", "YOLOv8 object detector."),
        ("layoutlmv2-base-uncased", "Document model", "LayoutLMv2 is a model of documents."),
        ("places", "Places of QZR", "Lists the places in Quiet Zone Radio."),
        ("meter", "Measures air", "Measures CO2 in the air as an IoT device."),
    ],
)  # fmt: skip
def test_a_supported_sentence_stays(name, about, summary):
    kept = ground(Enrichment(summary=summary), _item(name, about or None))
    assert (kept.enrichment.summary, kept.notes) == (summary, ())


def test_harmless_names_and_numbers_stay():
    said = Enrichment(
        keywords=("2D code", "seq2seq", "MP3", "CO2", "buy or sell"),
        positive_examples=("look up the code 4006381333931", "write to ann@example.com", "turn it into MP3", "3D scan"),
    )
    kept = ground(said, _item("code_reader", "Reads a code."))
    assert (kept.enrichment, kept.notes) == (said, ())
    assert not ground(said, _item("reader", "Reads a stripe.")).enrichment.positive_examples[0].startswith("look up")
