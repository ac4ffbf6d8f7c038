"""A browser and services for each module, over registries filled once; for each test a page that must behave."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Browser, expect

from tests.conftest import skip_or_fail
from tests.console import homes
from tests.console.browser import Console, Looks, installed, launched, watched
from tests.integration.conftest import Mats, Service, serving

Opener: TypeAlias = Callable[[Service | str], Console]


@pytest.fixture(scope="session")
def browser_path() -> str:
    """Where the browser is; skips where there is none."""
    path = installed()
    if path is None:
        skip_or_fail("browser (Chromium)")
        raise AssertionError
    return path


@pytest.fixture(scope="module")  # not longer: its client keeps this thread from running any other event loop
def browser(browser_path: str) -> Iterator[Browser]:
    expect.set_options(timeout=20_000)  # for a machine with other work; what holds at once waits for nothing
    with launched(browser_path) as browser:
        yield browser


@pytest.fixture
def looks() -> Looks:
    """How tests look at pages; parametrize `looks` with LOOKS for wide and narrow, light and dark."""
    return Looks()


@pytest.fixture
def opener(browser: Browser, looks: Looks) -> Iterator[Opener]:
    """Opens consoles over any service; the test fails if one of them had anything to complain about."""
    consoles: list[Console] = []
    with ExitStack() as entered:

        def opened(service: Service | str) -> Console:
            url, token = (service, "") if isinstance(service, str) else (service.url, service.token)
            consoles.append(entered.enter_context(watched(browser, url, looks, token=token)))
            return consoles[-1]

        yield opened
        if complaints := [complaint for console in consoles for complaint in console.complaints()]:
            pytest.fail("the page misbehaved:\n" + "\n".join(complaints), pytrace=False)


@pytest.fixture(scope="session")
def sample_home(browser_path: str, tmp_path_factory: pytest.TempPathFactory) -> Mats:
    """Where the sample registry is loaded when it is first served; with the encoder where there is one."""
    return Mats(tmp_path_factory.mktemp("sample") / "home", homes.encoder_at_hand())


@pytest.fixture(scope="session")
def hostile_home(browser_path: str, tmp_path_factory: pytest.TempPathFactory) -> Mats:
    mats = Mats(tmp_path_factory.mktemp("hostile") / "home")
    homes.hostile(mats)
    return mats


@pytest.fixture(scope="session")
def sample(sample_home: Mats) -> Iterator[Service]:
    """The sample registry. Tests that share it do not write."""
    with serving(sample_home, "--sample") as service:
        yield service


@pytest.fixture(scope="session")
def hostile(hostile_home: Mats) -> Iterator[Service]:
    """A registry of attacks on whoever looks at it: `hostile.py`."""
    with serving(hostile_home) as service:
        yield service


@pytest.fixture
def empty(browser_path: str, tmp_path: Path) -> Iterator[Service]:
    """A registry with nothing in it yet, of this test alone."""
    with serving(Mats(tmp_path / "home")) as service:
        yield service


@pytest.fixture
def console(opener: Opener, sample: Service) -> Console:
    """The console over the sample registry."""
    return opener(sample)


@pytest.fixture
def blank(empty: Service, opener: Opener) -> Console:
    """The console over the empty registry, for tests that write; its pages close before the service ends."""
    return opener(empty)
