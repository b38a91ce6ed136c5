"""Dangerous decisions: is what is dangerous seen on the first screen that a person opens, and does it take a second look?"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import PATIENCE_MS, Variant, Visitor
from tests.e2e.held_work import ORDER, QUOTE, read_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Embedded


@pytest.mark.req("TOOLS-7", "TOOLS-9")
def test_a_breaking_version_is_seen_in_the_queue_and_confirmed_row_by_row(
    hub: Embedded, browser: Browser, shots: Path
) -> None:
    assert hub.credentials
    called = hub.agent.invoke(QUOTE, {"sku": "KEYBOARD-MX", "quantity": 8})
    assert called.status == 200, called
    document = copy.deepcopy(read_manifest(QUOTE)) | {"version": "9.0.0"}
    document["input_schema"]["properties"]["quantity"]["maximum"] = 5
    document["description"] += " It fits almost every question about prices."
    with Visitor(browser, hub.url, Variant("breaking", language="zh-hans"), shots) as dana:
        dana.sign_in("dana", hub.credentials.password("dana"))
        dana.page.goto(f"{hub.url}/tools/submit")
        dana.ready()
        dana.page.locator("[name=text]").fill(json.dumps(document))
        dana.button("Check and submit").click()
        expect(dana.page.get_by_role("heading", level=1)).to_contain_text(QUOTE, timeout=PATIENCE_MS)
    with Visitor(browser, hub.url, Variant("breaking"), shots) as olivia:
        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        olivia.go("Review queue")
        row = olivia.page.get_by_role("row").filter(has_text="9.0.0")
        expect(row).to_contain_text("Can break callers")
        olivia.check("queue-breaking")
        row.get_by_role("link").first.click()
        olivia.ready()
        expect(olivia.page.get_by_role("main").locator("header").first).to_contain_text("Can break callers")
        expect(olivia.page.get_by_role("main")).to_contain_text("would be refused")
        expect(olivia.page.locator(f"main a[href$='{called.call_id}']").first).to_be_visible()
        olivia.check("review-breaking")
        olivia.button("Approve").click()
        olivia.sees("Nothing was changed yet.")
        boxes = olivia.page.locator("main [name=acknowledged]")
        expect(boxes).to_have_count(2)
        for box in boxes.all():
            box.check()
        olivia.button("Approve").click()
        olivia.sees("Approved: enable it now?")
        expect(olivia.page.get_by_role("main")).to_contain_text("would be refused")
        olivia.check("enable-breaking")


@pytest.mark.req("CARD-3", "SPEC-2", "TOOLS-19")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "without-scripts"])
def test_an_approval_past_a_failed_dry_run_takes_a_second_look(
    hub: Embedded, browser: Browser, scripts: bool, shots: Path
) -> None:
    assert hub.credentials
    name = "scripts" if scripts else "no-scripts"
    order = copy.deepcopy(read_manifest(ORDER)["input_schema"]["examples"][0]) | {"expected_total": "19.50"}
    held = hub.agent.invoke(
        ORDER,
        order,
        {"Prefer": "respond-async", "Idempotency-Key": f"too-cheap-{name}"},
        on_consent="hold",
        purpose=f"An order at an old price ({name}).",
    )
    assert held.status == 202, held
    address = held.json()["call"]["held"]["url"].partition("/consents/")[2]
    with Visitor(browser, hub.url, Variant(f"failed-{name}", width=390, height=844, scripts=scripts), shots) as olivia:
        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        olivia.page.goto(f"{hub.url}/consents/{address}")
        olivia.ready()
        expect(olivia.page.locator("main .say")).to_have_text(
            "1 × KEYBOARD-MX, 1 × MOUSE-ERGO to San Francisco, US, for 19.50 USD"
        )
        olivia.check("consent-sentence")
        olivia.button("Start dry run").click()
        seen = olivia.page.locator("main [name=acknowledged]")
        if scripts:
            expect(seen).to_be_visible(timeout=PATIENCE_MS)
        for _ in range(60):  # without scripts the page is opened again
            if seen.count():
                break
            olivia.page.reload()
        olivia.page.goto(f"{hub.url}/approvals")
        olivia.ready()
        row = olivia.page.get_by_role("row").filter(has_text=f"({name})")
        expect(row).to_contain_text("Dry run failed")
        olivia.check("approvals-failed")
        row.get_by_role("link").first.click()
        olivia.sees("The dry run of this call failed.")
        olivia.ready()
        olivia.check("consent-failed")
        olivia.label("Reason").fill("The customer insists.")
        olivia.button("Approve this call").click()
        olivia.sees("Nothing was changed yet.")
        expect(olivia.label("Reason")).to_have_value("The customer insists.")
        olivia.ready()
        olivia.check("consent-second-look")
        seen.check()
        with olivia.page.expect_navigation():
            olivia.button("Approve this call").click()
        olivia.page.goto(f"{hub.url}/consents/{address}")
        olivia.ready()
        olivia.sees("The customer insists.")
