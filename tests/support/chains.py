"""Chains: how do tests submit plans, and what do they read of a chain?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidence.models import Fact
from invocations.chains.models import Chain
from invocations.models import Invocation
from kernel.ids import decode

if TYPE_CHECKING:
    from tests.conftest import Caller

ECHO = "sample.tools.echo"
TEXT: dict[str, Any] = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "maxLength": 100}},
}
ENVELOPE = {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}}


def step(id: str, tool: str = "echo", *, text: Any = "x", **more: Any) -> dict[str, Any]:
    return {"id": id, "tool": f"sample.tools.{tool}", "arguments": {"text": text}, **more}


def of(name: str, pointer: Any = "/text", **more: Any) -> dict[str, Any]:
    """A reference to what a step has delivered."""
    return {"$from": name, "pointer": pointer, **more}


def undo(tool: str = "echo", *, text: Any = "undone", **more: Any) -> dict[str, Any]:
    return {"tool": f"sample.tools.{tool}", "arguments": {"text": text}, **more}


def submit(caller: Caller, *steps: dict[str, Any], headers: dict[str, str] | None = None, **envelope: Any) -> Any:
    return caller.post("/chains", ENVELOPE | {"plan": {"steps": list(steps)}} | envelope, **(headers or {}))


def ask(caller: Caller, *steps: dict[str, Any], **envelope: Any) -> dict[str, Any]:
    """What the preflight of a plan says."""
    answer = caller.post("/chains/preflight", ENVELOPE | {"plan": {"steps": list(steps)}} | envelope)
    assert answer.status_code == 200, answer.json()
    data: dict[str, Any] = answer.json()["data"]
    return data


def chain_of(answer: Any) -> Chain:
    return Chain.objects.get(pk=decode("chn", answer.json()["data"]["chain_id"]))


def states(chain: Chain, role: str = "step") -> list[str]:
    return [step.state for step in chain.steps.filter(role=role).order_by("position")]


def calls(chain: Chain) -> list[Invocation]:
    """In the order in which they were made."""
    return list(Invocation.objects.filter(chain_step__chain=chain).order_by("id"))


def facts(chain: Chain) -> list[str]:
    return list(Fact.objects.filter(subject=chain.wire_id).order_by("id").values_list("kind", flat=True))
