"""Find walks: does somebody find why a call failed from what they remember, with a mouse, with keys alone, and without scripts?

Clicks, keys that open something and fields are counted: a page that asks for more than before makes a test fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import PATIENCE_MS, Variant, Visitor, in_each_variant

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Embedded

QUOTE = "commerce.pricing.get_realtime_quote"


@pytest.fixture(scope="module")
def refused(hub: Embedded) -> str:
    """The id of a call whose arguments its schema did not take, between others that went well."""
    for quantity in (1, 2):
        assert hub.agent.invoke(QUOTE, {"sku": "KEYBOARD-MX", "quantity": quantity}).status == 200
    wrong = hub.agent.invoke(QUOTE, {"sku": "KEYBOARD-MX", "quantity": "many"})
    assert wrong.reason == "SCHEMA.VALIDATION_FAILED", wrong
    assert hub.agent.invoke(QUOTE, {"sku": "KEYBOARD-MX", "quantity": 3}).status == 200
    return str(wrong.call_id)


@in_each_variant
@pytest.mark.req("CARD-6", "TOOLS-18")
def test_why_a_call_failed_is_found_from_a_vague_memory(
    hub: Embedded, refused: str, browser: Browser, shots: Path, variant: Variant
) -> None:
    """Something with a quote was refused: one field, two clicks, and the page says what helps."""
    assert hub.credentials
    with Visitor(browser, hub.url, variant, shots) as olivia:
        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        olivia.go("Invocations")
        olivia.check("calls")
        olivia.page.locator("#f-q").fill("quote -outcome:succeeded after:2d")
        olivia.page.keyboard.press("Enter")
        row = olivia.page.locator(f"#rows a[data-row][href$='{refused}']")
        expect(row).to_be_visible(timeout=PATIENCE_MS)
        expect(olivia.page.locator("#rows .sc")).to_be_visible()
        olivia.ready()
        olivia.check("calls-found")
        row.click()
        fault = olivia.page.locator("section[aria-labelledby=fault-h]")
        expect(fault).to_contain_text("SCHEMA.VALIDATION_FAILED", timeout=PATIENCE_MS)
        expect(fault.get_by_role("link", name=variant.say("Explain"))).to_be_visible()
        olivia.ready()
        olivia.check("call-fault")
        olivia.page.go_back()
        expect(olivia.page.locator("#f-q")).to_have_value("quote -outcome:succeeded after:2d")
        olivia.page.goto(f"{hub.url}/invocations?view=groups")
        expect(olivia.page.locator("#rows")).to_contain_text("×")
        olivia.ready()
        olivia.check("calls-grouped")
        olivia.page.goto(f"{hub.url}/invocations?q=tol%3Aquote+outcome%3Adenyed")
        expect(olivia.page.locator("#rows mark")).to_have_text(["tol:quote", "outcome:denyed"])
        olivia.ready()
        olivia.check("calls-misunderstood")
        for path, name in (("/find?q=quote", "find"), ("/shortcuts", "shortcuts"), ("/views", "views")):
            olivia.page.goto(hub.url + path)
            olivia.ready()
            olivia.check(name)


@pytest.mark.req("CARD-6")
def test_keys_alone_lead_from_any_page_to_why_a_call_failed(
    hub: Embedded, refused: str, browser: Browser, shots: Path
) -> None:
    assert hub.credentials
    with Visitor(browser, hub.url, Variant("keys"), shots) as olivia:
        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        page, press = olivia.page, olivia.page.keyboard.press

        # A pasted id, from wherever one is.
        press("Control+k")
        expect(page.locator("#palette-q")).to_be_focused()
        expect(page.locator("#palette [data-row]").first).to_be_visible(timeout=PATIENCE_MS)
        olivia.check("palette")
        page.keyboard.type(refused)
        expect(page.locator("#found")).to_have_attribute("data-for", refused, timeout=PATIENCE_MS)
        olivia.check("palette-found")
        press("ArrowDown")
        expect(page.locator(f"#palette a[href$='{refused}']").first).to_be_focused()
        with page.expect_navigation(url=f"**/invocations/{refused}"):
            press("Enter")
        olivia.ready()

        # G and a letter, the search of the page, the rows of its list.
        press("g")
        with page.expect_navigation(url="**/invocations"):
            press("i")
        olivia.ready()
        press("/")
        expect(page.locator("#f-q")).to_be_focused()
        page.keyboard.type("quote")
        press("Enter")
        row = page.locator(f"#rows a[data-row][href$='{refused}']")
        expect(page.locator("#rows .chip code").first).to_have_text("quote", timeout=PATIENCE_MS)
        page.locator("#f-q").blur()
        for _ in range(60):  # other tests have called the tool as well
            press("j")
            if row.evaluate("link => link === document.activeElement"):
                break
        expect(row).to_be_focused()
        press("k")
        expect(row).not_to_be_focused()
        press("j")
        with page.expect_navigation(url=f"**/invocations/{refused}"):
            press("Enter")
        olivia.ready()

        # What the keys do, and the switch for single ones.
        press("?")
        dialog = page.locator("#shortcuts")
        expect(dialog).to_be_visible()
        olivia.check("shortcuts-dialog")
        dialog.get_by_role("button", name="Switch single keys off").focus()
        with page.expect_navigation():
            press("Enter")
        olivia.ready()
        press("?")
        press("g")
        press("t")
        expect(page.locator("#shortcuts")).not_to_be_visible()
        assert page.url.endswith(refused)
        press("Control+k")
        expect(page.locator("#palette-q")).to_be_focused()
        press("Escape")
        expect(page.locator("#palette")).not_to_be_visible()
