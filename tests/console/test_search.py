"""Asking, narrowing, and what stands with each result."""

import re

from playwright.sync_api import expect

from tests.console.pages import (
    PAYPAL,
    REFUND,
    answered,
    at,
    box,
    calm,
    cards,
    find,
    names,
    panel,
    questions,
    ready,
    unfold,
)  # fmt: skip

WORD = re.compile(r"[^\W_]+")


def test_a_question_is_asked_by_keyboard_alone(console, sample):
    page = console.open()
    expect(box(page)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Find")).to_be_focused()
    page.keyboard.press("/")
    expect(box(page)).to_be_focused()
    page.keyboard.type(REFUND)
    page.keyboard.press("Enter")
    expect(names(page)).to_have_text([result["name"] for result in answered(sample, REFUND)["results"]])
    expect(page).to_have_url(re.compile(r"#/search\?q=refund\+a\+card\+payment$"))
    expect(page).to_have_title(f"{REFUND} · mats")
    expect(page.get_by_role("status")).to_contain_text("match: ")


def test_kinds_narrow_the_answer_and_are_in_the_address(console, sample):
    page = console.open(at("search", q=REFUND))
    page.get_by_role("checkbox", name="agent", exact=True).check()
    expect(names(page)).to_have_text([one["name"] for one in answered(sample, REFUND, kinds=["agent"])["results"]])
    page.get_by_role("checkbox", name="skill", exact=True).press("Space")
    both = answered(sample, REFUND, kinds=["agent", "skill"])["results"]
    expect(names(page)).to_have_text([one["name"] for one in both])
    expect(page).to_have_url(re.compile(r"q=refund\+a\+card\+payment&kind=agent&kind=skill$"))
    for kind in ("agent", "skill"):
        page.get_by_role("checkbox", name=kind, exact=True).uncheck()
    expect(names(page)).to_have_text([one["name"] for one in answered(sample, REFUND)["results"]])
    expect(page).to_have_url(re.compile(r"q=refund\+a\+card\+payment$"))


def test_a_namespace_narrows_the_answer_and_asks_once(console, sample):
    page = console.open(at("search", q=REFUND))
    expect(cards(page).first).to_be_visible()
    asked = questions(page)
    page.get_by_label("Namespace").fill("com.stripe.mcp, com.paypal.mcp")
    page.get_by_label("Namespace").press("Enter")
    narrowed = answered(sample, REFUND, namespaces=["com.stripe.mcp", "com.paypal.mcp"])["results"]
    expect(names(page)).to_have_text([one["name"] for one in narrowed])
    expect(page).to_have_url(re.compile(r"&ns=com\.stripe\.mcp&ns=com\.paypal\.mcp$"))
    page.get_by_label("Namespace").press("Tab")
    calm(page)
    assert len(asked) == 1


def test_an_address_brings_everything_back(console):
    address = at("search", q=REFUND, kind=["tool", "agent"], ns="com.paypal.mcp", open=PAYPAL)
    page = console.open(address)
    expect(box(page)).to_have_value(REFUND)
    expect(page.get_by_role("checkbox", name="tool", exact=True)).to_be_checked()
    expect(page.get_by_role("checkbox", name="agent", exact=True)).to_be_checked()
    expect(page.get_by_role("checkbox", name="model", exact=True)).not_to_be_checked()
    expect(page.get_by_label("Namespace")).to_have_value("com.paypal.mcp")
    expect(panel(page).get_by_text(PAYPAL, exact=True)).to_be_visible()
    expect(cards(page).get_by_text("com.paypal.mcp", exact=True)).to_have_count(cards(page).count())


def test_words_are_marked_where_the_capability_has_them_and_nothing_else_is(console, sample):
    page = console.open(at("search", q=REFUND))
    results = answered(sample, REFUND)["results"]
    expect(cards(page)).to_have_count(len(results))
    for card, result in zip(cards(page).all(), results, strict=True):
        spelled = set(result["why"]["spelled"] if result["why"] else [])
        shown = card.text_content()
        marked = [one.lower() for one in card.get_by_role("mark", include_hidden=True).all_text_contents()]
        why = result["why"]["matched"] if result["why"] else []
        telling = card.locator("p.summary").text_content()
        folded = result["summary"] if result["summary"] != telling else ""
        about = [
            word
            for text in (result["name"], result["namespace"], result["provider"], telling, folded)
            for word in words(text)
        ]
        assert sorted(marked) == sorted([word for word in about if word in spelled] + why), shown
    assert {"refund", "payment"} <= set(cards(page).first.get_by_role("mark").all_text_contents())


def words(text):
    return [word.lower() for word in WORD.findall(text)]


def test_keys_walk_through_the_list_open_pick_and_close(console, sample):
    page = console.open(at("search", q=REFUND))
    ids = [one["id"] for one in answered(sample, REFUND)["results"]]
    expect(cards(page)).to_have_count(len(ids))
    unfold(page)
    page.evaluate("document.activeElement.blur()")
    press = page.keyboard.press
    for key, place in (("j", 0), ("j", 1), ("ArrowDown", 2), ("k", 1), ("ArrowUp", 0), ("k", 0)):
        press(key)
        expect(names(page).nth(place)).to_be_focused()
    press("c")
    expect(page.get_by_text("Pick one more to compare.")).to_be_visible()
    press("j")
    press("Enter")
    expect(panel(page).get_by_text(ids[1], exact=True)).to_be_visible()
    expect(panel(page).get_by_role("heading", level=2)).to_be_focused()
    press("Escape")
    expect(panel(page)).to_have_count(0)
    expect(names(page).nth(1)).to_be_focused()
    press("c")
    page.get_by_role("link", name="Why is 1 above 2?").press("Enter")
    expect(page).to_have_url(re.compile("#/compare"))
    ready(page)
    press("Escape")
    expect(page).to_have_url(re.compile("#/search"))
    expect(cards(page)).to_have_count(len(ids))


def test_keys_are_letters_where_one_types(console):
    page = console.open()
    box(page).press_sequentially("grj?c/")
    expect(box(page)).to_have_value("grj?c/")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page).to_have_url(re.compile("#/search$"))


def test_question_mark_lists_the_keys_and_escape_closes_the_list(console):
    page = console.open("#/registry")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog.get_by_text("to the search or filter box")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Keys").click()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("button", name="Keys")).to_be_focused()


def test_a_request_in_parts_shows_what_serves_each(console):
    page = console.open()
    find(page, f"{REFUND}, and then turn a street address into coordinates")
    expect(page.get_by_role("list", name="Parts")).to_have_count(0)
    page.get_by_label("In parts").check()
    parts = page.get_by_role("list", name="Parts").get_by_role("listitem")
    expect(parts).to_have_count(2)
    expect(parts.first).to_contain_text(REFUND)
    expect(page).to_have_url(re.compile("parts=1"))
    link = parts.last.get_by_role("link").first
    name = re.sub(r"^\d+ ", "", link.inner_text())
    link.click()
    expect(panel(page)).to_contain_text(name)
