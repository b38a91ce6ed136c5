"""Version impacts: who calls a tool now, and which of their calls another version would not take.

The newest calls of the last days are held against the new input schema, from what evidence keeps of their arguments. No value leaves
here, nor a name that only the arguments have: a finding says which call, where, and what the schema asks for there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.db.models import Count, Exists, OuterRef
from django.utils import timezone

from access.redaction import masked_view
from evidence import services as evidence
from evidence.models import Snapshot, SnapshotKind
from evidence.problems import KeyUnavailable, ValuesErased
from invocations.decide.input_validation import collect_findings
from invocations.models import Invocation, State
from invocations.replays.services import TRIED_WITHIN
from kernel.database.tenancy import hub_wide
from kernel.ids import lowest_id
from registry.models import Installation, InstallationState
from registry.versions.compiler import compiled_version

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from kernel.principal import Principal
    from registry.models import ToolVersion

DAYS = 7
MAX_CALLS = 200  # that are held against the schema
MAX_AGENTS = 20
MAX_SHOWN = 20
MAX_COUNTED = 100_000
MAX_TRIABLE = 5
MAX_LOOKED_AT = 2_000  # to find those: each view of a review asks, and a million that were denied are not gone through
KEPT_S = 600


@dataclass(frozen=True, slots=True)
class CallingAgent:
    """Somebody whose calls would go to the version."""

    id: UUID
    name: str
    calls: int


@dataclass(frozen=True, slots=True)
class RefusedCall:
    """A call that the new schema would not take. ``findings``: ``{pointer, message}``."""

    call: Invocation
    findings: list[dict[str, str]]


@dataclass(slots=True)
class VersionImpact:
    """What becomes of the callers of a tool; ``others``: in how many other tenants it is installed."""

    since: datetime
    counted_at: datetime
    agents: list[CallingAgent] = field(default_factory=list)  # those with the most calls
    agent_count: int = 0
    calls: int = 0
    examined: int = 0  # of the newest ones
    not_kept: int = 0  # erased, or kept no longer
    refused: int = 0
    shown: list[RefusedCall] = field(default_factory=list)
    others: int = 0

    @property
    def more_agents(self) -> int:
        return self.agent_count - len(self.agents)

    @property
    def per_day(self) -> int:
        return max(1, round(self.calls / DAYS)) if self.calls else 0

    @property
    def is_counted_whole(self) -> bool:
        return self.calls < MAX_COUNTED

    @property
    def refused_agents(self) -> list[str]:
        """Whose calls are among those that would be refused and are shown."""
        return sorted({each.call.agent.name for each in self.shown})


def load_version_impact(version: ToolVersion, *, by: Principal) -> VersionImpact:
    """Of calls that were let through: what was refused already loses nothing."""
    now = timezone.now()
    since = now - timedelta(days=DAYS)
    rows = Invocation.objects.visible_to(by).filter(tool=version.tool.name, pk__gte=lowest_id(since))
    rows = rows.exclude(state__in=[State.DENIED, State.HELD]).order_by("-pk")
    impact = VersionImpact(since, now, others=_count_other_tenants(version, by=by))
    newest = rows.values("pk")[:MAX_COUNTED]
    counted = Invocation.objects.filter(pk__in=newest).values("agent_id", "agent__name").annotate(n=Count("pk"))
    per_agent = [CallingAgent(row["agent_id"], row["agent__name"], row["n"]) for row in counted]
    impact.calls = sum(agent.calls for agent in per_agent)
    impact.agent_count = len(per_agent)
    impact.agents = sorted(per_agent, key=lambda agent: (-agent.calls, agent.name))[:MAX_AGENTS]
    _hold_against_schema(impact, list(rows.select_related("agent")[:MAX_CALLS]), version, by=by)
    return impact


def list_triable_calls(version: ToolVersion, *, by: Principal) -> list[Invocation]:
    """The newest calls of the last days that ran to an end, of which the arguments are kept: with each the version can be tried.

    Those among the newest :data:`MAX_LOOKED_AT` calls of the tool.
    """
    newest = Invocation.objects.visible_to(by).filter(
        tool=version.tool.name, pk__gte=lowest_id(timezone.now() - TRIED_WITHIN)
    )
    rows = Invocation.objects.filter(pk__in=newest.order_by("-pk").values("pk")[:MAX_LOOKED_AT])
    kept = Snapshot.objects.filter(
        tenant_id=by.tenant_id, kind=SnapshotKind.INPUT, invocation_id=OuterRef("pk"), subject_key__destroyed_at=None
    )
    ran = rows.filter(
        Exists(kept), state__in=[State.SUCCEEDED, State.FAILED, State.TIMED_OUT], version__tool=version.tool_id
    )
    return list(ran.select_related("agent", "version").order_by("-pk")[:MAX_TRIABLE])


def recall_version_impact(version: ToolVersion, *, by: Principal) -> VersionImpact:
    """What :func:`load_version_impact` has found within the last minutes, while the version was in the state that it is in; else it is
    counted now. A page is opened again and again while somebody reviews, and counting looks at up to 100,000 calls.
    """
    key = f"version-impact:{by.tenant_id}:{version.pk}:{version.review_state}"
    kept: tuple[VersionImpact, list[tuple[UUID, list[dict[str, str]]]]] | None = cache.get(key)
    if kept is None:
        impact = load_version_impact(version, by=by)
        rows = [(each.call.pk, each.findings) for each in impact.shown]
        cache.set(key, (replace(impact, shown=[]), rows), KEPT_S)
        return impact
    impact, rows = kept
    calls = Invocation.objects.visible_to(by).select_related("agent").in_bulk([pk for pk, _ in rows])
    return replace(impact, shown=[RefusedCall(calls[pk], findings) for pk, findings in rows if pk in calls])


def _count_other_tenants(version: ToolVersion, *, by: Principal) -> int:
    with hub_wide():
        rows = Installation.objects.filter(tool=version.tool_id).exclude(state=InstallationState.REMOVED)
        return rows.exclude(tenant_id=by.tenant_id).count()


def _hold_against_schema(
    impact: VersionImpact, calls: list[Invocation], version: ToolVersion, *, by: Principal
) -> None:
    validator = compiled_version(version.pk).input_validator
    kept = Snapshot.objects.filter(
        tenant_id=by.tenant_id, kind=SnapshotKind.INPUT, invocation_id__in=[call.pk for call in calls]
    )
    inputs = {snapshot.invocation_id: snapshot for snapshot in kept}
    for call in calls:
        arguments = _open_arguments(inputs.get(call.pk))
        if arguments is None:
            impact.not_kept += 1
            continue
        impact.examined += 1
        if validator.is_valid(arguments):
            continue
        impact.refused += 1
        if len(impact.shown) < MAX_SHOWN:
            findings = [
                {"pointer": str(masked_view(each["pointer"])), "message": each["message"]}
                for each in collect_findings(validator, arguments, to_sender=False)[:3]
            ]
            impact.shown.append(RefusedCall(call, findings))


def _open_arguments(snapshot: Snapshot | None) -> Any:
    """None where nothing is kept. The hub looks by itself and shows nobody a value, so that no reading is recorded."""
    if snapshot is None:
        return None
    try:
        return evidence.open_values(snapshot).get("arguments")
    except (KeyUnavailable, ValuesErased):
        return None
