"""A program on the client that openapi-python-client makes: types of a call, its problem, a chain and a list are known."""

import json
import sys

from toolhub_client import AuthenticatedClient
from toolhub_client.api.api import invoke, list_invocations, submit_chain
from toolhub_client.models import (
    Actor,
    CallEnvelope,
    Chain,
    ChainEnvelope,
    InvocationPageEnvelope,
    Invoke,
    InvokeArguments,
    Plan,
    Planned,
    Problem,
    Step,
    TypeEnum,
)

TOOL = "commerce.pricing.get_realtime_quote"


def main(address: str, key: str) -> None:
    client = AuthenticatedClient(base_url=address, token=key)
    actor = Actor(type_=TypeEnum.AGENT, id="shopping-assistant")
    arguments = InvokeArguments.from_dict({"sku": "LAPTOP-14", "quantity": 2, "currency": "EUR"})
    answer = invoke.sync(TOOL, client=client, body=Invoke(request_id="generated-1", actor=actor, arguments=arguments))
    assert isinstance(answer, CallEnvelope), answer
    state: str = answer.call.state.value
    digests: list[str] = [source.hash_ for source in answer.evidence.sources]

    wrong = InvokeArguments.from_dict({"sku": 7})
    refused = invoke.sync(TOOL, client=client, body=Invoke(request_id="generated-2", actor=actor, arguments=wrong))
    assert isinstance(refused, Problem), refused
    reason: str = refused.error.reason.value

    calls = list_invocations.sync(client=client, q="generated-1", limit=1)
    assert isinstance(calls, InvocationPageEnvelope), calls
    found: list[str] = [row.request_id for row in calls.data.invocations]
    print(json.dumps({"state": state, "digests": len(digests), "reason": reason, "found": found}))


def plan(client: AuthenticatedClient, actor: Actor, step: Step) -> list[str]:
    chain = submit_chain.sync(client=client, body=Chain(request_id="generated-3", actor=actor, plan=Plan(steps=[step])))
    assert isinstance(chain, ChainEnvelope), chain
    return [f"{each.id} {each.state.value} {each.call.url if each.call else ''}" for each in chain.data.steps]


def undo(tool: str) -> Planned:
    return Planned(tool=tool)


if __name__ == "__main__":
    main(*sys.argv[1:])
