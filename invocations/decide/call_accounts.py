"""Call accounts: by whose account a call asks a server elsewhere that takes each person for themselves.

For whom a call is counts only where the hub knows it: a person has let the program act as the agent, or writes in the playground. What
an agent says by itself counts only where that person has let this agent say so, and never against what the hub knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings

from access.models import ServerAccount
from access.server_accounts.problems import AccountOfAnother, AccountPersonMissing, AccountRequired
from access.server_accounts.services import account_url, find_open_account, is_member
from invocations.models import Origin
from invocations.playground.models import PlaygroundSide
from kernel.ids import encode, encode_user

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.agent_runs.models import AgentRunStep
    from invocations.calls import CallRequest
    from invocations.models import Invocation
    from registry.decision_context import DecisionContext
    from unitools.manifest import Manifest

_USER = re.compile(r"usr_([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class CallPerson:
    """For whom a call is. ``vouched``: the hub knows it by itself."""

    member_id: int
    vouched: bool


def read_member(user_id: str) -> int | None:
    """Whom the envelope names, if it is somebody of the hub."""
    found = _USER.fullmatch(user_id)
    return int(found[1]) if found else None


def find_person(call: CallRequest, context: DecisionContext) -> CallPerson:
    named = read_member(call.envelope.user_id)
    if context.connection is not None:
        # What is kept of the call goes with whom it names, so it names the person or nobody.
        if call.envelope.user_id and named != context.connection.member_id:
            raise AccountOfAnother(
                "The person who has connected this program is another than the one whom the call names."
            )
        return CallPerson(context.connection.member_id, vouched=True)
    # A reviewer tries somebody's call: not with that person's account.
    if named is None or call.origin is Origin.SYSTEM:
        raise AccountPersonMissing(
            f"{context.tool} asks its server as the person whom a call is for, and this one is for nobody."
        )
    return CallPerson(named, vouched=is_of_playground(call.run_step))


def is_of_playground(step: AgentRunStep | None) -> bool:
    """Whether it is a step of a run that the hub itself has begun, for who writes there."""
    return step is not None and PlaygroundSide.objects.filter(run_id=step.run_id).exists()


def choose_account(call: CallRequest, context: DecisionContext, manifest: Manifest) -> ServerAccount | None:
    """The account that the call goes out with; None where the tool asks for none. :class:`AccountRequired` says whose is missing."""
    if manifest.account is None:
        return None
    person, resource = find_person(call, context), manifest.account_resource
    if not is_member(person.member_id, tenant_id=context.tenant_id):
        raise AccountPersonMissing(f"{encode_user(person.member_id)} is nobody who may act in this tenant.")
    found = find_open_account(person.member_id, tenant_id=context.tenant_id, resource=resource)
    agent = encode("agt", context.agent_id)
    if found is not None and found.serves(agent, vouched=person.vouched):
        return found
    whose = encode_user(person.member_id)
    if person.vouched:
        detail = f"{whose} must connect their account at the server of {context.tool} first."
    else:  # one sentence: who only says a name does not learn which of the two is missing
        detail = (
            f"{whose} must connect their account at the server of {context.tool} and let this agent use it, since only its word says "
            "that the call is for them."
        )
    raise AccountRequired(
        detail,
        details={
            "tool": context.tool,
            "person": whose,
            "agent": "" if person.vouched else agent,
            "url": account_url(found) if found and person.vouched else f"{settings.TOOLHUB_PUBLIC_URL}/server-accounts",
        },
    )


def check_account_still(invocation: Invocation) -> None:
    """Of a call that was accepted: may its agent use the account as before, and does its person still belong to the tenant?"""
    tenant_id, tool = invocation.tenant_id, invocation.tool
    assert invocation.account_id is not None
    rows = ServerAccount.objects.filter(pk=invocation.account_id, tenant_id=tenant_id)
    found = rows.select_related("server").first()
    vouched = invocation.connection_id is not None or is_of_playground(invocation.run_step)
    agent = encode("agt", invocation.agent_id)
    if found is None or not found.serves(agent, vouched=vouched) or not is_member(found.member_id, tenant_id=tenant_id):
        raise AccountRequired(
            f"The account by which {tool} was to ask its server is not connected for this agent any more.",
            details={"tool": tool} | ({"person": found.person, "url": account_url(found)} if found else {}),
        )


def check_answer_is_own(account_id: UUID, call: CallRequest, context: DecisionContext) -> None:
    """Of an answer that is asked for again: it was given to the same person, and the agent may use their account as for a new call."""
    person = find_person(call, context)
    found = ServerAccount.objects.select_related("server").filter(pk=account_id, member_id=person.member_id).first()
    if found is None:
        raise AccountOfAnother("The first call with this Idempotency-Key was for another person.")
    resource = found.server.resource  # connected anew it is another account
    now = find_open_account(person.member_id, tenant_id=context.tenant_id, resource=resource)
    serves = now is not None and now.serves(encode("agt", context.agent_id), vouched=person.vouched)
    if not serves or not is_member(person.member_id, tenant_id=context.tenant_id):
        raise AccountRequired(
            f"The account by which {context.tool} asked its server is not connected for this agent any more.",
            details={"tool": context.tool, "person": found.person, "url": account_url(now or found)},
        )
