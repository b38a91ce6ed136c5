"""Order story: an agent shops over REST, up to a draft order that a person has to approve. No model is asked."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING

from scripts.demonstration.hub_clients import StoryBroken
from scripts.demonstration.output import expect_status, format_fields, print_line, print_refusal, print_value

if TYPE_CHECKING:
    from scripts.demonstration.hub_clients import DemoAgent, DemoPerson, HubAnswer, Json
    from scripts.demonstration.output import Steps

QUOTE = "commerce.pricing.get_realtime_quote"
ORDER = "commerce.checkout.create_draft_order"
BERLIN = {"country": "DE", "postal_code": "10115", "city": "Berlin"}
LINES = [{"sku": "HEADPHONES-ANC", "quantity": 1}]


def tell_shopping(step: Steps, agent: DemoAgent) -> Json:
    """The calls that need a grant and nothing else. Returns the total of the cart."""
    step("The agent looks which tools there are.")
    tools = expect_status(agent.ask("GET", "/api/v1/tools"), 200).body["data"]["tools"]
    for tool in sorted(tools, key=lambda each: str(each["id"])):
        consent = "  needs consent" if tool["needs_consent"] else ""
        print_line(f"        {tool['id']:<42} {tool['side_effect']}{consent}")

    step("It asks whether a call would be allowed. Nothing runs.")
    asked = agent.envelope({"sku": "HEADPHONES-ANC", "quantity": 1, "currency": "EUR"})
    verdict = expect_status(agent.ask("POST", f"/api/v1/tools/{QUOTE}/preflight", asked), 200).body["data"]
    print_value("allow", verdict["allow"])
    print_value("steps", ", ".join(f"{each['name']} {each['ms']:.2f} ms" for each in verdict["steps"]))
    print_value("profile", verdict["profile_hash"])

    step("A quote. The tool runs in a container of its own, without a network.")
    quote = expect_status(agent.call(QUOTE, {"sku": "HEADPHONES-ANC", "quantity": 1, "currency": "EUR"}), 200).body
    print_value("data", format_fields(quote["data"], "name", "unit_price", "currency", "total"))
    print_value("fresh for", f"{quote['ttl_seconds']} s")
    print_value(
        "rests on", ", ".join(f"{each['name']} {each.get('version', '')}" for each in quote["evidence"]["sources"])
    )

    step("Ways to ship it to Berlin.")
    wanted = {"destination": BERLIN, "items": LINES, "currency": "EUR"}
    options = expect_status(agent.call("commerce.shipping.quote_options", wanted), 200).body["data"]["options"]
    for option in options[:3]:
        print_line(f"        {option['id']:<32} {option['price']}")

    step("Duties and taxes.")
    wanted = {"destination": {"country": "DE"}, "items": LINES, "currency": "EUR", "ship_from": "NL"}
    taxes = expect_status(agent.call("commerce.tax.estimate_duties_and_taxes", wanted), 200).body["data"]
    print_value("data", format_fields(taxes | taxes["totals"], "total", "currency", "incoterm"))
    for charge in taxes["charges"]:
        print_value(charge["kind"], f"{charge['amount']} by rule {charge['rule_id']}, version {charge['rule_version']}")

    step("Beef jerky to Australia: a rule of the tool says no, and which.")
    forbidden = {"destination_country": "AU", "sku": "JERKY-BEEF", "enforce": True}
    print_refusal(
        expect_status(agent.call("commerce.compliance.check_item", forbidden), 403, reason="DOMAIN.COMPLIANCE_BLOCKED")
    )

    step("The total of the cart.")
    cart = {"lines": LINES, "destination": BERLIN, "shipping_option_id": options[0]["id"], "currency": "EUR"}
    total: Json = expect_status(agent.call("commerce.checkout.compute_total", cart), 200).body["data"]
    print_value("total", f"{total['total']} {total['currency']}")
    return cart | {"expected_total": total["total"]}


def forget_old_consents(agent: DemoAgent, person: DemoPerson) -> None:
    """Revoke earlier consents for the tool, also those of other stories, so that this one starts where a first one does."""
    for consent in agent.ask("GET", "/api/v1/consents").body["data"]["consents"]:
        if consent["tool"] == ORDER and consent["state"] == "approved":
            page = f"/consents/{consent['id']}"
            fields = {"decision": "revoke", "reason": "The demonstration is told from its beginning."}
            person.submit(page, f"{page}/decision", fields)
            print_line(f"    ({consent['id']}, an earlier consent for this tool, was revoked)")


def tell_order(step: Steps, agent: DemoAgent, person: DemoPerson, cart: Json) -> HubAnswer:
    """The call that writes: refused, asked for, approved, made, made again."""
    forget_old_consents(agent, person)
    arguments = cart | {"destination": BERLIN | {"recipient": "A. Buyer", "line1": "1 Example Street"}}
    key = f"order-{time.time_ns():x}"

    step("A draft order writes something, so a person must agree first. Nobody has.")
    refused = expect_status(agent.call(ORDER, arguments, key=key), 403, reason="POLICY.CONSENT_REQUIRED")
    print_refusal(refused)
    print_value("refused at", refused.body["call"]["refused_at"])

    step("The agent asks for consent and says what for.")
    wanted = {"tool": ORDER, "purpose": "Draft the order that the user has in the cart."}
    consent = expect_status(agent.ask("POST", "/api/v1/consents", wanted), 201).body["data"]
    print_value("consent", f"{consent['id']} ({consent['state']})")

    step("Olivia, an operator, approves it in the console, with a reason.")
    page = f"/consents/{consent['id']}"
    person.submit(page, f"{page}/decision", {"mode": "period", "reason": "The user asked for this order."})
    state = expect_status(agent.ask("GET", f"/api/v1/consents/{consent['id']}"), 200).body["data"]
    if state["state"] != "approved":
        raise StoryBroken(f"The consent is {state['state']}, not approved.")
    print_value("consent", f"{state['state']} until {state['expires_at']}")

    step("The same call again, now with a consent.")
    made = expect_status(agent.call(ORDER, arguments, key=key), 200)
    print_value("draft order", made.body["data"]["draft_order_id"])
    print_value("call", made.call_id)

    step("And once more with the same Idempotency-Key: the first answer comes back, nothing runs.")
    again = expect_status(agent.call(ORDER, arguments, key=key), 200)
    print_value("replayed", again.headers.get("idempotency-replayed", "no"))
    print_value("same call", again.call_id == made.call_id and again.body["data"] == made.body["data"])
    if again.call_id != made.call_id or "idempotency-replayed" not in again.headers:
        raise StoryBroken("The second call was another call, or nothing says that it was not.")
    return made


def tell_evidence(step: Steps, agent: DemoAgent, made: HubAnswer) -> None:
    """Fetch the facts of the call and compute their hashes here."""
    step("The evidence of that call: exactly one Begin and one End, hashed again on this side.")
    answer = expect_status(agent.ask("GET", f"/api/v1/evidence/invocations/{made.call_id}"), 200)
    facts = answer.body["data"]["facts"]
    for fact in facts:
        computed = hashlib.sha256(b"\x00" + fact["leaf"].encode()).hexdigest()
        same = computed == fact["leaf_hash"]
        print_line(
            f"        {fact['kind']:<20} {computed}  {'matches' if same else 'DIFFERS from ' + fact['leaf_hash']}"
        )
        if not same:
            raise StoryBroken(f"The leaf hash of {fact['id']} is not the SHA-256 of its leaf.")
    kinds = [fact["kind"] for fact in facts]
    if kinds.count("invocation.began") != 1 or kinds.count("invocation.ended") != 1:
        raise StoryBroken(f"The call has the facts {kinds}.")
    end = json.loads(next(fact["leaf"] for fact in facts if fact["kind"] == "invocation.ended"))
    print_value("outcome", end["outcome"])
    print_value("output", f"{end['data']['output']['commit']} (a commitment; the value is in a sealed snapshot)")
    print_value("build", end["data"]["tool"]["build"])
