"""Slow pages: what works of a page of which something is still on its way, and is nobody interrupted once it has come?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

PAGE = """<!doctype html><title>Slow</title><script src="/app.js" defer></script>
<main id="main">
  <p role="alert" tabindex="-1">It went wrong.</p>
  <input name="more">
  <div id="value" data-hide-after="0" data-hidden="Hidden again.">a secret</div>
  <form action="/sent" data-passkey="get" data-options="{}"><input type="hidden" name="credential"><button>Go</button></form>
  <img src="/slow.png">
</main><div id="toasts" data-passkey="No passkey"></div>"""


@pytest.fixture
def slow(browser: Browser) -> Iterator[Page]:
    """A page whose picture does not come."""
    page = browser.new_page()
    page.route("**/*", lambda route: route.fulfill(body=PAGE, content_type="text/html"))
    page.route("**/app.js", lambda route: route.fulfill(path=settings.BASE_DIR / "static" / "ui" / "app.js"))
    page.route("**/slow.png", lambda _: None)
    page.goto("http://slow.test/", wait_until="domcontentloaded")
    yield page
    page.close()


@pytest.mark.req("CARD-3")
def test_a_value_hides_and_a_passkey_is_asked_for_before_all_of_a_page_has_come(
    slow: Page,
) -> None:
    expect(slow.locator("#value")).to_have_text("Hidden again.")
    slow.get_by_role("button", name="Go").click()

    expect(slow.locator(".toast")).to_contain_text("No passkey")
    assert slow.url == "http://slow.test/"
    assert slow.evaluate("document.readyState") == "interactive"


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize("typing", [True, False])
def test_what_went_wrong_takes_the_focus_from_nobody(typing: bool, slow: Page) -> None:
    if typing:
        slow.locator("[name=more]").focus()

    slow.evaluate("document.images[0].removeAttribute('src')")  # nothing is waited for any more
    slow.wait_for_selector("html[data-ready]", state="attached")

    focused = slow.evaluate("document.activeElement.name ?? document.activeElement.getAttribute('role')")
    assert focused == ("more" if typing else "alert")
