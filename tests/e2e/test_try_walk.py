"""Try and submission walk: do people try a tool from its page, and developers bring one, with any browser?

And do the lines that a page offers to copy make the same call?
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import PATIENCE_MS, Variant, Visitor, in_each_variant
from tests.e2e.conftest import UNPAIRED, Embedded, copy_of
from tests.e2e.processes import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUOTE, ORDER = "commerce.pricing.get_realtime_quote", "commerce.checkout.create_draft_order"
GREETING = '''\
def hello(name: str, language: str = "en") -> dict[str, str]:
    """Greets somebody by name."""
    return {"greeting": f"{language}: {name}"}
'''
ORDERED = {
    "/lines#0/quantity": "1",
    "/expected_total": "39.90",
    "/shipping_option_id": "northfreight.ground.US1",
    "/currency": "USD",
    "/destination/country": "US",
    "/destination/postal_code": "94105",
    "/destination/state": "CA",
    "/destination/city": "San Francisco",
    "/destination/recipient": "Erika",
    "/destination/line1": "1 Example Street",
}


@pytest.fixture(scope="module")
def tried_hub(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    hub = copy_of(prepared, tmp_path_factory.mktemp("tries") / "hub")
    with hub.served():
        yield hub
    assert hub.count(f"{UNPAIRED} AND call.state <> 'held'") == 0  # what waits for a person has no End yet


def open_try(visitor: Visitor, tool: str) -> None:
    """From the page of the tool."""
    visitor.page.goto(f"{visitor.url}/tools/{tool}")
    visitor.ready()
    visitor.page.get_by_role("main").get_by_role("link", name=visitor.variant.say("Try"), exact=True).click()
    expect(visitor.page.locator("#arguments")).to_be_visible(timeout=PATIENCE_MS)
    visitor.ready()


def press(visitor: Visitor, do: str) -> None:
    """A button that has the arguments drawn again."""
    button = visitor.page.locator(f'button[name="do"][value="{do}"]')
    button.click()
    if not visitor.variant.scripts:
        visitor.page.wait_for_load_state("load")


def run(visitor: Visitor, label: str = "Run") -> None:
    visitor.button(label).click()
    visitor.page.wait_for_load_state("load")
    visitor.ready()


def wait_for_answer(visitor: Visitor) -> None:
    """What goes on shows by itself; without scripts whoever wants to know looks again."""
    visitor.page.wait_for_url("**/try/inv_*", timeout=PATIENCE_MS)
    answer = visitor.page.locator("#answer")
    for _ in range(60):
        if visitor.variant.scripts or not answer.get_attribute("hx-trigger"):
            break
        visitor.page.reload()
    expect(visitor.page.locator("#answer:not([hx-trigger])")).to_be_visible(timeout=PATIENCE_MS)


@pytest.mark.req("CARD-3")
@in_each_variant
def test_a_tool_is_tried_with_fields_and_as_json_dry_and_for_real(
    browser: Browser, tried_hub: Embedded, variant: Variant, shots: Path
) -> None:
    assert tried_hub.credentials
    with Visitor(browser, tried_hub.url, variant, shots) as olivia:
        olivia.sign_in("olivia", tried_hub.credentials.password("olivia"))
        open_try(olivia, QUOTE)
        olivia.check("try")
        main = olivia.page.get_by_role("main")
        main.locator('[name="t:/sku"]').fill("laptop")
        main.locator('[name="t:/quantity"]').fill("two")
        run(olivia)
        olivia.sees("Write a number, such as 3 or 2.5.")
        olivia.check("try-wrong")
        assert main.locator('[name="t:/sku"]').input_value() == "laptop"
        main.locator('[name="t:/quantity"]').fill("2")
        run(olivia)
        expect(main.locator('[name="t:/sku"]')).to_have_attribute("aria-invalid", "true")
        main.locator('[name="t:/sku"]').fill("LAPTOP-14")
        press(olivia, "view:json")
        expect(main.locator("#raw")).to_have_value(re.compile("LAPTOP-14"), timeout=PATIENCE_MS)
        press(olivia, "view:fields")
        expect(main.locator('[name="t:/sku"]')).to_have_value("LAPTOP-14", timeout=PATIENCE_MS)
        run(olivia)
        wait_for_answer(olivia)
        olivia.sees("Timeline")
        expect(main.locator("#answer")).to_contain_text("LAPTOP-14")
        olivia.check("try-answer")

        open_try(olivia, ORDER)
        lines = main.locator('[name^="t:/lines#"][name$="/sku"]')
        there = lines.count()
        for more in (1, 2):
            press(olivia, "add:/lines")
            expect(lines).to_have_count(there + more, timeout=PATIENCE_MS)
            lines.last.fill(f"MOUSE-{more}")
        press(olivia, f"remove:/lines#{there}")
        expect(lines).to_have_count(there + 1, timeout=PATIENCE_MS)
        expect(lines.last).to_have_value("MOUSE-2")
        olivia.check("try-nested")


@pytest.mark.req("CARD-3")
@in_each_variant
def test_a_call_that_takes_effect_is_confirmed_by_name(
    browser: Browser, tried_hub: Embedded, variant: Variant, shots: Path
) -> None:
    assert tried_hub.credentials
    calls = "SELECT count(*) FROM invocations_invocation"
    with Visitor(browser, tried_hub.url, variant, shots) as olivia:
        olivia.sign_in("olivia", tried_hub.credentials.password("olivia"))
        open_try(olivia, ORDER)
        main, before = olivia.page.get_by_role("main"), tried_hub.count(calls)
        fill_order(olivia)
        main.locator('[name="mode"][value="real"]').check()
        run(olivia)
        olivia.sees("This call takes effect")
        olivia.check("try-confirm")
        assert tried_hub.count(calls) == before
        main.locator('[name="confirmed"]').fill("commerce.checkout")
        main.locator('[name="purpose"]').fill("To see the form.")
        run(olivia, "Call it for real")
        olivia.sees("Type the id of the tool: this call takes effect.")
        assert tried_hub.count(calls) == before
        main.locator('[name="confirmed"]').fill(ORDER)
        run(olivia, "Call it for real")
        olivia.page.wait_for_url("**/try/inv_*", timeout=PATIENCE_MS)
        olivia.ready()
        olivia.check("try-held")
        assert tried_hub.count(calls) == before + 1


def fill_order(visitor: Visitor) -> None:
    """By the fields alone: a list, an object within the arguments, choices."""
    main = visitor.page.get_by_role("main")
    if main.locator('[name="t:/lines#0/sku"]').count() == 0:
        press(visitor, "add:/lines")
    main.locator('[name="t:/lines#0/sku"]').fill("MOUSE-ERGO")
    if main.locator('[name="t:/destination/country"]').count() == 0:
        press(visitor, "add:/destination")
    for name, text in ORDERED.items():
        place = main.locator(f'[name="t:{name}"]')
        if place.count():
            place.fill(text)


@pytest.mark.req("CARD-3", "CARD-4")
def test_the_lines_to_copy_make_the_call(browser: Browser, tried_hub: Embedded, shots: Path) -> None:
    assert tried_hub.credentials
    with Visitor(browser, tried_hub.url, Variant("light"), shots) as olivia:
        olivia.sign_in("olivia", tried_hub.credentials.password("olivia"))
        open_try(olivia, QUOTE)
        olivia.page.locator('[name="t:/sku"]').fill("HEADPHONES-ANC")
        run(olivia)
        wait_for_answer(olivia)
        lines = {name: olivia.page.locator(f"#as-{name}").text_content() or "" for name in ("curl", "python", "mcp")}
    env = os.environ | {"TOOLHUB_API_KEY": tried_hub.credentials.key, "PYTHONPATH": str(ROOT)}
    assert all(tried_hub.credentials.key not in each for each in lines.values())

    curl, mcp = (
        subprocess.run(["sh", "-c", lines[name]], env=env, capture_output=True, text=True, check=True).stdout
        for name in ("curl", "mcp")
    )
    python = subprocess.run(
        [sys.executable, "-c", lines["python"]], env=env, capture_output=True, text=True, check=True
    ).stdout

    said = json.loads(curl)
    assert (said["ok"], said["call"]["dry_run"], said["data"]["sku"]) == (True, True, "HEADPHONES-ANC")
    assert "HEADPHONES-ANC" in python
    assert "HEADPHONES-ANC" in mcp
    assert 'isError":true' not in mcp.replace(" ", "")


@pytest.mark.req("CARD-3", "TOOLS-6")
@in_each_variant
def test_a_developer_brings_a_python_file_and_sees_what_is_missing(
    browser: Browser, tried_hub: Embedded, variant: Variant, shots: Path
) -> None:
    assert tried_hub.credentials
    group = f"greeting.{variant.name.replace('-', '_')}"
    with Visitor(browser, tried_hub.url, variant, shots) as dana:
        dana.sign_in("dana", tried_hub.credentials.password("dana"))
        dana.go("My submissions")
        dana.check("submissions")
        dana.page.get_by_role("main").get_by_role("link", name=dana.variant.say("Bring a package")).first.click()
        dana.page.wait_for_load_state("load")
        dana.ready()
        dana.check("submission-new")
        main = dana.page.get_by_role("main")
        main.locator("#id_python_group").fill(group)
        broken = GREETING.replace("language: str", "language str").encode()
        main.locator("#id_python_file").set_input_files(
            {"name": "hello.py", "mimeType": "text/x-python", "buffer": broken}
        )
        main.get_by_role("button", name=dana.variant.say("Check and preview")).first.click()
        expect(main.locator("li.marked")).to_have_count(1, timeout=PATIENCE_MS)
        dana.ready()
        dana.check("submission-wrong")
        main.locator("#id_python_file").set_input_files(
            {"name": "hello.py", "mimeType": "text/x-python", "buffer": GREETING.encode()}
        )
        main.get_by_role("button", name=dana.variant.say("Check and preview")).first.click()
        expect(main.get_by_role("button", name=dana.variant.say("Submit for review"))).to_be_visible(
            timeout=PATIENCE_MS
        )
        dana.ready()
        dana.check("submission-preview")
        main.get_by_role("button", name=dana.variant.say("Submit for review")).click()
        dana.page.wait_for_url("**/submissions", timeout=PATIENCE_MS)
        dana.ready()
        row = main.get_by_role("row").filter(has_text=f"{group}.hello")
        expect(row).to_be_visible(timeout=PATIENCE_MS)
        dana.check("submissions-waiting")
        row.get_by_role("link", name=f"{group}.hello").click()
        dana.page.wait_for_url("**/submissions/tools/*", timeout=PATIENCE_MS)
        dana.ready()
        dana.check("submitted-tool")
