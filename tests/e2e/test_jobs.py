"""Jobs of people: does each take no more clicks and fields than it did?"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import PATIENCE_MS, Variant, Visitor
from tests.e2e.conftest import copy_of
from tests.e2e.held_work import QUOTE, hold_order, submit_breaking_version
from tests.e2e.job_counts import EFFORTS, Count, Effort, counted
from tests.support.manifests import manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.conftest import Embedded

    Open = Callable[[str], Count]

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "console-jobs.md"


@pytest.fixture(scope="module")
def hub(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """One of its own: what is stopped and published here would be in the way of other tests."""
    with copy_of(prepared, tmp_path_factory.mktemp("jobs") / "hub").served() as running:
        yield running


@pytest.fixture
def open_console(hub: Embedded, browser: Browser, shots: Path) -> Iterator[Open]:
    """``open_console(name)``: this person's first page, and a count that begins there."""
    opened: list[Visitor] = []

    def sign_in(name: str) -> Count:
        assert hub.credentials
        visitor = Visitor(browser, hub.url, Variant(f"job-{name}"), shots)
        opened.append(visitor.__enter__())
        visitor.sign_in(name, hub.credentials.password(name))
        return Count(visitor)

    yield sign_in
    for visitor in opened:
        visitor.__exit__(None, None, None)


def test_no_job_takes_more_than_before_and_three_take_less() -> None:
    assert all(now.total <= before.total for before, now in EFFORTS.values())
    assert sum(now.total < before.total for before, now in EFFORTS.values()) >= 3


def test_the_documentation_says_what_each_job_took_and_takes() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("|")][2:]

    said = {job: (Effort(*numbers(before)), Effort(*numbers(now))) for job, before, now in rows}
    assert said == EFFORTS
    less = re.search(r"and (\w+) take less: (.*?)\. ", PAGE.read_text().replace("\n", " "))
    assert less
    assert set(re.findall(r"\*([^*]+)\*", less[2])) == {
        job for job, (before, now) in EFFORTS.items() if now.total < before.total
    }


def numbers(cell: str) -> list[int]:
    return [int(each) for each in cell.split(", ")]


@pytest.mark.req("CARD-3", "TOOLS-2")
def test_a_developer_uploads_a_tool(open_console: Open, tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(manifest("echo", id="jobs.upload.echo")))
    dana = open_console("dana")
    with counted("upload a tool", dana):
        dana.tab("Submit a version")
        dana.bring_file("file", file)
        dana.button("Check and submit")
        expect(dana.main.get_by_role("heading", level=1)).to_contain_text("jobs.upload.echo", timeout=PATIENCE_MS)


@pytest.mark.req("CARD-3", "TOOLS-7")
def test_an_operator_reviews_and_enables_a_version_that_can_break_callers(open_console: Open) -> None:
    submit_breaking_version(open_console("dana"))
    olivia = open_console("olivia")
    with counted("review and enable a breaking version", olivia):
        expect(olivia.main).to_contain_text("Can break callers")
        olivia.link(f"{QUOTE} 9.0.0")
        olivia.tick("acknowledged")
        olivia.button("Approve")
        olivia.visitor.sees("Approved: enable it now?")
        olivia.fill("reason", "Nobody orders more than five.")
        olivia.button("Enable for all")
        expect(olivia.visitor.page).to_have_url(f"{olivia.visitor.url}/tools/{QUOTE}", timeout=PATIENCE_MS)
        expect(olivia.main).to_contain_text("9.0.0")


@pytest.mark.req("CARD-3", "SPEC-2", "TOOLS-19")
def test_an_operator_approves_a_call_that_is_held(hub: Embedded, open_console: Open) -> None:
    call = hold_order(hub, "order-of-a-job")
    olivia = open_console("olivia")
    with counted("approve a held call", olivia):
        olivia.click(olivia.main.locator(f"a[href='/consents/{call}']"))
        olivia.fill("reason", "The customer agreed on the phone.")
        with olivia.visitor.page.expect_navigation():
            olivia.button("Approve this call")
    olivia.visitor.page.goto(f"{hub.url}/consents/{call}")
    olivia.visitor.sees("The customer agreed on the phone.")


@pytest.mark.req("CARD-6", "TOOLS-18")
def test_an_operator_finds_why_a_call_failed_from_a_vague_memory(hub: Embedded, open_console: Open) -> None:
    """Something with a quote did not succeed."""
    assert hub.agent.invoke("sample.tools.raises", {"text": "x"}).status != 200
    refused = hub.agent.invoke(QUOTE, {"sku": "KEYBOARD-MX", "quantity": "many"})
    assert refused.reason == "SCHEMA.VALIDATION_FAILED", refused
    assert hub.agent.invoke(QUOTE, {"sku": "KEYBOARD-MX", "quantity": 1}).status == 200
    olivia = open_console("olivia")
    with counted("find why yesterday's call failed from a vague memory", olivia):
        olivia.go("Invocations")
        olivia.fill("q", "quote -outcome:succeeded after:2d")
        olivia.button("Search")
        row = olivia.main.locator(f"#rows a[data-row][href$='{refused.call_id}']")
        row.wait_for(timeout=PATIENCE_MS)
        olivia.click(row)
        fault = olivia.main.locator("section[aria-labelledby=fault-h]")
        expect(fault).to_contain_text("SCHEMA.VALIDATION_FAILED", timeout=PATIENCE_MS)


@pytest.mark.req("CARD-3", "CARD-6")
def test_an_auditor_verifies_and_exports_what_a_person_did(open_console: Open) -> None:
    aaron = open_console("aaron")
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    with counted("verify and export evidence for a person", aaron):
        aaron.tab("Integrity")
        aaron.fill("since", today)
        aaron.choose("who", "Olivia Operator")
        aaron.visitor.check("integrity-of-a-person")
        aaron.button("Verify")
        aaron.visitor.sees("What was verified")
        aaron.link("Export these facts")
        aaron.visitor.check("export-of-a-person")
        aaron.button("Export")
        download = aaron.main.get_by_role("link", name="Download")
        expect(download.first).to_be_visible(timeout=PATIENCE_MS)
        expect(aaron.main).to_contain_text("actor:usr_")
        with aaron.visitor.page.expect_download():
            aaron.clicks += 1
            download.first.click()


@pytest.mark.req("CARD-3", "CARD-6")
def test_an_owner_invites_somebody_and_sets_up_an_agent(open_console: Open) -> None:
    oona = open_console("oona")
    with counted("invite a person, make an agent with a key and a grant", oona):
        oona.go("People")
        oona.link("Invite a person")
        oona.fill("username", "nina")
        oona.fill("email", "nina@example.org")
        oona.tick("roles", "operator")
        oona.button("Invite")
        oona.go("Agents & keys")
        oona.link("Create an agent")
        oona.fill("name", "helper")
        oona.button("Create agent")
        oona.link("Create a key")
        oona.button("Create key")
        oona.link("I have stored it: give a grant")
        expect(oona.main.locator("select[name=agent] option:checked")).to_have_text("helper")
        oona.fill("tools", "commerce.*")
        expect(oona.main.locator("#tool-matches")).to_contain_text("Matches", timeout=PATIENCE_MS)
        oona.visitor.check("grant-of-a-new-agent")
        oona.fill("reason", "It answers customers.")
        oona.button("Give grant")
        expect(oona.main.get_by_role("heading", level=1)).to_contain_text("grt_", timeout=PATIENCE_MS)


@pytest.mark.req("CARD-3", "TOOLS-31")
def test_two_people_bring_a_policy_into_force(open_console: Open) -> None:
    olivia, oona = open_console("olivia"), open_console("oona")
    with counted("policy from nothing to published", olivia, oona):
        olivia.go("Policy")
        olivia.link("Start a draft")
        olivia.button("Check and save draft")
        olivia.click(olivia.main.locator("summary", has_text="Add a rule"))
        olivia.link("Deny tools")
        expect(olivia.main.locator("[name=tools]")).to_have_value("")
        olivia.fill("tools", "commerce.knowledge.*")
        expect(olivia.main.locator("#tool-matches")).to_contain_text("Matches", timeout=PATIENCE_MS)
        olivia.visitor.check("rule-that-denies")
        olivia.button("Add to the draft")
        olivia.button("Preview the impact")
        expect(olivia.main.get_by_role("heading", level=1)).to_contain_text("Impact of tenant@")
        oona.go("Policy")
        oona.link("tenant@")
        oona.visitor.sees("Everything that it widens or narrows")
        oona.fill("reason", "The knowledge base is being moved.")
        oona.visitor.check("publish")
        oona.button("Publish tenant@")
        expect(oona.main).to_contain_text("In force", timeout=PATIENCE_MS)


@pytest.mark.req("CARD-3", "SPEC-10")
def test_an_operator_stops_a_tool_at_once(hub: Embedded, open_console: Open) -> None:
    olivia = open_console("olivia")
    with counted("emergency stop", olivia):
        olivia.go("Kill switches")
        olivia.fill("tool", QUOTE)
        olivia.fill("reason", "Its prices are wrong.")
        olivia.button("Stop calls now")
        olivia.visitor.sees("Its prices are wrong.")
    halted = hub.agent.invoke(QUOTE, {"sku": "LAPTOP-14", "quantity": 1})
    assert halted.reason == "POLICY.HALTED", halted


@pytest.mark.req("CARD-3")
def test_an_operator_sets_a_budget_and_looks_at_the_spending(open_console: Open) -> None:
    olivia = open_console("olivia")
    with counted("budget and spending", olivia):
        olivia.go("Budgets")
        olivia.link("Set a budget")
        expect(olivia.main.locator("[name=agent]")).to_be_hidden()
        olivia.main.locator("[name=amount]").wait_for()
        olivia.choose("dimension", "Money, by the prices of the policy")
        olivia.fill("amount", "50")
        olivia.visitor.check("budget-of-money")
        olivia.button("Set budget")
        expect(olivia.main.get_by_role("heading", level=1)).to_contain_text("bud_", timeout=PATIENCE_MS)
        olivia.tab("Spending")
