"""Registering, editing and removing; what is wrong and what would become of it, while one writes."""

import re

import pytest
from playwright.sync_api import expect

from tests.builders import an_item
from tests.console.pages import answered, at, box, find, names, panel, put, told
from tests.integration.conftest import Mats, serving, wait_until

PATH = "/registry/capabilities/com.acme.pay/"


@pytest.fixture(scope="module")
def desk(browser_path, tmp_path_factory):
    """A registry to write to; every test has ids of its own there."""
    with serving(Mats(tmp_path_factory.mktemp("desk") / "home")) as service:
        yield service


@pytest.fixture
def writing(opener, desk):
    """The console over it."""
    return opener(desk)


def field(page, label):
    """A field of the form, by its label."""
    return page.get_by_label(re.compile(rf"^{label}( \(required\))?$"))


def fault(page, label):
    """The fault of a field, as it is read out with it."""
    described = field(page, label).get_attribute("aria-describedby").split()
    return page.locator(f"#{described[-1]}")


def fill(page, **fields):
    for label, value in fields.items():
        field(page, label.replace("_", " ")).fill(value)


def started(page, name, **more):
    """A form with what is required."""
    fill(page, Namespace="com.acme.pay", Name=name, **more)
    field(page, "Kind").select_option("tool")


def status(page):
    return page.get_by_role("main").get_by_role("status")


def preview(page):
    return page.get_by_role("region", name="Preview of this registration")


def test_what_is_wrong_stands_with_its_field(writing, desk):
    writing.forgive(r"status of 422 .*/registry/")
    page = writing.open("#/edit")
    expect(field(page, "Name")).to_be_focused()
    fill(page, Namespace="not a namespace", Tags=f"{'x' * 201}, money", Input_schema="{")
    page.get_by_role("button", name="Preview").click()
    expect(fault(page, "Input schema")).to_contain_text("is not JSON")
    fill(page, Input_schema="")
    page.get_by_role("button", name="Preview").click()
    expect(fault(page, "Namespace")).not_to_be_empty()
    expect(field(page, "Namespace")).to_have_attribute("aria-invalid", "true")
    expect(field(page, "Namespace")).to_be_focused()
    expect(fault(page, "Tags")).to_have_text("0: must have at most 200 characters")
    fill(page, Namespace="com.acme.pay", Tags="money")
    page.get_by_role("button", name="Register").click()
    expect(fault(page, "Namespace")).to_be_empty()
    expect(fault(page, "Kind")).to_have_text("is required")
    expect(status(page)).to_have_text("Invalid: see the marked fields.")
    fill(page, Name="refund_nothing")
    field(page, "Kind").select_option("tool")
    page.get_by_role("button", name="Preview").click()
    expect(preview(page).get_by_role("heading", name="Its profile")).to_be_visible()
    expect(fault(page, "Kind")).to_be_empty()
    page.once("dialog", lambda dialog: dialog.accept())
    assert desk.request(f"{PATH}refund_nothing")[0] == 404


def test_the_preview_shows_the_rank(writing, desk):
    put(desk, an_item(name="pays_out", description="Pays money out to one card that customers name."))
    page = writing.open("#/edit")
    started(page, "pays_in", Description="Pays money out to a card that customers name.")
    fill(page, Example_requests="pay money to a customer's card")
    page.get_by_role("button", name="Preview").click()
    expect(preview(page)).to_contain_text("pay money to a customer's card")
    expect(preview(page)).to_contain_text(re.compile(r"place \d of 2"))
    page.once("dialog", lambda dialog: dialog.accept())


def test_what_is_registered_is_found(writing, desk):
    page = writing.open("#/edit")
    started(page, "rents_boat", Description="Rents a rowing boat by the hour.", Tags="boats, water")
    fill(page, Example_requests="rent a rowing boat\nhire a skiff for an hour")
    page.get_by_role("button", name="Register").press("Enter")
    expect(page).to_have_url(re.compile(r"#/registry\?open=com\.acme\.pay%2Frents_boat"))
    expect(panel(page).get_by_text("com.acme.pay/rents_boat", exact=True)).to_be_visible()
    kept = told(desk, f"{PATH}rents_boat")["registration"]
    assert kept["tags"] == ["boats", "water"]
    assert kept["examples"] == ["rent a rowing boat", "hire a skiff for an hour"]
    page.get_by_role("link", name="Search", exact=True).click()
    find(page, "rent a rowing boat")
    expect(names(page).first).to_have_text("rents_boat")


def test_edit_does_not_change_other_fields(writing, desk):
    item = an_item(
        name="whole", tags=["cards, cash", "money", "a\nb", "[x]"], examples=["first\nline", "second"],
        type_tags=["a,b"],
        input_schema={"type": "object", "properties": {"a": {"type": "string"}}}, negative_examples=["no -> thing"],
        descriptor={"name": "x", "deep": [1, {"y": None}]}, lifecycle="deprecated", visible_to=["team:a"],
        version="1.0", provider="Acme, Inc.",
    )  # fmt: skip
    put(desk, item)
    before = told(desk, f"{PATH}whole")["registration"]
    page = writing.open(at("edit", id="com.acme.pay/whole"))
    expect(page.get_by_role("heading", level=1, name="Edit whole")).to_be_visible()
    expect(field(page, "Version")).to_be_visible()
    expect(field(page, "Name")).to_have_js_property("readOnly", True)
    fill(page, Description="Says something else now.")
    page.get_by_role("button", name="Save").click()
    expect(panel(page).get_by_text("2, active, of")).to_be_visible()
    assert told(desk, f"{PATH}whole")["registration"] == {**before, "description": "Says something else now."}


def test_leaving_unsaved_asks_and_preserves_the_input(writing):
    page = writing.open("#/edit")
    started(page, "unsaved", Description="What I have written.")
    asked = []
    page.once("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    page.get_by_role("link", name="Import").click()
    expect(page).to_have_url(re.compile("#/edit$"))
    expect(field(page, "Description")).to_have_value("What I have written.")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("link", name="Search", exact=True).click()
    expect(box(page)).to_be_focused()
    assert asked == ["Leave without saving?"]


def test_concurrent_change_is_not_overwritten(writing, desk):
    put(desk, an_item(name="contested"))
    page = writing.open(at("edit", id="com.acme.pay/contested"))
    fill(page, Description="My change.")
    put(desk, an_item(name="contested", description="Their change."))
    writing.forgive(r"status of 412 .*contested")
    page.get_by_role("button", name="Save").click()
    expect(status(page)).to_contain_text("It was changed by someone else.")
    expect(field(page, "Description")).to_have_value("My change.")
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove: sure?").click()
    expect(status(page)).to_contain_text("It was changed by someone else")
    assert told(desk, f"{PATH}contested")["registration"]["description"] == "Their change."
    page.once("dialog", lambda dialog: dialog.accept())
    page.goto(f"{writing.url}/{at('registry', open='com.acme.pay/contested')}")
    expect(panel(page).get_by_text("Their change.").first).to_be_visible()


def test_a_taken_id_is_reported(writing, desk):
    put(desk, an_item(name="owned", description="Owned by somebody."))
    writing.forgive(r"status of 4(12|09|22) .*owned")
    page = writing.open("#/edit")
    started(page, "owned", Description="Mine now.")
    page.get_by_role("button", name="Register").click()
    expect(status(page)).to_contain_text("It is registered already.")
    assert told(desk, f"{PATH}owned")["registration"]["description"] == "Owned by somebody."
    page.once("dialog", lambda dialog: dialog.accept())


def test_removing_needs_two_presses(writing, desk):
    put(desk, an_item(name="going", description="Going somewhere nobody has been."))
    page = writing.open(at("edit", id="com.acme.pay/going"))
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("button", name="Remove: sure?")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Remove", exact=True)).to_be_visible()
    assert told(desk, f"{PATH}going")["registration"]
    page.get_by_role("button", name="Remove").press("Enter")
    page.get_by_role("button", name="Remove: sure?").press("Enter")
    expect(page).to_have_url(re.compile("#/registry$"))
    expect(page.get_by_text("going", exact=True)).to_have_count(0)
    wait_until(lambda: "going" not in str(answered(desk, "going somewhere nobody has been")["results"]))
    assert told(desk, f"{PATH}going")["registration"] is None
    page.goto(f"{writing.url}/{at('edit', id='com.acme.pay/going')}")
    expect(page.get_by_text("com.acme.pay/going is no longer registered.")).to_be_visible()


def test_a_service_that_fails_while_one_writes_loses_nothing(writing):
    writing.forgive(r"net::ERR_FAILED")
    page = writing.open("#/edit")
    page.route("**/registry/capabilities/**", lambda route: route.abort())
    started(page, "offline", Description="Kept.")
    page.get_by_role("button", name="Register").click()
    expect(status(page)).to_have_text("The service does not answer: check that it is running.")
    page.unroute("**/registry/capabilities/**")
    expect(field(page, "Description")).to_have_value("Kept.")
    page.get_by_role("button", name="Register").click()
    expect(panel(page).get_by_text("com.acme.pay/offline", exact=True)).to_be_visible()
