"""Live pages: does an open page show what becomes of things without being asked, with one stream for a browser and none unseen?"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import PATIENCE_MS, Variant, Visitor

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Embedded

QUOTE = "commerce.pricing.get_realtime_quote"
ARGUMENTS = {"sku": "LAPTOP-14", "quantity": 1, "currency": "EUR"}
# What a browser says to a page whose tab is hidden; headless ones show all their tabs.
HIDE = """hidden => {
    Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
}"""

CALLS = '#rows tr:has(a[href^="/invocations/inv_"])'


def sign_in(visitor: Visitor, hub: Embedded, name: str = "olivia") -> Page:
    assert hub.credentials
    visitor.sign_in(name, hub.credentials.password(name))
    return visitor.page


def be_live(page: Page) -> None:
    expect(page.locator("#live")).to_have_attribute("data-state", "live", timeout=PATIENCE_MS)


class Asked:
    """What a page asks its hub for, by path."""

    def __init__(self, page: Page) -> None:
        self.paths: list[str] = []
        page.on(
            "request", lambda request: self.paths.append(request.url.split("?")[0].partition("//")[2].partition("/")[2])
        )

    @property
    def streams(self) -> int:
        return self.paths.count("events")


def open_tab(beside: Page, url: str) -> tuple[Page, Asked]:
    page = beside.context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    asked = Asked(page)
    page.goto(url)
    be_live(page)
    return page, asked


@pytest.mark.req("CARD-3")
def test_tabs_share_one_stream_and_say_how_many_calls_are_newer(
    hub: Embedded, browser: Browser, tmp_path: Path
) -> None:
    with Visitor(browser, hub.url, Variant("live"), tmp_path) as olivia:
        first = sign_in(olivia, hub)
        be_live(first)
        second, asked = open_tab(first, f"{hub.url}/invocations?tool={QUOTE}")
        third, _ = open_tab(first, f"{hub.url}/invocations?tool=no.such.tool")
        before = second.locator(CALLS).all_inner_texts()

        call = hub.agent.invoke(QUOTE, ARGUMENTS).call_id
        pill = second.locator("#newer").get_by_role("button", name="1 newer")
        expect(pill).to_be_visible(timeout=PATIENCE_MS)
        assert len(second.locator(CALLS).all()) == len(before)  # nothing moved
        assert asked.streams == 0  # the first tab has it for all
        olivia.check("lists-in-other-tabs")

        pill.click()
        newest = second.locator(CALLS).first.get_by_role("link").first
        expect(newest).to_have_attribute("href", f"/invocations/{call}", timeout=PATIENCE_MS)
        expect(newest).to_be_focused()
        expect(third.locator("#newer button")).to_have_count(0)  # none that its filter lets through

        with second.expect_request("**/events"):  # of those that are left one goes on
            first.close()
        be_live(second)
        be_live(third)


@pytest.mark.req("CARD-3")
def test_a_hidden_or_paused_page_asks_for_nothing_and_catches_up(
    hub: Embedded, browser: Browser, tmp_path: Path
) -> None:
    with Visitor(browser, hub.url, Variant("live"), tmp_path) as olivia:
        sign_in(olivia, hub)
        olivia.page.goto(f"{hub.url}/invocations")
        be_live(olivia.page)
        watch, _ = open_tab(olivia.page, f"{hub.url}/invocations")
        asked = Asked(olivia.page)

        olivia.page.evaluate(HIDE, True)
        hub.agent.invoke(QUOTE, ARGUMENTS)
        expect(watch.locator("#newer button")).to_be_visible(
            timeout=PATIENCE_MS
        )  # it was said, and not to the hidden one
        assert asked.paths == []
        olivia.page.evaluate(HIDE, False)
        expect(olivia.page.locator("#newer button")).to_have_text("1 newer", timeout=PATIENCE_MS)

        olivia.page.locator("#live").click()
        for page in (olivia.page, watch):  # for all tabs
            expect(page.locator("#live")).to_have_attribute("data-state", "paused", timeout=PATIENCE_MS)
            expect(page.locator("#live")).to_have_accessible_name(re.compile("Paused.*go on"))
        olivia.check("paused-list")
        asked.paths.clear()
        hub.agent.invoke(QUOTE, ARGUMENTS)
        olivia.page.locator("#live").click()
        expect(olivia.page.locator("#newer button")).to_have_text("2 newer", timeout=PATIENCE_MS)
        assert asked.paths[0] in ("events", "events/counts", "invocations")
        be_live(olivia.page)


@pytest.mark.req("CARD-3")
def test_an_export_and_the_navigation_are_followed_to_their_ends(
    hub: Embedded, browser: Browser, tmp_path: Path
) -> None:
    with Visitor(browser, hub.url, Variant("live"), tmp_path) as olivia:
        page = sign_in(olivia, hub)
        waiting = page.locator('.side [data-count="job.approvals"] [data-n]')
        before = int(waiting.inner_text())
        hub.agent.post("/consents", {"tool": "commerce.checkout.create_draft_order", "purpose": "Seen at once."})
        expect(waiting).to_have_text(str(before + 1), timeout=PATIENCE_MS)

        page.goto(f"{hub.url}/evidence/exports/new")
        olivia.ready()
        page.get_by_role("main").locator("button[type=submit]").last.click()
        olivia.ready()
        loads: list[str] = []
        page.on("framenavigated", lambda frame: loads.append(frame.url))
        olivia.sees("Download")
        assert loads == []
        olivia.check("export-followed")


@pytest.mark.req("CARD-3", "SPEC-10")
def test_what_is_stopped_is_told_to_open_pages_and_what_is_unfolded_stays_so(
    hub: Embedded, browser: Browser, tmp_path: Path
) -> None:
    with Visitor(browser, hub.url, Variant("live"), tmp_path) as olivia:
        page = sign_in(olivia, hub)
        be_live(page)
        total = page.locator("#calls-h + a")
        before = total.inner_text()
        page.locator("#overview-body details > summary").click()
        page.locator("body").click(
            position={"x": 2, "y": 2}
        )  # nothing is exchanged under the hands of who works with it
        stops, _ = open_tab(page, f"{hub.url}/halts?reach=tool&target={QUOTE}")

        hub.agent.invoke(QUOTE, ARGUMENTS)
        stops.get_by_label("Reason", exact=True).fill("Prices are wrong.")
        stops.get_by_role("button", name="Stop calls now").click()

        strip = page.locator("#stops")
        expect(strip.get_by_text("Prices are wrong.")).to_be_visible(timeout=PATIENCE_MS)
        expect(total).not_to_have_text(before, timeout=PATIENCE_MS)
        expect(page.locator("#overview-body details")).to_have_attribute("open", "")
        olivia.check("overview-stopped")

        stops.locator("#thrown summary").first.click()
        stops.locator("#thrown").get_by_label("Reason").fill("They are right again.")
        stops.get_by_role("button", name="Lift the kill switch").click()
        expect(strip.get_by_text("Prices are wrong.")).to_have_count(0, timeout=PATIENCE_MS)


@pytest.mark.req("CARD-3", "TOOLS-22")
def test_a_page_comes_back_after_a_restart_and_ends_with_its_session(
    own_hub: Embedded, browser: Browser, tmp_path: Path
) -> None:
    with Visitor(browser, own_hub.url, Variant("live"), tmp_path) as olivia:
        with own_hub.served():
            page = sign_in(olivia, own_hub)
            be_live(page)
        state = page.locator("#live")
        expect(state).to_have_attribute("data-state", "reconnecting", timeout=PATIENCE_MS)
        with own_hub.served():
            be_live(page)
            with closing(sqlite3.connect(own_hub.data / "toolhub.sqlite3")) as database, database:
                database.execute("DELETE FROM django_session")
            expect(state).to_have_attribute("data-state", "off", timeout=PATIENCE_MS)


@pytest.mark.req("CARD-3")
def test_without_scripts_there_is_a_link_to_look_again(hub: Embedded, browser: Browser, tmp_path: Path) -> None:
    with Visitor(browser, hub.url, Variant("without-scripts", scripts=False), tmp_path) as olivia:
        page = sign_in(olivia, hub)
        page.goto(f"{hub.url}/invocations?tool={QUOTE}")
        expect(page.locator("#live")).to_be_hidden()
        expect(page.locator("#live")).to_have_attribute("data-state", "connecting")
        expect(page.locator("#live > :not(.dot, [hidden])")).to_have_text("Connecting")
        page.get_by_role("link", name="Refresh").click()
        expect(page).to_have_url(f"{hub.url}/invocations?tool={QUOTE}")
