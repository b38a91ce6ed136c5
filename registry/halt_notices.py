"""Halt notices: what people of a tenant are told is stopped, wherever they are in the console.

One question to the database finds what is in force: for the hub, for the tenant, and by publishers for the tools that the tenant has
installed from them. Names of agents and versions are read only where one is stopped, and so is which of the versions that a publisher
has stopped are installed. However many tools and versions are stopped, what stops more than that is always among the notices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from django.db.models import Exists, OuterRef, Q
from django.urls import reverse
from django.utils.translation import gettext

from access.halts.services import WIDEST_FIRST, select_in_reach
from access.models import Agent, Halt, Reach
from kernel.ids import decode, encode
from registry.discovery.visibility import THROWN
from registry.models import Installation, InstallationState, Tool, ToolVersion

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.http.console import ConsoleRequest
    from kernel.principal import Principal

NARROW = (Reach.TOOL, Reach.VERSION)
MOST = 200  # narrow ones, of the tenant's own and of each kind of its publishers; who has thrown more has stopped it tool by tool


@dataclass(frozen=True, slots=True)
class HaltNotice:
    """``name``: of the tool, version or agent, and ``url`` its page, for who may open it; both empty for what stops everything.

    No page has a tool that has been stopped ahead, or is here no longer.
    """

    halt: Halt
    name: str
    url: str
    may_lift: bool

    @property
    def sentence(self) -> str:
        """What is stopped. A name stands behind it."""
        return {
            Reach.HUB: gettext("All calls of this hub are stopped"),
            Reach.TENANT: gettext("All calls of this tenant are stopped"),
            Reach.AGENT: gettext("All calls of one agent are stopped:"),
            Reach.TOOL: gettext("One tool is stopped:"),
            Reach.VERSION: gettext("One version of a tool is stopped:"),
        }[Reach(self.halt.reach)]


class HaltNotices:
    """Those in force, the widest first; ``stop_…`` answers for one thing, without another question to the database."""

    def __init__(self, by: Principal) -> None:
        self._tenant_id = by.tenant_id
        self._halts: list[Halt] = []
        self.rows: list[HaltNotice] = []
        if halts := _load_halts(by):
            names = HaltNames(halts, by)
            self._halts = names.concerned
            self.rows = [
                HaltNotice(each, *names.find_name_and_url(each), may_lift=_may_lift(each, by)) for each in self._halts
            ]

    def __len__(self) -> int:
        return len(self.rows)

    def stop_tool(self, tool: Tool) -> bool:
        """Whether calls of it, in its current version, are refused."""
        return self._reach(tool.tenant_id, tool=tool.name, version_id=tool.current_id)

    def stop_installation(self, installation: Installation) -> bool:
        return self._reach(installation.tool.tenant_id, tool=installation.name, version_id=installation.version_id)

    def stop_version(self, version: ToolVersion) -> bool:
        return self._reach(version.tool.tenant_id, tool=version.tool.name, version_id=version.pk)

    def stop_agent(self, agent: Agent) -> bool:
        return self._reach(agent.tenant_id, agent_id=agent.pk)

    def _reach(
        self, publisher_id: UUID, *, tool: str = "", version_id: UUID | None = None, agent_id: UUID | None = None
    ) -> bool:
        found = select_in_reach(
            self._halts,
            tenant_id=self._tenant_id,
            publisher_id=publisher_id,
            agent_id=agent_id,
            tool=tool,
            version_id=version_id,
        )
        return bool(found)


def read_halt_notices(request: ConsoleRequest) -> HaltNotices:
    """Those for whoever asks; read once, wherever a page shows them."""
    kept: dict[str, object] = request.__dict__
    if "_halt_notices" not in kept:
        kept["_halt_notices"] = HaltNotices(request.principal)
    return cast("HaltNotices", kept["_halt_notices"])


def _load_halts(by: Principal) -> list[Halt]:
    if THROWN.first() is None:  # as nearly always: each page asks, and what follows would take a seventh of it
        return []
    in_force = Halt.objects.filter(lifted_at=None)
    mine = Q(tenant_id=by.tenant_id) | Q(tenant=None)
    installed = Installation.objects.visible_to(by).exclude(state=InstallationState.REMOVED)
    of_publisher = installed.filter(tool__tenant_id=OuterRef("tenant_id"))
    of_others = in_force.exclude(mine)
    own = in_force.filter(mine, reach__in=NARROW).order_by("reach", "-pk")
    tools = of_others.filter(Exists(of_publisher.filter(name=OuterRef("target"))), reach=Reach.TOOL).order_by("-pk")
    # Only whether there is any: a halt names a version by its wire id, which is no column to join with.
    versions = of_others.filter(Exists(of_publisher), reach=Reach.VERSION).order_by("-pk")
    narrow = Q()
    for found, most in ((own, MOST), (tools, MOST), (versions, 1)):
        narrow |= Q(pk__in=found.values("pk")[:most])
    rows = list(in_force.filter(mine & ~Q(reach__in=NARROW) | narrow).order_by("-pk"))
    publishers = {row.tenant_id for row in rows if row.reach == Reach.VERSION} - {by.tenant_id}
    if publishers:
        rows = [row for row in rows if row.reach != Reach.VERSION or row.tenant_id == by.tenant_id]
        theirs = installed.exclude(tool__tenant_id=by.tenant_id).exclude(version=None).values_list("version", flat=True)
        rows += versions.filter(target__in=[encode("tvn", pk) for pk in theirs])[:MOST]
    return sorted(rows, key=lambda halt: WIDEST_FIRST.index(Reach(halt.reach)))


def _may_lift(halt: Halt, by: Principal) -> bool:
    """As :func:`access.halts.services.check_can_lift` has it for people; what a publisher has stopped is the publisher's to lift."""
    return by.may("halts.throw") and (
        halt.tenant_id == by.tenant_id or (halt.tenant_id is None and by.may("hub.manage"))
    )


class HaltNames:
    """What halts name by ids: read at once, of each kind only where one is stopped."""

    def __init__(self, halts: list[Halt], by: Principal) -> None:
        self._by = by
        named = {reach: [each.target for each in halts if each.reach == reach] for reach in Reach}
        tools, versions, agents = named[Reach.TOOL], named[Reach.VERSION], named[Reach.AGENT]
        self._own_tools = set(
            Tool.objects.visible_to(by).filter(name__in=tools).values_list("name", flat=True) if tools else ()
        )
        self._installed_tools = set(
            Installation.objects.visible_to(by).filter(name__in=tools).values_list("name", flat=True) if tools else ()
        )
        found = ToolVersion.objects.filter(pk__in=[decode("tvn", each) for each in versions]).select_related("tool")
        self._versions = {row.wire_id: row for row in found} if versions else {}
        of_others = [row.pk for row in self._versions.values() if row.tool.tenant_id != by.tenant_id]
        installed = Installation.objects.visible_to(by).exclude(state=InstallationState.REMOVED)
        self._installed = set(
            installed.filter(version__in=of_others).values_list("version", flat=True) if of_others else ()
        )
        rows = Agent.objects.filter(pk__in=[decode("agt", each) for each in agents], tenant_id=by.tenant_id)
        self._agents = {row.wire_id: row for row in rows} if agents else {}
        self.concerned = [each for each in halts if self._concerns(each)]

    def _concerns(self, halt: Halt) -> bool:
        """A publisher's halt of a version does where that version is installed."""
        if halt.reach != Reach.VERSION or halt.tenant_id == self._by.tenant_id:
            return True
        version = self._versions.get(halt.target)
        return version is not None and version.tool.tenant_id == halt.tenant_id and version.pk in self._installed

    def find_name_and_url(self, halt: Halt) -> tuple[str, str]:
        see_tools, see_agents = self._by.may("tools.view"), self._by.may("agents.view")
        match Reach(halt.reach):
            case Reach.TOOL:
                page = "tool" if halt.target in self._own_tools else "installation"
                is_here = halt.target in self._own_tools | self._installed_tools
                return halt.target, reverse(page, args=[halt.target]) if see_tools and is_here else ""
            case Reach.VERSION if version := self._versions.get(halt.target):
                name, own = f"{version.tool.name} {version.version}", version.tool.tenant_id == self._by.tenant_id
                return name, reverse("version", args=[version.pk]) if own and see_tools else ""
            case Reach.AGENT if agent := self._agents.get(halt.target):
                return agent.name, reverse("agent", args=[agent.pk]) if see_agents else ""
        return halt.target, ""
