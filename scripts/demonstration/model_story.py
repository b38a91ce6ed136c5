"""Model story: a customer asks, a model proposes, a person agrees, the model answers, and an auditor proves it without the hub."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.demonstration.hub_clients import Json, StoryBroken
from scripts.demonstration.order_story import QUOTE
from scripts.demonstration.output import expect_status, print_line, print_value

if TYPE_CHECKING:
    from scripts.demonstration.hub_clients import DemoAgent, DemoPerson
    from scripts.demonstration.output import Steps

ROOT = Path(__file__).resolve().parents[2]
BUNDLE = "demo-evidence.zip"
TRIES = 3  # a small model may propose something else than was asked
WANTED: Json = {"sku": "LAPTOP-14", "quantity": 2, "currency": "EUR"}
QUESTION = "What do 2 pieces of LAPTOP-14 cost in EUR? Use the tool."
INSTRUCTION = "You are a shop assistant. Find each price with the tool."
# A model of this size goes on as it sees that others went on: two conversations to follow, whose figures are made up.
EXAMPLES = (("LAMP-DESK", 3, "USD", "74.70"), ("MOUSE-ERGO", 5, "EUR", "245.00"))
LIMITS = {"steps": 4, "seconds": 600, "equal_calls": 1}
SEAL_TRIES, SEAL_WAIT_S = 60, 1.0
END_OF_RUN = b"agent_run.ended"
VKEY = re.compile(r"[\w.:/-]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]+=*")


@dataclass(slots=True)
class ToldRun:
    """A run as it was followed to its end. ``quotes``: the calls that ran, by their ids."""

    run_id: str
    quotes: list[str] = field(default_factory=list)
    end: Json = field(default_factory=dict)


def tell_model_story(
    step: Steps, agent: DemoAgent, model: str, *, operator: DemoPerson, auditor: DemoPerson, folder: Path
) -> str:
    """Returns the id of the run."""
    step("A customer asks the shop.")
    print_line(f"        “{QUESTION}”")
    for attempt in range(TRIES):
        run = _tell_run(step, agent, model, operator, attempt=attempt)
        if run.quotes and run.end["data"]["state"] == "succeeded":
            break
        print_line(
            f"      The model did not get there ({run.end['data']['stop_reason']}), in try {attempt + 1} of {TRIES}."
        )
    else:
        raise StoryBroken(f"In {TRIES} runs the model {model} did not come to a quote and an answer.")
    _tell_answer(step, agent, run, is_local=model.startswith("model.local."))
    _tell_proof(step, run, auditor, folder)
    step("What it took.")
    data = run.end["data"]
    print_value("stop reason", data["stop_reason"])
    unpriced = f", and {data['unpriced_calls']} calls without a price" if data["unpriced_calls"] else ""
    print_value("cost", f"{data['cost_micros'] / 1_000_000:.6f}{unpriced}")
    return run.run_id


def build_run_request(agent: DemoAgent, model: str, *, attempt: int = 0, purpose: str = "") -> Json:
    arguments: Json = {
        "messages": build_messages(),
        "tools": [QUOTE],
        "parallel_calls": False,
        "max_tokens": 200,
        "temperature": 0.3 if attempt else 0.0,
        "seed": attempt + 1,
    }
    return agent.envelope(arguments) | {
        "model": model,
        "on_consent": "hold",
        "purpose": purpose or f"Answer the customer: {QUESTION}",
        "limits": LIMITS,
    }


def build_messages() -> list[Json]:
    """What the model is asked: an instruction, two conversations as it is to have them, and the question."""
    messages = [_build_message("system", INSTRUCTION)]
    for number, (sku, quantity, currency, total) in enumerate(EXAMPLES):
        arguments, id = {"sku": sku, "quantity": quantity, "currency": currency}, f"example_{number}"
        words = f"{quantity} pieces of {sku} cost"
        messages += [
            _build_message("user", f"What do {words} in {currency}?"),
            {"role": "assistant", "proposals": [{"call_id": id, "name": QUOTE, "arguments": arguments}]},
            _build_message("tool", json.dumps(arguments | {"total": total})) | {"call_id": id},
            _build_message("assistant", f"{words} {total} {currency}."),
        ]
    return [*messages, _build_message("user", QUESTION)]


def _build_message(role: str, text: str) -> Json:
    return {"role": role, "segments": [{"type": "text", "text": text}]}


def _tell_run(step: Steps, agent: DemoAgent, model: str, operator: DemoPerson, *, attempt: int) -> ToldRun:
    step(f"The agent {agent.name} has the hub take it to {model}, which is shown one tool.")
    asked = build_run_request(agent, model, attempt=attempt)
    run = ToldRun(expect_status(agent.ask("POST", "/api/v1/runs", asked), 202).body["data"]["run_id"])
    print_value("run", run.run_id)
    proposed: Json = {}
    for kind, data in agent.follow(f"/api/v1/runs/{run.run_id}/events"):
        match kind:
            case "model.answered" if data.get("proposals"):
                step("The model proposes a call. It has not run: the model never runs anything.")
                (proposed,) = data["proposals"]
                print_value("proposes", f"{proposed['name']} {json.dumps(proposed['arguments'])}")
            case "tool.held":
                _decide(step, agent, operator, data["call"], proposed)
            case "tool.ended":
                step("The call has ended, and the model is told what came of it.")
                print_value("state", f"{data['state']} {data['reason'] or ''}".rstrip())
                if data["state"] == "succeeded":
                    run.quotes.append(data["call"]["call_id"])
            case "end":
                run.end = data
    return run


def _decide(step: Steps, agent: DemoAgent, operator: DemoPerson, call: Json, proposed: Json) -> None:
    """As a person would: read on the page what would run, compare it with the question, and decide."""
    step("The rule of the policy holds it. Olivia reads what would run, and compares it with the question.")
    held = agent.ask("GET", call["url"]).body["call"]["held"]
    page = f"/consents/{held['consent']}"
    shown = operator.read(page)
    for name, value in proposed["arguments"].items():
        print_value(name, f"{value}   (asked for: {WANTED.get(name, 'nothing')})")
        if str(value) not in shown.text:
            raise StoryBroken(f"The page {page} does not show the {name} that was proposed.")
    is_wanted = proposed["arguments"] == WANTED
    reason = "It is what the customer asked for." if is_wanted else "It is not what the customer asked for."
    operator.submit(
        page, f"{page}/decision", ({"mode": "once"} if is_wanted else {"decision": "deny"}) | {"reason": reason}
    )
    print_value("Olivia", f"{'approves' if is_wanted else 'denies'}: {reason}")


def _tell_answer(step: Steps, agent: DemoAgent, run: ToldRun, *, is_local: bool) -> None:
    step("The answer, and what it rests on.")
    text = str(run.end["data"]["answer"].get("text", "")).strip()
    print_line(f"        “{text}”")
    quote = agent.ask("GET", f"/api/v1/invocations/{run.quotes[-1]}").body
    data = quote["data"]
    print_value("quote", f"{data['quantity']} × {data['name']}: {data['total']} {data['currency']}")
    print_value("call", f"{quote['call']['call_id']}, proposed by the answer {quote['call']['proposed_by']}")
    print_value("snapshot", quote["evidence"]["snapshot_id"])
    for source in quote["evidence"]["sources"]:
        print_value("source", f"{source['name']} {source['version']}  {source['hash'][:23]}…")
    is_cited = data["total"] in text
    print_value("cited", f"the total of the quote is {'in' if is_cited else 'NOT in'} the answer")
    if is_local:
        print_line(
            "      (A model of this machine proves that everything around a model works. It is no measure of what models can"
        )
        print_line("      do: SmolLM2 has 135 million parameters. What is true here is the quote, not the sentence.)")


def _tell_proof(step: Steps, run: ToldRun, auditor: DemoPerson, folder: Path) -> None:
    step("Aaron, an auditor, exports the run's evidence with the values of its calls, as a signed bundle.")
    vkeys = VKEY.findall(auditor.read("/evidence/integrity").text)
    if not vkeys:
        raise StoryBroken("The console shows no key that the log is verified with.")
    path = folder / BUNDLE
    for _ in range(SEAL_TRIES):
        path.write_bytes(_export(run, auditor))
        if _has_whole_run(path):
            break
        time.sleep(SEAL_WAIT_S)  # the log is sealed every few seconds
    else:
        raise StoryBroken("The end of the run does not come into the log. `make doctor` says whether a keeper runs.")
    print_value("bundle", f"{path} ({path.stat().st_size} bytes)")
    step("It is verified without the hub: a program of its own, which asks nobody, with the key that Aaron has.")
    done = _verify(path, vkeys)
    for line in done.stdout.splitlines():
        print_line(f"      {line}" if line else "")
    if done.returncode != 0:
        raise StoryBroken(f"The evidence is not verified. {done.stderr}")
    if f"{run.quotes[-1]} by the answer of" not in done.stdout:
        raise StoryBroken("The verifier does not say which answer proposed the call.")


def _export(run: ToldRun, auditor: DemoPerson) -> bytes:
    said = {
        "format": "bundle",
        "query": f"run:{run.run_id}",
        "opens": "on",
        "reason": "The demonstration shows that the call is the one that the model proposed.",
    }
    page = auditor.submit("/evidence/exports/new", "/evidence/exports/new", said).path
    for _ in range(SEAL_TRIES):
        if f"{page}/content" in auditor.read(page).text:
            return auditor.load(f"{page}/content")
        time.sleep(SEAL_WAIT_S)
    raise StoryBroken(f"The export at {page} is not made. `make doctor` says whether a keeper runs.")


def _has_whole_run(path: Path) -> bool:
    """Whether its last fact was in the log when the bundle was made."""
    with zipfile.ZipFile(path) as bundle:
        facts = [bundle.read(name) for name in bundle.namelist() if name.startswith("facts/")]
    return any(END_OF_RUN in each for each in facts)


def _verify(path: Path, vkeys: list[str]) -> subprocess.CompletedProcess[str]:
    """What `toolhub-verify` is in a checkout. It gets nothing of the hub but the file and the key."""
    keys = [part for vkey in dict.fromkeys(vkeys) for part in ("--key", vkey)]
    command = [sys.executable, "-m", "evidence.verify", str(path), *keys]
    return subprocess.run(command, cwd=ROOT, env={"PATH": ""}, capture_output=True, text=True, timeout=120)
