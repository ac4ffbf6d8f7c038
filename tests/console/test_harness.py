"""The harness notices each fault, so that a suite without findings means something."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mats.domain.capability.registration import Registration
from mats.domain.profile.profile import Status
from tests.console import homes
from tests.console.accessibility import violations
from tests.console.browser import LOOKS, Console, Looks, watched
from tests.console.hostile import ENDPOINTS, PAYLOADS, hostile_items
from tests.console.site import POLICY, site

pytestmark = pytest.mark.server

HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title><link rel="icon" href="/i.svg">'
    '<meta name="viewport" content="width=device-width"></head>'
)
GOOD = HEAD + "<body><main><h1>Fine</h1><label>Name <input></label></main></body></html>"
ICON = '<svg xmlns="http://www.w3.org/2000/svg"/>'


@contextmanager
def shown(
    browser, body: str, *, script: str = "", policy: str = POLICY, looks: Looks | None = None
) -> Iterator[Console]:
    page = HEAD + body + ('<script src="/x.js"></script>' if script else "")
    with (
        site({"/": page, "/i.svg": ICON, "/x.js": script}, policy) as url,
        watched(browser, url, looks or Looks()) as console,
    ):
        console.open("")
        yield console


def complaints(browser, body: str, **more: str) -> str:
    with shown(browser, body, **more) as console:
        return "\n".join(console.complaints())


@pytest.mark.parametrize("looks", LOOKS, ids=str)
def test_a_good_page_gives_no_reason_to_complain(browser, looks):
    with shown(browser, GOOD, script="document.title = 'It runs';", looks=looks) as console:
        assert violations(console.page) == []
        assert console.page.title() == "It runs"
        assert console.complaints() == []
        assert console.page.evaluate("[innerWidth, innerHeight]") == [looks.width, looks.height]
        assert console.page.evaluate(f"matchMedia('(prefers-color-scheme: {looks.scheme})').matches")


def test_less_motion_is_asked_for(browser):
    with shown(browser, GOOD, looks=Looks(still=True)) as console:
        assert console.page.evaluate("matchMedia('(prefers-reduced-motion: reduce)').matches")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<script>window.__xss=1</script>", "policy violated: script-src-elem by inline"),
        ("<p style='color: red'>Red</p>", "policy violated: style-src-attr by inline"),
        ("<img alt='' src='https://elsewhere.invalid/x.png'>", "policy violated: img-src by https://elsewhere.invalid"),
        ("<img alt='' src=x onerror=window.__xss=1>", "policy violated: script-src-attr by inline"),
        ("<img alt='' src='/lost.png'>", "console: Failed to load resource"),
    ],
)
def test_policy_violation_is_a_complaint(browser, body, told):
    assert told in complaints(browser, body)


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("document.body.innerHTML = '<b>bold</b>'", "policy violated: require-trusted-types-for"),
        ("new Function('return 1')()", "policy violated: "),
        ("console.error('Bad luck')", "console: Bad luck"),
        ("throw new Error('Broken')", "exception: Broken"),
        ("Promise.reject(new Error('Forgotten'))", "exception: Forgotten"),
        ("location.href = 'https://elsewhere.invalid/'", "request to elsewhere: GET https://elsewhere.invalid/"),
        ("window.open('https://elsewhere.invalid/popup')", "request to elsewhere: GET https://elsewhere.invalid/popup"),
    ],
)
def test_script_error_is_a_complaint(browser, script, told):
    assert told in complaints(browser, "<body>", script=script)


@pytest.mark.parametrize(
    "body", ["<img alt='' src='https://elsewhere.invalid/x.png'>", "<img alt='' src='http://127.0.0.1:9/x.png'>"]
)
def test_request_to_another_host_is_a_complaint_without_a_policy(browser, body):
    assert "request to elsewhere: GET http" in complaints(browser, body, policy="")


@pytest.mark.parametrize("label", ["script", "upper", "image", "quoted-image", "svg", "frame", "closing", "comment"])
def test_a_payload_runs_where_nothing_holds_it(browser, label):
    assert "a script of the registry ran" in complaints(browser, f"<body>{PAYLOADS[label]}", policy="")


def test_what_a_test_expects_is_forgiven(browser):
    with shown(browser, "<img alt='' src='/lost.png'>") as console:
        console.forgive(r"status of 404 .*/lost\.png")
        assert console.complaints() == []


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("<main><input></main>", "label: input: "),
        ("<main><img src='/i.svg'></main>", "image-alt: img: "),
        ("<main><button></button></main>", "button-name: button: "),
        ("<main><div role='slider' tabindex='0'>x</div></main>", "aria-required-attr: "),
        ("<main><font color='#aaaaaa'>Pale</font></main>", "color-contrast: font: "),
    ],
)
def test_what_is_not_accessible_is_found(browser, body, rule):
    with shown(browser, body) as console:
        found = violations(console.page)
        assert [line for line in found if line.startswith(rule)], found
        assert not [complaint for complaint in console.complaints() if "policy" in complaint]


def test_the_harness_itself_breaks_no_policy(browser):
    with shown(browser, GOOD) as console:
        violations(console.page)
        console.page.get_by_label("Name").fill("x")
        console.page.screenshot()
        assert console.complaints() == []


def test_every_hostile_item_is_valid_and_another():
    registrations = [Registration.parse(item) for item in hostile_items()]
    assert len({registration.id for registration in registrations}) == len(registrations)


def test_the_hostile_registry_holds_its_attacks(hostile):
    status, answer = hostile.request("/discover", {"query": "refund a card payment", "limit": 15, "explain": True})
    assert status == 200
    assert "window.__xss=1" in str(answer)


def test_a_rejected_registration_is_among_the_hostile_ones(hostile_home):
    with homes.opened(hostile_home) as local:
        [kept] = local.stores.profiles.get([homes.REJECTED]).values()
    assert kept.profile.status is Status.REJECTED
    assert PAYLOADS["image"] in kept.profile.error
    assert kept.profile.endpoint == ENDPOINTS[0]


def test_hostile_text_is_in_the_writers_fields_too(hostile_home):
    with homes.opened(hostile_home) as local:
        kept = local.stores.profiles.get(list(local.stores.registry.ids())).values()
    enriched = [each.profile.enrichment for each in kept if each.profile.enrichment]
    assert "onerror=window.__xss=1" in str(enriched)


def test_services_run_for_the_pages(sample, empty, opener):
    assert sample.request("/healthz")[0] == 200
    assert empty.request("/healthz")[0] == 200
    assert opener(sample).page.url == "about:blank"
