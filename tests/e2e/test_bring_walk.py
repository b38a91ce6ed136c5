"""From nothing to a governed call of a tool that others have made: do people get there in the console, and in how many clicks?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.browser import PATIENCE_MS, SEEN_SELDOM, Variant, Visitor, chromium
from tests.e2e.test_console_walk import give_grant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.conftest import Embedded

BUILD_MS = 5 * PATIENCE_MS  # thirty packages of an index
TIME = "mcp.time.get_current_time"
in_other_ways = pytest.mark.parametrize(
    "variant",
    [
        Variant("chinese-dark", language="zh-hans", dark=True),
        pytest.param(Variant("narrow", width=390, height=844), marks=SEEN_SELDOM),
        pytest.param(Variant("without-scripts", scripts=False), marks=SEEN_SELDOM),
    ],
    ids=lambda variant: variant.name,
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from chromium()


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wanted = os.environ.get("TOOLHUB_TEST_SHOTS")
    folder = Path(wanted) if wanted else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass
class Clicking:
    """A visitor whose clicks are counted."""

    visitor: Visitor
    clicks: int = 0

    def click(self, place: Locator) -> None:
        self.clicks += 1
        place.click()

    def go(self, section: str) -> None:
        self.clicks += 1
        self.visitor.go(section)

    def follow(self, link: str) -> None:
        self.clicks += 1
        self.visitor.follow(link)

    def press(self, text: str) -> None:
        self.click(self.visitor.button(text))


def wait_until_listed(dana: Visitor) -> None:
    """The page renews itself; without scripts its link does."""
    heading = dana.page.get_by_role("heading", name=dana.variant.say("Choose tools"))
    if dana.variant.scripts:
        expect(heading).to_be_visible(timeout=BUILD_MS)
        return
    for _ in range(BUILD_MS // 1000):
        if heading.count():
            return
        dana.page.wait_for_timeout(1000)
        dana.page.reload()
    expect(heading).to_be_visible()


def review_and_enable(olivia: Visitor, tool: str) -> None:
    olivia.go("Review queue")
    olivia.follow(tool)
    for _ in range(BUILD_MS // 2000):  # its packages are resolved, and the server is tried
        olivia.page.reload()
        olivia.ready()
        if olivia.page.get_by_text(olivia.variant.say("They are installed on the workers when this version is first used.")).count():
            break
        olivia.page.wait_for_timeout(2000)
    olivia.check("brought-review")
    olivia.button("Approve").click()
    olivia.sees("Approved: enable it now?")
    olivia.label("Reason").fill("Its listing was read.")
    olivia.button("Enable tool").click()
    expect(olivia.page).to_have_url(f"{olivia.url}/tools/{tool}", timeout=PATIENCE_MS)
    olivia.ready()


@pytest.mark.req("BRING-2")
@pytest.mark.long  # installs some 30 packages of an index
def test_a_server_of_a_package_is_brought_from_nothing_to_a_governed_call(
    hub: Embedded, browser: Browser, shots: Path
) -> None:
    assert hub.credentials
    variant = Variant("light")
    with Visitor(browser, hub.url, variant, shots) as dana, Visitor(browser, hub.url, variant, shots) as olivia:
        dana.sign_in("dana", hub.credentials.password("dana"))
        bring = Clicking(dana)
        bring.go("Bring a tool")
        dana.check("bring")
        bring.follow("MCP server of a package")
        dana.check("bring-package")
        dana.label("Package").fill("mcp-server-time")
        bring.press("Start it in a sandbox")
        dana.ready()
        dana.check("bring-waiting")
        wait_until_listed(dana)
        dana.check("bring-choose-tools")
        bring.click(dana.label("get_current_time"))
        bring.press("Make drafts of the chosen")
        dana.ready()
        dana.check("bring-drafts")
        bring.press("Submit 1 draft for review")
        expect(dana.page.get_by_role("heading", level=1)).to_contain_text(TIME, timeout=PATIENCE_MS)
        assert bring.clicks == 6

        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        review_and_enable(olivia, TIME)
        give_grant(olivia, TIME, hub.agent.name)
        answer = hub.agent.invoke(TIME, {"timezone": "Europe/Berlin"})
        for _ in range(60):  # built once somebody uses it
            if answer.status == 200:
                break
            olivia.page.wait_for_timeout(1000)
            answer = hub.agent.invoke(TIME, {"timezone": "Europe/Berlin"})
        assert answer.status == 200, answer
        assert answer.json()["data"]["timezone"] == "Europe/Berlin"
        hub.agent.check_pair(answer.call_id)
