"""Keyboard walks: are the jobs in which somebody decides done with the keys alone, and is it always seen where the focus is?

Version that can break callers, held call, emergency stop: by Tab, Enter and the space bar, as with a switch or a screen reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import PATIENCE_MS, Variant, Visitor, chromium
from tests.e2e.conftest import copy_of
from tests.e2e.held_work import QUOTE, hold_order, submit_breaking_version
from tests.e2e.job_counts import Count

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from tests.e2e.conftest import Embedded

MOST_STEPS = 250  # of Tab on one page
HAS_FOCUS = "element => element === document.activeElement"
# The focus is where somebody can see it: with a ring, drawn by the element or over its row, and not under what sticks to an edge.
IS_SEEN = """element => {
    const rings = [getComputedStyle(element), getComputedStyle(element, '::after')];
    const ring = rings.some(({outlineStyle, outlineWidth}) => outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2);
    const box = element.getBoundingClientRect();
    const [x, y] = [box.left + Math.min(box.width / 2, 20), box.top + box.height / 2];
    const top = document.elementFromPoint(x, y);
    return {ring, uncovered: !!top && (element.contains(top) || top.contains(element) || element.labels?.[0]?.contains(top))};
}"""


@pytest.fixture(scope="module")
def hub(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """One of its own: what is enabled and stopped here would be in the way of other tests."""
    with copy_of(prepared, tmp_path_factory.mktemp("keys") / "hub").served() as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from chromium()


@dataclass
class Keys:
    """Somebody who has a keyboard and nothing else."""

    visitor: Visitor

    @property
    def page(self) -> Page:
        return self.visitor.page

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    def reach(self, where: Locator) -> None:
        where.wait_for(timeout=PATIENCE_MS)
        for _ in range(MOST_STEPS):
            if where.evaluate(HAS_FOCUS):
                assert where.evaluate(IS_SEEN) == {"ring": True, "uncovered": True}, where
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not lead to {where}.")

    def open(self, where: Locator) -> None:
        self.reach(where)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")
        self.visitor.ready()

    def press(self, where: Locator) -> None:
        self.reach(where)
        self.page.keyboard.press("Space")

    def write(self, where: Locator, text: str) -> None:
        self.reach(where)
        self.page.keyboard.type(text)
        expect(where).to_have_value(text)


@pytest.fixture
def keys(hub: Embedded, browser: Browser, tmp_path: Path) -> Iterator[Keys]:
    assert hub.credentials
    with Visitor(browser, hub.url, Variant("keys-olivia"), tmp_path) as olivia:
        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        yield Keys(olivia)


@pytest.mark.req("CARD-3", "TOOLS-7")
def test_a_version_that_can_break_callers_is_reviewed_and_enabled(
    keys: Keys, hub: Embedded, browser: Browser, tmp_path: Path
) -> None:
    assert hub.credentials
    with Visitor(browser, hub.url, Variant("keys-dana"), tmp_path) as dana:
        dana.sign_in("dana", hub.credentials.password("dana"))
        submit_breaking_version(Count(dana))
    keys.page.goto(hub.url)
    keys.visitor.ready()

    keys.open(keys.main.get_by_role("link", name=f"{QUOTE} 9.0.0").first)
    keys.press(keys.main.locator("[name=acknowledged]"))
    expect(keys.main.locator("[name=acknowledged]")).to_be_checked()
    keys.press(keys.main.get_by_role("button", name="Approve", exact=True))
    keys.visitor.sees("Approved: enable it now?")
    keys.write(keys.main.locator("textarea[name=reason]").first, "Nobody orders more than five.")
    keys.press(keys.main.get_by_role("button", name="Enable for all"))
    expect(keys.page).to_have_url(f"{hub.url}/tools/{QUOTE}", timeout=PATIENCE_MS)


@pytest.mark.req("CARD-3", "SPEC-2", "TOOLS-19")
def test_a_held_call_is_approved(keys: Keys, hub: Embedded) -> None:
    consent = hold_order(hub, "order-by-keys")
    keys.page.goto(hub.url)
    keys.visitor.ready()

    keys.open(keys.main.locator(f"a[href='/consents/{consent}']"))
    keys.write(keys.main.locator("textarea[name=reason]"), "The customer agreed on the phone.")
    keys.open(keys.main.get_by_role("button", name="Approve this call"))
    keys.page.goto(f"{hub.url}/consents/{consent}")
    keys.visitor.sees("The customer agreed on the phone.")


@pytest.mark.req("CARD-3", "SPEC-10")
def test_a_tool_is_stopped_at_once_and_let_go_again(keys: Keys, hub: Embedded) -> None:
    side = keys.page.get_by_role("navigation", name="Main", exact=True)
    keys.open(side.get_by_role("link", name="Stops and health"))
    keys.write(keys.main.locator("[name=tool]"), QUOTE)
    keys.write(keys.main.locator("[name=reason]").last, "Its prices are wrong.")
    keys.press(keys.main.get_by_role("button", name="Stop calls now"))
    keys.visitor.sees("Its prices are wrong.")
    halted = hub.agent.invoke(QUOTE, {"sku": "LAPTOP-14", "quantity": 1})
    assert halted.reason == "POLICY.HALTED", halted

    keys.page.goto(hub.url)
    keys.visitor.ready()
    strip = keys.page.get_by_role("region", name="Stopped", exact=True)
    expect(strip).to_contain_text("Its prices are wrong.", timeout=PATIENCE_MS)
    keys.press(strip.get_by_role("button", name="Lift…"))
    dialog = keys.page.get_by_role("dialog", name="Lift this kill switch?")
    keys.write(dialog.get_by_label("Reason"), "The cause was found.")
    keys.press(dialog.get_by_role("button", name="Lift the kill switch"))
    expect(strip).to_have_count(0, timeout=PATIENCE_MS)
