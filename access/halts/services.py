"""Halts: who may stop calls at once, and whether a call is within reach of a halt.

A halt is thrown with a reason and lifted with a reason; both are facts. It counts with the next request in every process,
since preflight reads the rows each time; :func:`halt_problem` is what it makes of them.
"""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.utils import timezone

from access.models import Agent, Halt, Reach
from access.notifications.services import notify_channels
from access.problems import Halted
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.controls import HaltOrder
from kernel.database.tenancy import hub_wide
from kernel.ids import decode, encode
from kernel.problems import Conflict, Forbidden, SchemaInvalid, StateUnfit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager
    from typing import Protocol
    from uuid import UUID

    from kernel.principal import Principal

    class ThrownHalt(Protocol):
        """A row of a halt that is in force, wherever it was read."""

        @property
        def reach(self) -> str: ...
        @property
        def target(self) -> str: ...
        @property
        def reason(self) -> str: ...


TOOL_ID = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*){2}")
MAX_REASON = 500
# The widest first: what stops everything explains more than what stops one tool.
WIDEST_FIRST = (Reach.HUB, Reach.TENANT, Reach.AGENT, Reach.TOOL, Reach.VERSION)
WHAT = {
    Reach.HUB: "Every call of this hub is stopped",
    Reach.TENANT: "Every call of this tenant is stopped",
    Reach.AGENT: "Every call of this agent is stopped",
    Reach.TOOL: "Every call of {target} is stopped",
    Reach.VERSION: "Every call of this version of the tool is stopped",
}


def halt_problem(rows: Iterable[ThrownHalt]) -> Halted | None:
    """What a caller is told about the halts in whose reach a call is; None when there are none."""
    found = sorted(rows, key=lambda row: WIDEST_FIRST.index(Reach(row.reach)))
    if not found:
        return None
    widest = found[0]
    return Halted(
        f"{WHAT[Reach(widest.reach)].format(target=widest.target)}: {widest.reason}",
        details={"reach": str(widest.reach), "target": widest.target},
        remedy="Wait until the kill switch is lifted; an operator of the tenant can say when."
        if widest.reach != Reach.HUB
        else "Wait until the kill switch is lifted; only an owner of the hub can do that.",
    )


def halts_in_reach(
    *, tenant_id: UUID, publisher_id: UUID, agent_id: UUID | None, tool: str, version_id: UUID | None
) -> list[Halt]:
    """The halts that stop a call of this version of this tool by this agent.

    A tool or a version is stopped by the tenant that calls it, for itself, and by the one that publishes it, for everybody.
    """
    targets = _name_targets(agent_id=agent_id, tool=tool, version_id=version_id)
    rows = Halt.objects.filter(lifted_at=None, reach__in=targets, target__in=set(targets.values()))
    return select_in_reach(
        rows, tenant_id=tenant_id, publisher_id=publisher_id, agent_id=agent_id, tool=tool, version_id=version_id
    )


def select_in_reach(
    rows: Iterable[Halt],
    *,
    tenant_id: UUID,
    publisher_id: UUID | None,
    agent_id: UUID | None,
    tool: str,
    version_id: UUID | None,
) -> list[Halt]:
    """Those of them, which are in force, that stop this; ``tool`` is empty for what is about none."""
    targets = _name_targets(agent_id=agent_id, tool=tool, version_id=version_id)
    return [
        row
        for row in rows
        if row.target == targets.get(Reach(row.reach))
        and (
            row.tenant_id in (None, tenant_id)
            or (row.reach in (Reach.TOOL, Reach.VERSION) and row.tenant_id == publisher_id)
        )
    ]


def _name_targets(*, agent_id: UUID | None, tool: str, version_id: UUID | None) -> dict[Reach, str]:
    targets = {Reach.HUB: "", Reach.TENANT: ""}
    if tool:
        targets[Reach.TOOL] = tool
    if agent_id is not None:
        targets[Reach.AGENT] = encode("agt", agent_id)
    if version_id is not None:
        targets[Reach.VERSION] = encode("tvn", version_id)
    return targets


def find_halt_of_agent(by: Principal) -> Halted | None:
    """What stops every call of this agent, if something does."""
    whole = halts_in_reach(
        tenant_id=by.tenant_id, publisher_id=by.tenant_id, agent_id=by.agent_id, tool="", version_id=None
    )
    return halt_problem(whole)


def list_halts_in_force() -> list[Halt]:
    """Of all tenants, for what watches over all of a process."""
    with hub_wide():
        return list(Halt.objects.filter(lifted_at=None))


def check_not_halted(
    *, tenant_id: UUID, publisher_id: UUID, agent_id: UUID | None, tool: str, version_id: UUID | None
) -> None:
    problem = halt_problem(
        halts_in_reach(
            tenant_id=tenant_id, publisher_id=publisher_id, agent_id=agent_id, tool=tool, version_id=version_id
        )
    )
    if problem is not None:
        raise problem


def check_can_halt(reach: Reach, *, by: Principal) -> None:
    if reach is Reach.HUB and not by.may("hub.manage"):
        raise Forbidden(
            "Only an owner of the hub throws and lifts the kill switch of the whole hub.",
            remedy="Stop your tenant instead, or ask an owner of the hub.",
            details={"missing": "hub.manage"},
        )


def check_can_lift(halt: Halt, *, by: Principal) -> None:
    """People lift; an agent takes back only what it threw itself, unless that stops the agent itself."""
    check_can_halt(Reach(halt.reach), by=by)
    if by.agent_id is not None and (halt.thrown_by != by.id or halt.target == by.id):
        raise Forbidden(
            "People lift kill switches; an agent lifts only one that it threw itself, at something else.",
            remedy="Ask an operator of the tenant to lift it.",
        )


def _scope(reach: str) -> AbstractContextManager[None]:
    """The hub's own rows are written for the whole hub; PostgreSQL would refuse them to a tenant."""
    return hub_wide() if reach == Reach.HUB else nullcontext()


def checked_target(reach: Reach, target: str, *, by: Principal) -> str:
    """What the reach needs as its target, in the one form that preflight compares with."""
    target = target.strip()
    if reach in (Reach.HUB, Reach.TENANT):
        if target:
            raise SchemaInvalid.at("/target", f"The reach {reach} has no target.")
        return ""
    if reach is Reach.TOOL:
        if not TOOL_ID.fullmatch(target) or len(target) > 128:
            raise SchemaInvalid.at("/target", "Name one tool: group.package.name.")
        return target
    prefix = "agt" if reach is Reach.AGENT else "tvn"
    try:
        pk = decode(prefix, target)
    except ValueError as error:
        raise SchemaInvalid.at("/target", f"Name one {reach} by its id, {prefix}_….") from error
    if reach is Reach.AGENT and not Agent.objects.filter(pk=pk, tenant_id=by.tenant_id).exists():
        raise StateUnfit.at("/target", "There is no agent with this id here.")
    return encode(prefix, pk)


def _checked_reason(reason: str) -> str:
    if not reason.strip():
        raise SchemaInvalid.at("/reason", "Write why; the reason is kept as evidence, and callers are told it.")
    if len(reason.strip()) > MAX_REASON:
        raise SchemaInvalid.at("/reason", f"The reason has more than {MAX_REASON} characters.")
    return reason.strip()


def throw_halt(*, reach: Reach, reason: str, by: Principal, target: str = "") -> Halt:
    """Stop everything within ``reach`` at once: the next call is refused, in every process."""
    check_can_halt(reach, by=by)
    reason, target = _checked_reason(reason), checked_target(reach, target, by=by)
    try:
        with transaction.atomic():
            with _scope(reach):
                halt = Halt.objects.create(
                    tenant_id=None if reach is Reach.HUB else by.tenant_id,
                    reach=reach,
                    target=target,
                    reason=reason,
                    thrown_by=by.id,
                )
            evidence.record(
                kind=Kind.HALT_THROWN,
                subject=halt.wire_id,
                actor=by,
                tool=target if reach is Reach.TOOL else "",
                data=HaltOrder(reach=str(reach), target=target, reason=reason),
            )
            said = {"reach": str(reach), "url": "/halts"}
            notify_channels("halt.thrown", subject=halt.wire_id, body=said, tenant_id=by.tenant_id)
    except IntegrityError as error:
        raise Conflict("This kill switch is thrown already.", remedy="Lift it first to throw it anew.") from error
    return halt


@transaction.atomic
def lift_halt(*, halt_id: UUID, reason: str, by: Principal) -> Halt:
    """Let calls through again."""
    seen = Halt.objects.visible_to(by).get(pk=halt_id)
    check_can_lift(seen, by=by)
    reason = _checked_reason(reason)
    with _scope(seen.reach):
        halt = Halt.objects.visible_to(by).select_for_update().get(pk=halt_id)
        if halt.lifted_at is not None:
            raise Conflict("This kill switch was lifted already.")
        halt.lifted_at, halt.lifted_by = timezone.now(), by.id
        halt.save(update_fields=["lifted_at", "lifted_by"])
    evidence.record(
        kind=Kind.HALT_LIFTED,
        subject=halt.wire_id,
        actor=by,
        tool=halt.target if halt.reach == Reach.TOOL else "",
        data=HaltOrder(reach=halt.reach, target=halt.target, reason=reason),
    )
    return halt
