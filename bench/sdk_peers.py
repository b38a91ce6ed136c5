"""SDK peers: what other libraries make of the same bad calls, at which cost. Ours beside them, each in its own environment.

Each library is asked in its own way of being called (bench/probes), with tools that say whether they ran. What is said is what came
out, not what was expected.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from bench.figures import ROOT, CannotMeasure, print_table
from scripts.provision import peers
from scripts.provision.console import SetupError

OURS = "unitools"
PEERS = {  # the environment that holds it (scripts/provision/peers.py), and the program
    "FastMCP": ("fastmcp-and-openai-agents", "fastmcp_probe"),
    "pydantic-ai": ("pydantic-ai", "pydantic_ai_probe"),
    "openai-agents": ("fastmcp-and-openai-agents", "openai_agents_probe"),
    "langchain-core": ("langchain", "langchain_probe"),
}
PROBES = (
    "unknown argument",
    "spoofed injected value",
    "duplicate name",
    "layer fails after next",
    "truncated JSON",
    "dict parameter",
)
GIVEN = {"unknown argument": "5", "spoofed injected value": "evil", "truncated JSON": '"b": '}  # what an error may echo
PATIENCE_S = 120


def describe_result(probe: str, found: dict[str, Any] | None) -> str:
    """What came of a bad call, in a few words; "–" where the library has nothing of the kind."""
    if found is None:
        return "–"
    ran, failed, text = found.get("ran", 0), found["failed"], found["text"]
    match probe:
        case "duplicate name":
            return "refused" if failed else "both kept" if found.get("kept") == 2 else "replaced silently"
        case "layer fails after next":
            return f"error, though it ran {ran} ×" if failed else f"the result; ran {ran} ×"
        case "dict parameter":
            return "refused" if failed else "works"
    if failed:
        return "rejected, echoes it" if GIVEN[probe] in text.replace("\\", "") else "rejected"
    return "THE MODEL'S VALUE IS USED" if "evil" in text else "dropped silently"


def run_probe(python: str, module: str) -> dict[str, Any]:
    words = [python, "-m", f"bench.probes.{module}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise CannotMeasure(f"{module} failed:\n{done.stderr[-1500:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def probe_peers() -> dict[str, dict[str, Any]]:
    """By library, ours first; one that cannot be installed is left out, and that is said."""
    found = {OURS: run_probe(sys.executable, "unitools_probe")}
    for name, (environment, module) in PEERS.items():
        try:
            found[name] = run_probe(str(peers.ensure_python(environment)), module)
        except (CannotMeasure, SetupError) as error:
            print(f"\n{name} is NOT asked: {error}")
    return found


def print_report() -> None:
    found = probe_peers()
    rows = [[each, *(describe_result(each, of.get(each)) for of in found.values())] for each in PROBES]
    print_table("The same bad calls", ("", *found), rows)
    ours = found[OURS]["µs"]
    costs = [[name, f"{of['µs']:.0f}", f"{of['µs'] / ours:.1f} ×"] for name, of in found.items()]
    costs.append(
        ["unitools, an async function", f"{found[OURS]['µs async']:.0f}", f"{found[OURS]['µs async'] / ours:.1f} ×"]
    )
    print_table(
        "A call of a function that adds, without a model", ("microseconds a call", "", "against unitools"), costs
    )


def main() -> None:
    """Only this part of the benchmark."""
    print_report()


if __name__ == "__main__":
    main()
