"""Proposal links: which answer of which model proposed a call, as two facts say it.

The End of a call of a model has a keyed hash of each call that its answer proposed: of its id, its tool and its arguments. A call that
names that answer is held against it before it is accepted, and its Begin has the same hash: who has both leaves sees that this call
was proposed, and nobody can guess from either what was. A link that does not hold refuses the call; it is never left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from evidence.keys.subject_keys import fingerprint_under
from evidence.kinds import ENDS
from evidence.leaves.call_ends import End
from evidence.models import Fact
from invocations.models import Invocation, State
from invocations.problems import NotProposed
from invocations.value_keys import known_key_of
from kernel.canonical import encode_hash_input
from kernel.ids import decode
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from evidence.models import SubjectKey
    from invocations.calls import CallRequest
    from kernel.http.envelopes import RequestEnvelope

MAX_PROPOSED = 64  # hashes in a fact, which has room for other things too
MAX_SHOWN = 100  # calls that were made of one answer
AS_WRITTEN = (
    "Send the id, the tool and the arguments as the model wrote them. A call that somebody has changed is no longer the model's: "
    "make it without `proposed_by`."
)


class ProposalLink(NamedTuple):
    """Which answer proposed a call. ``model``: that gave it, which may be another than was asked; ``hash``: as its End has it."""

    invocation_id: UUID
    model: str
    hash: str


def complete_link(envelope: RequestEnvelope, call_id: str) -> RequestEnvelope:
    """The envelope with the id of the proposal, where it names only the answer, as one for all calls of a response does."""
    if not envelope.proposed_by or envelope.proposed_by.get("call_id"):
        return envelope
    return replace(envelope, proposed_by=envelope.proposed_by | {"call_id": call_id})


def hash_proposals(output: Any, key: SubjectKey) -> list[str]:
    """Of an answer as its caller gets it. Calls whose arguments cannot be used have none, for nobody can make them."""
    proposals = output.get("proposals") if isinstance(output, dict) else None
    found = [
        _hash_proposal(key, each["call_id"], each["name"], each["arguments"])
        for each in (proposals if isinstance(proposals, list) else [])
        if isinstance(each, dict) and isinstance(each.get("arguments"), dict)
    ]
    return found[:MAX_PROPOSED]


def _hash_proposal(key: SubjectKey, call_id: str, tool: str, arguments: Any) -> str:
    return fingerprint_under(key, encode_hash_input([call_id, tool, arguments])[1])


def find_proposal_link(call: CallRequest, *, tenant_id: UUID, agent_id: UUID) -> ProposalLink | None:
    """The answer that proposed a call; None where the call names none.

    Raises:
        NotProposed: the link does not hold.
        SchemaInvalid: it names an answer, and not which of its proposals this is.
    """
    named = call.envelope.proposed_by
    if not named:
        return None
    call_id = named.get("call_id", "")
    if not call_id:
        raise SchemaInvalid.at("/proposed_by/call_id", "Say which of the answer's proposals this call is.")
    asked = _find_model_call(named["invocation"], tenant_id=tenant_id, agent_id=agent_id)
    key = known_key_of(asked)
    if key is None or key.destroyed_at is not None:
        raise NotProposed(f"What {asked.wire_id} was answered has been erased, so nobody can say what it proposed.")
    found = _hash_proposal(key, call_id, call.tool, call.arguments)
    model, hashes = _read_answer(asked)
    if found not in hashes or call.proposal not in ("", call_id):
        raise NotProposed(
            f"{asked.wire_id} did not propose this: no call of this id, of this tool and with these arguments.",
            remedy=AS_WRITTEN,
        )
    return ProposalLink(asked.pk, model, found)


def list_proposed_calls(asked: Invocation) -> list[Invocation]:
    """The calls that name this answer, in their order; of very many the first."""
    return list(asked.proposed_calls.filter(tenant_id=asked.tenant_id).order_by("pk")[:MAX_SHOWN])


def _find_model_call(wire_id: str, *, tenant_id: UUID, agent_id: UUID) -> Invocation:
    """A call of a model that this agent has made and that ended well; whether it is one of a model, its End says."""
    try:
        id = decode("inv", wire_id)
    except ValueError:
        id = None
    rows = Invocation.objects.filter(tenant_id=tenant_id, agent_id=agent_id).select_related("values_key__tenant_key")
    found = rows.filter(pk=id).first() if id is not None else None
    if found is None:
        raise NotProposed("This agent has made no call of a model of that id.")
    if found.state != State.SUCCEEDED:
        raise NotProposed(f"{found.wire_id} has not ended well, so its answer proposed nothing.")
    return found


def _read_answer(asked: Invocation) -> tuple[str, list[str]]:
    """(The model that answered, the hashes of what it proposed), as the End says."""
    end = Fact.objects.of_calls(asked.pk).filter(tenant_id=asked.tenant_id, kind__in=ENDS).first()
    said = End.from_data(end.content.get("data")) if end is not None else None
    if said is None or said.model is None:
        return "", []
    return said.model.stood_in or asked.tool, said.model.proposed or []
