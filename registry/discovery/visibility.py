"""Visibility: the tools shown to whoever did not ask for others.

Those that work, that are set up, that nothing stops and that are not deprecated: in every list that callers and their models see.
Deprecated tools are found by asking for their state, and by their name. :func:`shown_to` says it to the database, for lists of any
length (REST), and :func:`filter_ready` of a page what no column says; :func:`check_shown` and
:func:`registry.tools.callability.check_set_up` say both of one tool, and what keeps it back (dialects, MCP). A test holds each list
against the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from access.models import Halt, Reach
from kernel.database.rows import PreparedQuery
from kernel.ids import decode
from registry.installations.setup import missing_setup
from registry.models import Installation, InstallationState, Secret, ToolState, ToolVersion, VersionState
from registry.problems import ToolNotEnabled
from registry.tools.callability import check_offered
from registry.tools.deprecation import context_retirement
from unitools.deprecations import find_tool_deprecation

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from django.db.models import QuerySet

    from kernel.principal import Principal
    from registry.decision_context import DecisionContext
    from unitools.manifest import Manifest

NOTHING = Q(pk__in=[])
EVERYTHING = ~NOTHING
THROWN = PreparedQuery(lambda: Halt.objects.filter(lifted_at=None).only("pk")[:1])  # of all that are thrown, any


def in_order(*, tool: str, version: str, state: ToolState = ToolState.ENABLED) -> Q:
    """Tools that their publisher keeps enabled (or in ``state``), with a version that was approved and not taken back.

    ``tool`` and ``version``: the lookups that lead to them, the first one with ``__`` at its end or empty.
    """
    return Q(
        **{
            f"{tool}state": state,
            f"{version}__review_state": VersionState.APPROVED,
            f"{version}__yanked_at": None,
        }
    )


def version_halts(*, publishers: QuerySet[Any], own: UUID | None = None) -> QuerySet[Halt]:
    """Thrown kill switches of one version. ``publishers``: whose tools these may be; ``own``: a tenant that throws some for itself."""
    whose = Q(tenant_id=own) | Q(tenant_id__in=publishers)
    return Halt.objects.filter(whose, reach=Reach.VERSION, lifted_at=None)


def halted_filter(*, tool: str, version: str, versions: Iterable[Halt], own: UUID | None = None) -> Q:
    """In reach of a kill switch of one tool or version: of the tool's publisher, or of the tenant ``own``, for itself.

    ``tool`` and ``version``: as for :func:`in_order`. ``versions``: :func:`version_halts`. The database looks each tool up among
    what is thrown, however much that is.
    """
    whose = Q(tenant_id=own) | Q(tenant_id=OuterRef(f"{tool}tenant_id"))
    tools = Halt.objects.filter(whose, lifted_at=None, reach=Reach.TOOL, target=OuterRef(f"{tool}name"))
    named = {(halt.tenant_id, decode("tvn", halt.target)) for halt in versions}
    of = dict(ToolVersion.objects.filter(pk__in={pk for _, pk in named}).values_list("pk", "tool__tenant_id"))
    return Exists(tools) | Q(**{f"{version}_id__in": [pk for owner, pk in named if owner in (own, of.get(pk))]})


def _stopped(by: Principal) -> Q:
    """Installations in reach of a kill switch that is thrown: the hub's, the tenant's, or the publisher's for its tool."""
    if THROWN.first() is None:
        return NOTHING  # as nearly always; what follows would cost as much as the page
    everything = Q(reach__in=(Reach.HUB, Reach.TENANT)) | Q(reach=Reach.AGENT, target=by.id)
    publishers = Installation.objects.visible_to(by).values("tool__tenant_id")
    versions = version_halts(publishers=publishers, own=by.tenant_id)
    thrown = Halt.objects.visible_to(by).filter(everything, lifted_at=None) | versions
    found = list(thrown.only("tenant_id", "reach", "target"))
    if any(halt.reach != Reach.VERSION for halt in found):
        return EVERYTHING
    return halted_filter(tool="tool__", version="version", versions=found, own=by.tenant_id)


def shown_to(by: Principal, *, state: ToolState = ToolState.ENABLED) -> Q:
    """Of the tenant's installations: those that work, and that nothing stops; of deprecated ones until their sunset."""
    works = Q(state=InstallationState.ENABLED) & in_order(tool="tool__", version="version", state=state)
    if state == ToolState.DEPRECATED:
        works &= Q(tool__sunset_on=None) | Q(tool__sunset_on__gte=timezone.now().date())
    return works & ~_stopped(by)


def filter_ready(rows: Iterable[Installation], manifests: dict[UUID, Manifest], *, by: Principal) -> list[Installation]:
    """Those whose version has the settings and secrets that it needs, and announced no end that has come. It is asked of a page."""
    today = timezone.now().date()
    known = [(row, manifests[row.version_id]) for row in rows if row.version_id]
    there = [(row, manifest) for row, manifest in known if not find_tool_deprecation(manifest, today=today)]
    present: set[str] = set()
    if any(manifest.secrets for _, manifest in there):
        present.update(Secret.objects.filter(tenant_id=by.tenant_id).values_list("name", flat=True))
    return [
        row
        for row, manifest in there
        if not missing_setup(manifest, config_digest=row.config_digest, secrets=row.secrets, present=present)
    ]


def check_shown(decision_context: DecisionContext) -> UUID:
    """The version that a call would get now; raises what keeps the tool back from who did not ask for it."""
    version_id = check_offered(decision_context)
    if retirement := context_retirement(decision_context):
        raise ToolNotEnabled(retirement.sentence(), remedy="Until then it can be called by its id.")
    return version_id
