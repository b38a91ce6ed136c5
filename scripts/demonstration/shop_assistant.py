"""Shop assistant: the agent of the model story, as people set it up in the console. What is there already stays.

An owner makes it and its key, so that the operator may decide on what it asks for. A rule of the tenant's policy puts each of its
quotes to a person; nobody else's calls are touched by it. Whether something is missing is asked of the hub, never remembered; only the
key, which is shown once, is kept in the data directory.
"""

from __future__ import annotations

import html
import json
import os
import re
from typing import TYPE_CHECKING

from scripts.demonstration.hub_clients import DemoAgent, HubUnreachable, Json, StoryBroken
from scripts.demonstration.order_story import QUOTE
from scripts.demonstration.output import print_line

if TYPE_CHECKING:
    from pathlib import Path

    from scripts.demonstration.hub_clients import DemoPerson

NAME = "shop-assistant"
KEPT = "demo-shop-assistant.json"
SCOPES = ("models:call", "tools:read", "invocations:create", "invocations:read")
RULE: Json = {
    "id": "quotes-of-the-shop-assistant",
    "effect": "consent",
    "when": {"agent_name": {"equals": NAME}, "tool": {"equals": QUOTE}},
    "consent": {"mode": "once", "validity_s": 3600},
    "note": "What a model proposes to quote is compared with the question before it runs.",
}
REASON = "The demonstration of `make demo` with a model."
KEY = re.compile(r"hub_[a-z]+_\w+")
MODEL = re.compile(r'href="/models/(model\.[^"/]+)"')
AGENT = re.compile(rf'href="/agents/(agt_\w+)"[^>]*>\s*{NAME}\s*<')
NO_MODEL = "No model {wanted} is connected. Connected are: {ids}. `make models` installs one that needs no key."


def prepare_assistant(
    base: str, folder: Path, wanted: str, *, owner: DemoPerson, operator: DemoPerson
) -> tuple[DemoAgent, str]:
    """The agent, with all that it may do, and the id of the model that it asks."""
    model = find_model(wanted, operator)
    agent = _find_agent(base, folder / KEPT) or _make_agent(base, folder / KEPT, owner)
    may_ask = {each["id"] for each in agent.ask("GET", "/api/v1/models").body["data"]["models"]}
    if model not in may_ask:
        _give_grant(model, operator)
    if _look_ahead(agent).get("refused_at") == "grant":
        _give_grant(QUOTE, operator)
    if _look_ahead(agent)["allow"]:
        _put_quotes_to_a_person(drafting=operator, publishing=owner)
    return agent, model


def find_model(wanted: str, person: DemoPerson) -> str:
    """The id of the model that is meant by an id, an alias, ``provider:alias``, or ``provider:`` and its name there."""
    ids: list[str] = sorted(set(MODEL.findall(person.read("/models").text)))
    provider, _, name = wanted.rpartition(":")
    of_provider = [id for id in ids if not provider or id.split(".")[1] == provider]
    found = [id for id in of_provider if wanted == id or id.split(".")[2] == name]
    if not found and provider:
        found = [id for id in of_provider if f">{html.escape(name)}<" in person.read(f"/models/{id}").text]
    if len(found) != 1:
        raise HubUnreachable(NO_MODEL.format(wanted=wanted, ids=", ".join(ids) or "none"))
    return found[0]


def _find_agent(base: str, kept: Path) -> DemoAgent | None:
    try:
        agent = DemoAgent(base, json.loads(kept.read_text())["api_key"], NAME)
    except (OSError, ValueError, KeyError):
        return None
    return agent if agent.ask("GET", "/api/v1/models").status == 200 else None


def _make_agent(base: str, kept: Path, owner: DemoPerson) -> DemoAgent:
    known = AGENT.search(owner.read("/agents").text)
    page = f"/agents/{known[1]}" if known else owner.submit("/agents/new", "/agents/new", {"name": NAME}).path
    keys = f"{page}/keys/new"
    shown = KEY.search(owner.submit(keys, keys, {"name": "make demo", "scopes": SCOPES, "days": "90"}).text)
    if shown is None:
        raise StoryBroken(f"No key was made at {keys}.")
    with os.fdopen(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({"api_key": shown[0]}, file)
    print_line(f"    (Oona, an owner, has made the agent {NAME} and a key of it)")
    return DemoAgent(base, shown[0], NAME)


def _look_ahead(agent: DemoAgent) -> Json:
    """Whether a quote would be allowed now, and what stands in its way. Nothing runs."""
    asked = agent.envelope({"sku": "LAPTOP-14"})
    verdict: Json = agent.ask("POST", f"/api/v1/tools/{QUOTE}/preflight", asked).body["data"]
    return verdict


def _give_grant(name: str, operator: DemoPerson) -> None:
    option = re.search(rf'<option value="([^"]+)"[^>]*>\s*{NAME}\s*<', operator.read("/grants/new").text)
    if option is None:
        raise StoryBroken(f"The agent {NAME} can be given no grant; is it disabled?")
    said = {"agent": option[1], "tools": name, "calls_limit": "1000", "may_delegate": "0", "reason": REASON}
    operator.submit("/grants/new", "/grants/new", said)
    print_line(f"    (Olivia, an operator, has granted it {name})")


def _put_quotes_to_a_person(*, drafting: DemoPerson, publishing: DemoPerson) -> None:
    """The policy in force, or a first one, with one rule more. Whoever drafts it cannot publish it."""
    shown = re.search(r'<textarea name="text"[^>]*>(.*?)</textarea>', drafting.read("/policies/new").text, re.DOTALL)
    if shown is None:
        raise StoryBroken("The page of a new policy shows no text.")
    document = json.loads(html.unescape(shown[1]))
    document["rules"] = [rule for rule in document["rules"] if rule["id"] != RULE["id"]] + [RULE]
    text = {
        "text": json.dumps(document, indent=2),
        "note": "A person compares what the shop assistant's model proposes.",
    }
    draft = drafting.submit("/policies/new", "/policies/new", text).path
    drafting.submit(f"{draft}/impact", f"{draft}/preview", {"calls": "1000"})
    publishing.submit(draft, f"{draft}/publish", {"reason": "A person is to agree to what a model proposes."})
    print_line("    (Olivia has drafted the rule that a person agrees to each of its quotes; Oona has published it)")
