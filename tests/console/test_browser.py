"""The harness notices each class of fault, so that a suite without findings means something."""

import pytest

from mats.domain.capability.registration import Registration
from tests.console.accessibility import violations
from tests.console.browser import Looks, watched
from tests.console.hostile import PAYLOADS, hostile_items
from tests.console.pages import POLICY

URL = "http://127.0.0.1:9"
HEAD = '<!doctype html><html lang="en"><title>A page</title>'


@pytest.mark.parametrize(
    ("body", "policy", "complaint"),
    [
        ("<main><h1>Fine</h1><label>Name <input></label></main>", POLICY, ""),
        ("<p style='color: red'>Red</p>", POLICY, "policy violated: style-src-attr by inline"),
        ("<img alt='' src='https://elsewhere.invalid/x.png'>", "", "request to elsewhere: GET https"),
        ("<script>console.error('Bad luck')</script>", "", "console: Bad luck"),
        ("<script>throw new Error('Broken')</script>", "", "exception: Broken"),
        (PAYLOADS["image"], "", "a script of the registry ran"),
        (PAYLOADS["closing"], "", "a script of the registry ran"),
        ("<main><input></main>", "", "label: input: "),
        ("<main><font color='#aaaaaa'>Pale</font></main>", "", "color-contrast: font: "),
    ],
)
def test_each_fault_of_a_page_is_a_complaint(browser, body, policy, complaint):
    with watched(browser, URL, Looks()) as console:
        headers = {"Content-Security-Policy": policy} if policy else {}
        console.page.route(
            f"{URL}/**", lambda route: route.fulfill(content_type="text/html", headers=headers, body=HEAD + body)
        )
        console.open("")
        found = "\n".join([*violations(console.page), *console.complaints()])
    assert complaint in found if complaint else not found


def test_every_hostile_item_is_valid_and_has_its_own_id():
    ids = [Registration.parse(item).id for item in hostile_items()]
    assert len(set(ids)) == len(ids)
