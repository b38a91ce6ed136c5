"""Account calls: which calls by persons' accounts an agent's credential is shown.

Keys and programs of several persons act as one agent. What one of them fetched as a person is not the others' to read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db.models import Q

from access.models import ServerAccount

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from kernel.principal import Principal


def build_shown_filter(by: Principal, prefix: str = "") -> Q:
    """The calls that ``by`` is shown; ``prefix``: how the rows lead to theirs. People are shown all of their tenant's.

    A program is shown those by accounts of the person who has let it act as the agent. A key or a token is shown those that came by no
    program, and all those by accounts that the person lets this agent use.
    """
    if not by.agent_id:
        return Q()
    readable = ServerAccount.objects.readable_by(by).values("pk")
    shown = Q(**{f"{prefix}account_id": None}) | Q(**{f"{prefix}account_id__in": readable})
    if by.connection is not None:
        return shown
    own = Q(**{f"{prefix}connection_id": None})
    if by.key_id or by.token:  # and not the hub itself, which goes on with what a person has written in the playground
        own &= Q(**{f"{prefix}run_step__run__playground_side": None})
    return shown | own


def select_hidden_calls(by: Principal) -> QuerySet[Any]:
    """The calls of an agent that this credential of it is not shown."""
    calls = apps.get_model("invocations.Invocation")._base_manager.filter(tenant_id=by.tenant_id, agent_id=by.agent())
    return calls.filter(account_id__isnull=False).exclude(build_shown_filter(by))
