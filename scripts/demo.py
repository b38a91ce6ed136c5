"""Demonstration: what toolhub does. Told over REST against a running hub, step by step, with real answers. `make demo` runs it.

Uses what `make run` has left in the data directory (``demo-credentials.json``) and the standard library. The consent is
approved the way a person does it: through the console's form, with a session and a CSRF token. May be run again and again.

Exit status: 0 the story held; 1 no hub, or no credentials for it; 2 the hub answered something else than the story says.
"""

from __future__ import annotations

import hashlib
import html
import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from toolhub.variables import TOOLHUB_DATA_DIR, TOOLHUB_PUBLIC_URL, VARIABLES  # noqa: E402

if TYPE_CHECKING:
    from email.message import Message

OPERATOR = "olivia"
WAIT_S = 70
QUOTE = "commerce.pricing.get_realtime_quote"
ORDER = "commerce.checkout.create_draft_order"
BERLIN = {"country": "DE", "postal_code": "10115", "city": "Berlin"}
LINES = [{"sku": "HEADPHONES-ANC", "quantity": 1}]

Json = dict[str, Any]


class HubUnreachable(Exception):
    """There is no hub to tell the story with. The message says what to do."""


class StoryBroken(Exception):
    """The hub answered, but not what the story says."""


@dataclass(frozen=True, slots=True)
class HubAnswer:
    status: int
    headers: dict[str, str]
    body: Json
    ms: float

    @property
    def reason(self) -> str:
        return str((self.body.get("error") or {}).get("reason", ""))

    @property
    def call_id(self) -> str:
        return str(self.body["call"]["call_id"])


def _opener(base: str, *handlers: urllib.request.BaseHandler) -> urllib.request.OpenerDirector:
    """A hub on this machine is never asked for through a proxy."""
    local = urllib.parse.urlsplit(base).hostname in ("127.0.0.1", "localhost", "::1", "0.0.0.0")
    return urllib.request.build_opener(*handlers, *([urllib.request.ProxyHandler({})] if local else []))


def _lowered(headers: Message) -> dict[str, str]:
    """Servers write the names of headers as they like."""
    return {name.lower(): value for name, value in headers.items()}


def _open(opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> tuple[int, dict[str, str], bytes]:
    try:
        with opener.open(request, timeout=WAIT_S) as response:
            return response.status, _lowered(response.headers), response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, _lowered(error.headers), error.read()
    except (urllib.error.URLError, OSError) as error:
        raise HubUnreachable(f"No hub answers at {request.full_url}: {error}. Start one with `make run`.") from error


class DemoAgent:
    """The REST API with an agent's key."""

    def __init__(self, base: str, key: str) -> None:
        self.base, self._key, self._count = base, key, 0
        self._run = f"demo-{time.time_ns() // 1_000_000:x}"
        self._opener = _opener(base)

    def ask(self, method: str, path: str, body: Json | None = None, headers: dict[str, str] | None = None) -> HubAnswer:
        sent = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"} | (headers or {})
        data = None if body is None else json.dumps(body).encode()
        begun = time.perf_counter()
        status, got, raw = _open(
            self._opener, urllib.request.Request(self.base + path, data=data, headers=sent, method=method)
        )
        ms = (time.perf_counter() - begun) * 1000
        try:
            return HubAnswer(status, got, json.loads(raw), ms)
        except ValueError as error:
            raise StoryBroken(f"{method} {path} answered {status} with something that is not JSON.") from error

    def envelope(self, arguments: Json) -> Json:
        self._count += 1
        actor = {"type": "agent", "id": "shopping-assistant"}
        return {
            "request_id": f"{self._run}-{self._count}",
            "actor": actor,
            "currency": "EUR",
            "arguments": arguments,
        }

    def call(self, tool: str, arguments: Json, *, key: str = "") -> HubAnswer:
        headers = {"Idempotency-Key": key} if key else {}
        return self.ask("POST", f"/api/v1/tools/{tool}/invoke", self.envelope(arguments), headers)


class DemoPerson:
    """The console in a browser without JavaScript: cookies, forms, CSRF tokens."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._opener = _opener(base, urllib.request.HTTPCookieProcessor(CookieJar()))

    def _get(self, path: str) -> str:
        status, _, raw = _open(self._opener, urllib.request.Request(self._base + path))
        if status != 200:
            raise StoryBroken(f"The console answered {status} for {path}.")
        return raw.decode()

    def submit(self, page: str, action: str, fields: dict[str, str]) -> None:
        """Open ``page`` and send its form to ``action``."""
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self._get(page))
        if token is None:
            raise StoryBroken(f"The page {page} holds no form.")
        data = urllib.parse.urlencode(fields | {"csrfmiddlewaretoken": html.unescape(token[1])}).encode()
        request = urllib.request.Request(self._base + action, data=data, headers={"Referer": self._base + page})
        status, _, _ = _open(self._opener, request)
        if status != 200:
            raise StoryBroken(f"The console answered {status} for the form at {page}.")

    def sign_in(self, name: str, password: str) -> None:
        self.submit("/sign-in", "/sign-in", {"username": name, "password": password})


def print_line(text: str = "") -> None:
    print(text, flush=True)


class Steps:
    """Numbered headings."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, title: str) -> None:
        self._number += 1
        print_line(f"\n{self._number:2}. {title}")


def print_value(label: str, value: Any) -> None:
    print_line(f"      {label:<14} {value}")


def format_fields(data: Json, *names: str) -> str:
    """The parts of an answer that tell the story."""
    return ", ".join(f"{name} {data[name]}" for name in names if name in data)


def expect_status(answer: HubAnswer, status: int, *, reason: str = "") -> HubAnswer:
    if answer.status != status or answer.reason != reason:
        problem = json.dumps(answer.body.get("error") or answer.body, ensure_ascii=False)[:600]
        raise StoryBroken(f"Expected {status} {reason or 'without a problem'}, got {answer.status}: {problem}")
    print_value("answered", f"{answer.status} in {answer.ms:.0f} ms" + (f", {answer.reason}" if reason else ""))
    return answer


def print_refusal(answer: HubAnswer) -> None:
    error = answer.body["error"]
    print_value("code", error["code"])
    print_value("message", error["message"])
    if error.get("remedy"):
        print_value("remedy", error["remedy"])


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
    """Revoke what an earlier telling has left, so that this one starts where the first did."""
    for consent in agent.ask("GET", "/api/v1/consents").body["data"]["consents"]:
        if consent["tool"] == ORDER and consent["state"] == "approved":
            page = f"/consents/{consent['id']}"
            fields = {"decision": "revoke", "reason": "The demonstration is told from its beginning."}
            person.submit(page, f"{page}/decision", fields)
            print_line(f"    (the consent {consent['id']} of an earlier telling was revoked)")


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
    person.submit(page, f"{page}/decision", {"decision": "approve", "reason": "The user asked for this order."})
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


def read_credentials() -> tuple[str, dict[str, Any]]:
    """The hub's address and the credentials that `make run` wrote."""
    if VARIABLES.mistakes:
        raise HubUnreachable(" ".join(VARIABLES.mistakes))
    base, path = TOOLHUB_PUBLIC_URL.rstrip("/"), TOOLHUB_DATA_DIR / "demo-credentials.json"
    try:
        credentials: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise HubUnreachable(
            f"{path} cannot be read ({error}). `make run` writes it; TOOLHUB_DATA_DIR says where."
        ) from error
    return base, credentials


def main() -> int:
    try:
        base, credentials = read_credentials()
        agent, person, step = DemoAgent(base, credentials["api_key"]), DemoPerson(base), Steps()
        print_line(f"toolhub at {base}, told by the agent shopping-assistant.")
        person.sign_in(OPERATOR, credentials["passwords"][OPERATOR])
        cart = tell_shopping(step, agent)
        made = tell_order(step, agent, person, cart)
        tell_evidence(step, agent, made)
    except HubUnreachable as error:
        print(error, file=sys.stderr)
        return 1
    except StoryBroken as error:
        print(f"\nThe story broke here. {error}", file=sys.stderr)
        return 2
    except (KeyError, IndexError, TypeError) as error:
        print(f"\nThe story broke here. An answer lacks a part: {error!r}", file=sys.stderr)
        return 2
    print_line(f"\nThe timeline of the call, for people who can sign in:\n    {base}/invocations/{made.call_id}")
    print_line(f"    as {OPERATOR} / {credentials['passwords'][OPERATOR]}, or as an auditor (`make run` printed both).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
