"""From an uploaded manifest to a refused call: do people come through the console with a real browser, whatever it is like?"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.e2e.browser import PATIENCE_MS, Variant, Visitor, in_each_variant
from tests.support.manifests import manifest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.conftest import Embedded

TEXT = "the words that the call carried"
WHY_STOPPED = "Notes are written twice."


def upload(dana: Visitor, document: Path, tool: str) -> None:
    dana.check("overview-developer")
    dana.go("Catalogue")
    dana.check("catalogue")
    dana.follow("Submit a version")
    dana.check("submit")
    dana.label("Manifest file").set_input_files(document)
    dana.button("Check and submit").click()
    expect(dana.page.get_by_role("heading", level=1)).to_contain_text(tool, timeout=PATIENCE_MS)
    dana.ready()
    dana.check("submitted")


def review_and_enable(olivia: Visitor, tool: str) -> None:
    olivia.check("overview-operator")
    olivia.go("Review queue")
    olivia.check("review-queue")
    olivia.follow(tool)
    olivia.check("review")
    olivia.button("Approve").click()
    olivia.sees("Approved: enable it now?")
    olivia.check("approved")
    olivia.label("Reason").fill("Its code was read and it does what it says.")
    olivia.button("Enable tool").click()
    expect(olivia.page).to_have_url(f"{olivia.url}/tools/{tool}", timeout=PATIENCE_MS)
    olivia.ready()
    olivia.sees("Enabled")
    olivia.check("tool")


def give_grant(olivia: Visitor, tool: str, agent: str) -> None:
    olivia.go("Grants")
    olivia.check("grants")
    olivia.follow("Give a grant")
    olivia.check("grant-form")
    olivia.page.get_by_role("main").locator("select[name=agent]").select_option(label=agent)
    olivia.label("Tools").fill(tool)
    olivia.label("Reason").fill("The assistant keeps the customer's notes.")
    olivia.button("Give grant").click()
    expect(olivia.page.get_by_role("heading", name=olivia.variant.say("Give a grant"))).to_have_count(
        0, timeout=PATIENCE_MS
    )
    olivia.ready()
    olivia.check("grant")


def approve_consent(olivia: Visitor, purpose: str) -> None:
    olivia.go("Approvals")
    olivia.check("approvals")
    row = olivia.page.get_by_role("row").filter(has_text=purpose)
    row.get_by_role("link").first.click()
    olivia.sees("Your decision")
    olivia.ready()
    olivia.check("consent")
    olivia.label("Reason").fill("The customer agreed on the phone.")
    address = olivia.page.url
    with olivia.page.expect_navigation():
        olivia.button("Approve for a time").click()
    olivia.page.goto(address)  # what else waits was opened by itself
    olivia.ready()
    olivia.sees("The customer agreed on the phone.")
    expect(olivia.button("Approve for a time")).to_have_count(0, timeout=PATIENCE_MS)
    olivia.check("consent-approved")


def read_timeline(visitor: Visitor, tool: str, call_id: str) -> None:
    visitor.go("Invocations")
    visitor.check("invocations")
    visitor.page.get_by_role("row").filter(has_text=tool).first.get_by_role("link").first.click()
    expect(visitor.page).to_have_url(f"{visitor.url}/invocations/{call_id}", timeout=PATIENCE_MS)
    visitor.ready()
    visitor.sees("One Begin, one End.")
    visitor.sees("With these arguments:")
    visitor.check(f"story-{visitor.name}")
    visitor.page.get_by_role("main").locator('a[href$="?steps=all"]').click()
    steps = visitor.page.get_by_role("table").filter(has_text="preflight.consent")
    for step in ("preflight.grant", "queue.wait", "sandbox.execute", "output.validate"):
        expect(steps.get_by_role("row").filter(has_text=step)).to_be_visible()
    expect(visitor.page.get_by_role("main")).not_to_contain_text(TEXT)
    visitor.check(f"invocation-{visitor.name}")
    visitor.follow("Begin and End", shows=call_id)
    visitor.sees("Contents of Begin")
    visitor.check(f"record-{visitor.name}")
    visitor.follow("What happened", shows=call_id)


def reveal(aaron: Visitor) -> None:
    aaron.button("Reveal and record").click()
    aaron.sees("Nothing was changed yet.")
    expect(aaron.page.get_by_role("main")).not_to_contain_text(TEXT)
    aaron.label("Reason").fill("A customer complained about this call.")
    aaron.button("Reveal and record").click()
    expect(aaron.page.get_by_role("main").get_by_text(TEXT).first).to_be_visible(timeout=PATIENCE_MS)
    aaron.check("revealed")


def pause(olivia: Visitor, tool: str) -> None:
    olivia.go("Catalogue")
    olivia.follow(tool)
    olivia.button("Pause…").click()
    dialog = olivia.page.get_by_role("dialog", name=olivia.variant.say("Pause this tool?"))
    expect(dialog).to_be_visible()
    olivia.check("pause-dialog")
    olivia.label("Reason", dialog).fill("Its notes are read by the wrong people.")
    olivia.button("Pause tool", dialog).click()
    olivia.sees("Its notes are read by the wrong people.")
    olivia.ready()
    olivia.check("paused")


def stop(olivia: Visitor, tool: str) -> None:
    olivia.go("Catalogue")
    olivia.follow(tool)
    olivia.follow("Kill switch", shows="Kill switches")
    olivia.label("Reason").last.fill(WHY_STOPPED)
    olivia.button("Stop calls now").click()
    olivia.sees(WHY_STOPPED)
    olivia.ready()
    olivia.check("kill-switches")


def see_stopped(visitor: Visitor, tool: str) -> None:
    """On the first screen that opens; in the catalogue it is not called enabled."""
    visitor.page.goto(visitor.url)
    visitor.ready()
    strip = visitor.page.get_by_role("region", name=visitor.variant.say("Stopped"), exact=True)
    expect(strip).to_contain_text(tool)
    expect(strip).to_contain_text(WHY_STOPPED)
    visitor.check(f"stopped-{visitor.name}")
    visitor.go("Catalogue")
    row = visitor.page.get_by_role("row").filter(has_text=tool)
    expect(row).to_contain_text(visitor.variant.say("Stopped"))
    expect(row).not_to_contain_text(visitor.variant.say("Enabled"))
    visitor.check(f"stopped-catalogue-{visitor.name}")


def lift(olivia: Visitor) -> None:
    """From where one is."""
    strip = olivia.page.get_by_role("region", name=olivia.variant.say("Stopped"), exact=True)
    strip.get_by_role("button", name=olivia.variant.say("Lift…")).click()
    dialog = olivia.page.get_by_role("dialog", name=olivia.variant.say("Lift this kill switch?"))
    olivia.label("Reason", dialog).fill("The cause was found.")
    olivia.check("lift-dialog")
    olivia.button("Lift the kill switch", dialog).click()
    expect(strip).to_have_count(0, timeout=PATIENCE_MS)
    expect(olivia.page).to_have_url(f"{olivia.url}/tools")
    olivia.ready()


def find(aaron: Visitor, call_id: str) -> None:
    """By what was written into the box; then the same facts as a timeline."""
    aaron.page.fill("#f-q", f"call:{call_id}")
    aaron.page.press("#f-q", "Enter")
    expect(aaron.page.locator("#rows header .chip code")).to_have_text(f"call:{call_id}", timeout=PATIENCE_MS)
    aaron.check("search")
    aaron.page.locator("#rows .seg a").last.click()
    expect(aaron.page.locator("#rows .tl > li").first).to_be_visible(timeout=PATIENCE_MS)
    aaron.check("timeline-of-facts")


@pytest.mark.req("CARD-1", "CARD-3", "CARD-6", "TOOLS-7", "TOOLS-15", "TOOLS-19", "SPEC-10")
@in_each_variant
def test_people_take_a_tool_from_upload_to_pause(
    hub: Embedded, browser: Browser, variant: Variant, shots: Path, tmp_path: Path
) -> None:
    assert hub.credentials
    agent, tool = hub.agent, f"walk.{variant.name.replace('-', '_')}.keep_note"
    implementation = {"module": "sample.tools", "entry": "write"}
    document = manifest(id=tool, display_name="Keep note", side_effect="Write", implementation=implementation)
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(document))

    def visitor() -> Visitor:
        return Visitor(browser, hub.url, variant, shots)

    def password(name: str) -> str:
        assert hub.credentials
        return hub.credentials.password(name)

    with visitor() as dana, visitor() as olivia, visitor() as aaron:
        dana.sign_in("dana", password("dana"))
        upload(dana, file, tool)
        olivia.sign_in("olivia", password("olivia"))
        review_and_enable(olivia, tool)
        ungranted = agent.invoke(tool, {"text": TEXT})
        assert (ungranted.status, ungranted.json()["call"]["refused_at"]) == (403, "grant"), ungranted
        give_grant(olivia, tool, agent.name)
        unconsented = agent.invoke(tool, {"text": TEXT})
        assert unconsented.json()["error"]["code"] == "NEEDS_USER_CONFIRMATION", unconsented
        asked = agent.post("/consents", {"tool": tool, "purpose": f"Keep what the customer says ({variant.name})."})
        assert asked.status == 201, asked
        approve_consent(olivia, f"({variant.name})")
        answer = agent.invoke(tool, {"text": TEXT})
        assert (answer.status, answer.json()["data"]["written"]) == (200, TEXT), answer
        read_timeline(olivia, tool, answer.call_id)
        aaron.sign_in("aaron", password("aaron"))
        read_timeline(aaron, tool, answer.call_id)
        reveal(aaron)
        aaron.go("Facts")
        aaron.check("evidence")
        find(aaron, answer.call_id)
        stop(olivia, tool)
        halted = agent.invoke(tool, {"text": TEXT})
        assert halted.reason == "POLICY.HALTED", halted
        for each in (dana, aaron, olivia):
            see_stopped(each, tool)
        lift(olivia)
        pause(olivia, tool)
        refused = agent.invoke(tool, {"text": TEXT})
        assert refused.reason == "TOOL.PAUSED", refused
        agent.check_pair(refused.call_id)


@pytest.mark.req("CARD-3", "TOOLS-22")
def test_an_auditor_sees_consents_but_has_no_way_to_decide(hub: Embedded, browser: Browser, shots: Path) -> None:
    assert hub.credentials
    agent = hub.agent
    asked = agent.post(
        "/consents", {"tool": "commerce.checkout.create_draft_order", "purpose": "Order for a customer."}
    )
    with Visitor(browser, hub.url, Variant("light"), shots) as aaron:
        aaron.sign_in("aaron", hub.credentials.password("aaron"))
        aaron.page.goto(f"{hub.url}/consents/{asked.json()['data']['id']}")
        aaron.ready()
        aaron.sees("Order for a customer.")
        expect(aaron.button("Approve for a time")).to_have_count(0)
        aaron.check("consent-auditor")
        for path in ("/docs/api", "/nobody-lives-here", "/grants/new"):
            aaron.page.goto(hub.url + path)
            aaron.ready()
            aaron.check(f"auditor{path.replace('/', '-')}")


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "without-scripts"])
def test_every_entry_of_the_narrow_menu_is_within_reach(
    hub: Embedded, browser: Browser, scripts: bool, shots: Path
) -> None:
    assert hub.credentials
    variant = Variant(f"low-{scripts}", width=390, height=560, scripts=scripts)
    with Visitor(browser, hub.url, variant, shots) as olivia:
        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        olivia.page.locator("summary").and_(olivia.page.get_by_label("Menu", exact=True)).click()
        links = olivia.page.get_by_role("navigation", name="Menu", exact=True).get_by_role("link")
        for link in (links.last, links.first):
            link.scroll_into_view_if_needed()
            box = link.bounding_box()
            assert box is not None
            assert box["y"] >= 0
            assert box["y"] + box["height"] <= variant.height
        olivia.check("menu")


@pytest.mark.req("CARD-3")
@pytest.mark.parametrize(
    "variant", [Variant("chart-dark", language="zh-hans", dark=True), Variant("chart-narrow", width=390, height=844)]
)
def test_the_chart_of_the_overview_is_read_and_brushed(
    hub: Embedded, browser: Browser, variant: Variant, shots: Path
) -> None:
    assert hub.credentials
    for _ in range(2):
        hub.agent.invoke("commerce.pricing.get_realtime_quote", {"sku": "NO-SUCH", "quantity": 1, "currency": "EUR"})
    with Visitor(browser, hub.url, variant, shots) as olivia:
        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        key = olivia.page.locator("[data-series=tool_refused]").first
        columns = olivia.page.locator(".sc-col")
        before = key.inner_text()
        assert int(before) >= 2
        columns.first.locator(".sc-hit").hover()
        expect(key).to_have_text("0")
        olivia.page.locator("h1").hover()
        expect(key).to_have_text(before)
        begin, end = (columns.nth(place).locator(".sc-hit").bounding_box() for place in (-3, -1))
        assert begin
        assert end
        olivia.page.mouse.move(begin["x"] + 2, begin["y"] + 50)
        olivia.page.mouse.down()
        olivia.page.mouse.move(end["x"] + 2, end["y"] + 50, steps=5)
        olivia.page.mouse.up()
        expect(olivia.page).to_have_url(re.compile("/invocations[?]from=.*&to="), timeout=PATIENCE_MS)
        olivia.ready()
        expect(olivia.page.get_by_role("main")).to_contain_text(olivia.variant.say("Refused by the tool"))
        olivia.check("calls-of-a-time")


def field(visitor: Visitor, name: str) -> Locator:
    """Where a label is a part of another one."""
    return visitor.page.get_by_role("main").locator(f"[name={name}]")


def connect_model(olivia: Visitor, provider: str) -> None:
    """A provider without an address and a key is asked nothing, so this needs no network."""
    olivia.go("Model providers")
    olivia.check("model-providers")
    olivia.follow("Connect a provider")
    field(olivia, "name").fill(provider)
    olivia.page.get_by_role("main").locator("select[name=kind]").select_option("anthropic")
    olivia.check("model-provider-form")
    olivia.button("Test and save").click()
    olivia.sees("Kept as evidence.")  # without a reason nothing is saved
    olivia.ready()
    olivia.check("model-provider-form-wrong")
    field(olivia, "reason").fill("The assistants need one.")
    olivia.button("Test and save").click()
    expect(olivia.page).to_have_url(f"{olivia.url}/model-providers/{provider}", timeout=PATIENCE_MS)
    olivia.ready()
    olivia.check("model-provider")
    olivia.follow("Connect a model")
    field(olivia, "alias").fill("main")
    field(olivia, "model").fill("claude-opus-4-5")
    olivia.label("Window, in tokens").fill("200000")
    olivia.check("model-form")
    field(olivia, "reason").fill("The assistants need one.")
    olivia.button("Connect").click()
    expect(olivia.page).to_have_url(f"{olivia.url}/models/model.{provider}.main", timeout=PATIENCE_MS)
    olivia.ready()
    olivia.check("model")
    olivia.page.goto(f"{olivia.url}/models")
    olivia.ready()
    olivia.sees(f"model.{provider}.main")
    olivia.check("models")


def set_price(olivia: Visitor, provider: str) -> None:
    olivia.go("Model prices")
    olivia.check("model-prices-none")
    olivia.follow("Set a price")
    field(olivia, "provider").fill(provider)
    field(olivia, "model").fill("claude-opus-4-5")
    field(olivia, "input").fill("4.50")
    field(olivia, "output").fill("22.50")
    olivia.check("model-price-form")
    field(olivia, "reason").fill("The contract of December.")
    olivia.button("Set a new version").click()
    expect(olivia.page).to_have_url(f"{olivia.url}/model-prices", timeout=PATIENCE_MS)
    olivia.ready()
    olivia.sees("$22.5")
    olivia.check("model-prices")


@pytest.mark.req("LLM-7", "LLM-10")
@in_each_variant
def test_an_operator_connects_a_model_prices_it_and_looks_at_spending(
    hub: Embedded, browser: Browser, variant: Variant, shots: Path
) -> None:
    assert hub.credentials
    provider = f"walk_{variant.name.replace('-', '_')}"
    with Visitor(browser, hub.url, variant, shots) as olivia:
        olivia.sign_in("olivia", hub.credentials.password("olivia"))
        connect_model(olivia, provider)
        set_price(olivia, provider)
        olivia.go("Spending")
        olivia.check("spending")
        for path in ("/spending?days=30", "/model-prices/1", "/model-prices/new", f"/model-providers/{provider}/edit"):
            olivia.page.goto(hub.url + path)
            olivia.ready()
            olivia.check(f"model-pages{path.partition('?')[0].replace('/', '-').replace(provider, 'one')}")
