"""From nothing to a governed call of a tool that others have made: do people get there in the console, and in how many clicks?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, expect

from bench.service_documents import DOCUMENTS, fetch_documents
from tests.e2e.browser import PATIENCE_MS, SEEN_SELDOM, Variant, Visitor
from tests.e2e.test_console_walk import give_grant

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.conftest import Embedded

BUILD_MS = 5 * PATIENCE_MS  # thirty packages of an index
TIME = "mcp.time.get_current_time"
OPERATIONS = {
    "light": "issues/list-for-repo",
    "chinese-dark": "issues/get",
    "narrow": "pulls/list",
    "without-scripts": "repos/get",
}
ARGUMENTS = {"issues/get": {"issue_number": 1}}
in_each_way = pytest.mark.parametrize(
    "variant",
    [
        Variant("light"),
        Variant("chinese-dark", language="zh-hans", dark=True),
        pytest.param(Variant("narrow", width=390, height=844), marks=SEEN_SELDOM),
        pytest.param(Variant("without-scripts", scripts=False), marks=SEEN_SELDOM),
    ],
    ids=lambda variant: variant.name,
)


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

    def take_way(self, way: str) -> None:
        self.clicks += 1
        take_way(self.visitor, way)

    def press(self, text: str) -> None:
        self.click(self.visitor.button(text))


def take_way(visitor: Visitor, way: str) -> None:
    """A link of the first page, which says beside its name what it leads to."""
    name = visitor.variant.say(way)
    visitor.page.get_by_role("main").get_by_role("link").filter(has_text=name).first.click()
    expect(visitor.page.get_by_role("heading", level=1, name=name)).to_be_visible(timeout=PATIENCE_MS)
    visitor.ready()


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
        if olivia.page.get_by_text(
            olivia.variant.say("They are installed on the workers when this version is first used.")
        ).count():
            break
        olivia.page.wait_for_timeout(2000)
    olivia.check("brought-review")
    enable(olivia, tool)


def enable(olivia: Visitor, tool: str) -> None:
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
        bring.take_way("MCP server of a package")
        dana.check("bring-package")
        dana.page.get_by_role("textbox", name=dana.variant.say("Package")).fill("mcp-server-time")
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


@pytest.fixture(scope="module")
def github() -> Iterator[Path]:
    wanted = [each for each in DOCUMENTS if each.name == "GitHub"]
    with fetch_documents(wanted) as found:
        yield found["GitHub"]


@pytest.mark.req("BRING-1")
@pytest.mark.long  # 3 MB from npm
@in_each_way
def test_an_operation_of_github_is_brought_from_nothing_to_a_governed_call(
    hub: Embedded, browser: Browser, shots: Path, github: Path, variant: Variant
) -> None:
    assert hub.credentials
    operation = OPERATIONS[variant.name]
    with Visitor(browser, hub.url, variant, shots) as dana, Visitor(browser, hub.url, variant, shots) as olivia:
        dana.sign_in("dana", hub.credentials.password("dana"))
        dana.go("Bring a tool")
        take_way(dana, "Known servers and services")
        dana.check("known-sources")
        bring = Clicking(dana)
        bring.go("Bring a tool")
        bring.take_way("OpenAPI document")
        dana.check("bring-document")
        dana.button("Read it").click()
        dana.sees("Nothing was changed yet.")
        dana.check("bring-document-missing")
        dana.label("OpenAPI document").set_input_files(github)
        dana.label("Credentials").fill("GITHUB_TOKEN")
        bring.press("Read it")
        expect(dana.page.locator("#offers-h")).to_be_visible(timeout=PATIENCE_MS)
        dana.ready()
        dana.check("bring-choose-operations")
        dana.page.locator("#f-tag").select_option(operation.partition("/")[0])
        bring.press("Apply")
        dana.ready()
        dana.page.locator("#f-q").fill(operation)
        bring.press("Apply")
        dana.ready()
        dana.check("bring-filtered")
        bring.click(dana.page.get_by_role("checkbox", name=operation, exact=True))
        bring.press("Make drafts of the chosen")
        expect(dana.page.locator("#drafts")).to_be_visible(timeout=PATIENCE_MS)
        dana.ready()
        assert dict(parse_qsl(urlsplit(dana.page.url).query))["q"] == operation
        draft = dana.page.locator("#drafts th a").filter(has_text=operation.replace("/", "_").replace("-", "_"))
        tool = draft.inner_text().strip()
        assert tool.endswith(f".{operation.replace('/', '_').replace('-', '_')}")
        draft.click()
        dana.sees("Correct the draft")
        dana.ready()
        dana.check("bring-draft")
        dana.button("Save the draft").click()
        expect(dana.page.locator("#drafts")).to_be_visible(timeout=PATIENCE_MS)
        dana.ready()
        dana.check("bring-drafts-of-operations")
        bring.click(dana.page.locator("#drafts form[action$=submit] button"))
        expect(dana.page.get_by_role("heading", level=1)).to_contain_text(tool, timeout=PATIENCE_MS)
        assert bring.clicks <= 8

        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        olivia.go("Review queue")
        olivia.follow(tool)
        olivia.check("brought-operation-review")
        enable(olivia, tool)
        give_grant(olivia, tool, hub.agent.name)
        answer = hub.agent.invoke(tool, dict.fromkeys(("owner", "repo"), "x") | ARGUMENTS.get(operation, {}))
        # No tenant's secret is set, so nothing is sent to GitHub: the call is decided, and refused with what is missing.
        assert answer.status in (403, 409), answer
        hub.agent.check_pair(answer.call_id)
