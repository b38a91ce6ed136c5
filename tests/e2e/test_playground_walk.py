"""Playground walk: do people set up the playground, compare two models, decide on a call in place and read the answer, with any
browser?
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import PATIENCE_MS, Variant, Visitor, in_each_variant
from tests.e2e.conftest import UNPAIRED, Embedded, copy_of
from tests.e2e.processes import python, run
from tests.support.chat_provider import ARGUMENTS, USAGE
from tests.support.model_servers import Reply, event_reply, model_server
from tests.support.model_streams import chat_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.http_server import Heard

FIRST, SECOND = "model.house.talks", "model.house.second"
QUOTE, ORDER = "commerce.pricing.get_realtime_quote", "commerce.checkout.create_draft_order"
ANSWER = "Two laptops cost 1,898.00 EUR."
ADDRESS = {
    "country": "US",
    "postal_code": "94105",
    "state": "CA",
    "city": "San Francisco",
    "recipient": "Erika",
    "line1": "1 Example Street",
}
ORDERED = {
    "lines": [{"sku": "KEYBOARD-MX", "quantity": 1}, {"sku": "MOUSE-ERGO", "quantity": 1}],
    "expected_total": "195.61",
    "shipping_option_id": "northfreight.ground.US1",
    "currency": "USD",
    "destination": ADDRESS,
}


def answer(heard: Heard) -> Reply:
    """Each tool that is shown is proposed once; then comes an answer."""
    body = json.loads(heard.body)
    shown = [each["function"]["name"] for each in body.get("tools", [])]
    calls = [
        {
            "id": f"call_{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(ORDERED if "order" in name else ARGUMENTS)},
        }
        for n, name in enumerate(shown)
        if body["messages"][-1]["role"] == "user"
    ]
    message = {"role": "assistant", "content": None if calls else ANSWER, "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    chunks = list(chat_chunks({"id": "x", "created": 1, "model": body["model"], "choices": [choice]}))
    chunks[-1]["usage"] = USAGE
    return event_reply(*chunks, b"data: [DONE]\n\n")


@pytest.fixture(scope="module")
def talking_hub(prepared: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with model_server(answer) as provider:
        near = {"TOOLHUB_OUTBOUND_NETWORKS": "127.0.0.0/8"}
        hub = copy_of(prepared, tmp_path_factory.mktemp("playground") / "hub", **near)
        run(python("-m", "tests.e2e.playground_world", provider.url), hub.env)
        with hub.served():
            yield hub
    assert hub.count(UNPAIRED) == 0


def set_up(oona: Visitor) -> None:
    """Once: the hub is that of all variants."""
    oona.go("Playground")
    main = oona.page.get_by_role("main")
    if main.locator("[name=money]").count() == 0:
        return
    oona.check("playground-set-up")
    for box in main.locator("[name=models]").all():
        box.check()
    for name, text in {"tools": "commerce.*", "money": "5", "reason": "People try the models."}.items():
        main.locator(f"[name={name}]").fill(text)
    oona.button("Set up").click()
    expect(main.locator("[name=text]")).to_be_visible(timeout=PATIENCE_MS)
    oona.ready()
    oona.check("playground-ready")


def send(dana: Visitor, text: str, tool: str, *, second: str = "") -> None:
    main = dana.page.get_by_role("main")
    main.locator("[name=text]").fill(text)
    main.locator("[name=model]").select_option(FIRST)
    main.locator("[name=second_model]").select_option(second)
    if not main.locator("[name=tools]").first.is_visible():
        main.locator("summary").filter(has_text=dana.variant.say("Tools")).click()
    for box in main.locator("[name=tools]").all():
        box.set_checked(box.get_attribute("value") == tool)
    dana.check("playground-message")
    dana.button("Send").click()
    dana.page.wait_for_url("**/playground/plc_*", timeout=PATIENCE_MS)
    dana.ready()


def wait_for(visitor: Visitor, text: str, *, times: int, ended: bool = False) -> None:
    """What goes on shows by itself; without scripts whoever wants to know looks again. ``ended``: until nothing goes on any more."""
    main = visitor.page.get_by_role("main")
    found, going_on = main.get_by_text(visitor.variant.say(text)), visitor.page.locator("main [hx-trigger]:not(#stops)")
    for _ in range(60):
        if visitor.variant.scripts or (found.count() >= times and not (ended and going_on.count())):
            break
        main.get_by_role("link", name=visitor.variant.say("Look again")).click()
        visitor.page.wait_for_load_state("load")
    expect(found).to_have_count(times, timeout=PATIENCE_MS)
    if ended:
        expect(going_on).to_have_count(0, timeout=PATIENCE_MS)
    visitor.ready()


@pytest.mark.req("LLM-3", "CARD-3", "TOOLS-20")
@in_each_variant
def test_people_talk_with_two_models_and_another_decides(
    talking_hub: Embedded, browser: Browser, variant: Variant, tmp_path: Path
) -> None:
    assert talking_hub.credentials
    password = talking_hub.credentials.password

    def visitor() -> Visitor:
        return Visitor(browser, talking_hub.url, variant, tmp_path)

    with visitor() as oona, visitor() as dana, visitor() as olivia:
        oona.sign_in("oona", password("oona"))
        set_up(oona)
        dana.sign_in("dana", password("dana"))
        dana.go("Playground")
        dana.check("playground")
        send(dana, "What do two laptops cost?", QUOTE, second=SECOND)
        wait_for(dana, ANSWER, times=2, ended=True)
        dana.check("playground-compared")
        send(dana, "Order them for Erika.", ORDER)
        wait_for(dana, "Waiting for consent", times=1)
        expect(dana.button("Approve this call")).to_have_count(0)
        dana.check("playground-held")

        olivia.sign_in("olivia", password("olivia"))
        olivia.go("Playground")
        olivia.page.get_by_role("main").get_by_role("link", name=ORDER).last.click()
        olivia.sees("What the playground may do")
        olivia.ready()
        olivia.check("playground-decide")
        olivia.page.locator("main textarea[name=reason]").fill("Erika agreed on the phone.")
        olivia.button("Approve this call").click()
        expect(olivia.button("Approve this call")).to_have_count(0, timeout=PATIENCE_MS)
        olivia.ready()
        wait_for(dana, ANSWER, times=3, ended=True)
        dana.sees("Erika agreed on the phone.")
        dana.check("playground-answered")
