"""Discovery selectors: the tools that an agent finds.

Those that are installed in its tenant: the tenant's index narrows first, so the size of the hub does not matter, and all
filters are on columns that were copied from the immutable manifest. Manifests themselves are read once a process.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from access.grants.matcher import GrantValue, covers_tool
from access.models import Grant
from kernel.database.connections import database_time
from kernel.http.pagination import Page, fetch_page
from kernel.problems import SchemaInvalid
from registry.discovery.visibility import filter_ready, shown_to
from registry.models import LONG_FIELDS, Installation, InstallationState, ToolKind, ToolState, ToolVersion
from registry.tools.callability import why_not_installed
from unitools.expressions import DOMAINS, EFFECTS, SAFETY_CLASSES, build_subject
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from kernel.principal import Principal
    from registry.models import InstallationQuerySet

FILTERS = ("q", "group", "tag", "safety_class", "side_effect", "capability", "state")
CALLABLE = ("", ToolState.ENABLED, ToolState.DEPRECATED)  # the states of tools that a call could get an answer of
MAX_WORDS = 8
MAX_MANIFESTS = 4096

_manifests: OrderedDict[UUID, Manifest] = OrderedDict()
_lock = Lock()


def load_manifests(version_ids: Iterable[UUID]) -> dict[UUID, Manifest]:
    """Manifests never change: what was decoded once is kept. The missing ones are read with one query."""
    wanted = set(version_ids)
    found = {id: manifest for id in wanted if (manifest := _manifests.get(id))}
    missing = wanted - found.keys()
    if missing:
        read = ToolVersion.objects.filter(pk__in=missing).values_list("pk", "manifest")
        new = {id: Manifest(document) for id, document in read}
        with _lock:
            _manifests.update(new)
            while len(_manifests) > MAX_MANIFESTS:
                _manifests.popitem(last=False)
        found |= new
    return found


def no_such_state(state: str) -> SchemaInvalid:
    return SchemaInvalid.at("/state", f"There is no state {state[:40]}. The states are {', '.join(ToolState.values)}.")


def _in_state(state: str) -> Q:
    """What callers would be told; a pause by either side is a pause."""
    working = Q(state=InstallationState.ENABLED)
    match state:
        case ToolState.ENABLED:
            return working & Q(tool__state=ToolState.ENABLED)
        case ToolState.DEPRECATED:
            return working & Q(tool__state=ToolState.DEPRECATED)
        case ToolState.PAUSED:
            return Q(state=InstallationState.PAUSED) | Q(tool__state=ToolState.PAUSED)
        case ToolState.REGISTERED:
            return Q(tool__state=ToolState.REGISTERED)
        case _:
            raise no_such_state(state)


def split_query(q: str) -> list[str]:
    return q.lower().split()[:MAX_WORDS]


def build_filters(
    version: str, *, group: str = "", tag: str = "", safety_class: str = "", side_effect: str = "", capability: str = ""
) -> Q:
    """The filters that lists of tools and of installations share. ``version``: how the version is called there."""
    for name, value, known in (
        ("safety_class", safety_class, SAFETY_CLASSES),
        ("side_effect", side_effect, EFFECTS),
        ("capability", capability, DOMAINS),
    ):
        if value and value not in known:
            raise SchemaInvalid.at(f"/{name}", f"There is no {name} {value[:40]}. There are {', '.join(known)}.")
    found = Q(name__startswith=f"{group}.") if group else Q()
    asked = {
        "tags__contains": f" {tag} " if tag else "",
        "safety_class": safety_class,
        "side_effect": side_effect,
        "domains__contains": f" {capability} " if capability else "",
    }
    return found & Q(**{f"{version}__{field}": value for field, value in asked.items() if value})


def find_installed(
    *, by: Principal, q: str = "", state: str = "", kind: ToolKind = ToolKind.TOOL, **filters: str
) -> InstallationQuerySet:
    """The tenant's instances under all given filters. ``q``: every word of it is in id, display name, description or tags."""
    rows = (
        Installation.objects.visible_to(by)
        .of_kind(kind)
        .exclude(state=InstallationState.REMOVED)
        .select_related("tool", "version")
        .defer(*(f"version__{field}" for field in LONG_FIELDS), "config")
    )
    for word in split_query(q):
        rows = rows.filter(version__search__contains=word)
    rows = rows.filter(build_filters("version", **filters))
    if state:
        rows = rows.filter(_in_state(state))
    return rows


def find_shown(*, by: Principal, state: str = "", **filters: str) -> InstallationQuerySet:
    """Those in the state that was asked for, `enabled` without one. Of what can be called,
    :mod:`registry.discovery.visibility` says what is
    shown; what cannot be called anyway is found as it is."""
    rows = find_installed(by=by, state=state, kind=ToolKind.TOOL, **filters)
    return rows.filter(shown_to(by, state=ToolState(state or ToolState.ENABLED))) if state in CALLABLE else rows


def get_installed(name: str, *, by: Principal) -> Installation:
    """The tenant's instance of a tool; a problem that says whether it could be installed when there is none."""
    found = find_installed(by=by).filter(name=name).first()
    if found is None:
        raise why_not_installed(name, tenant_id=by.tenant_id)
    return found


def load_shown_page(
    *, by: Principal, after: str, limit: int, state: str = "", **filters: str
) -> tuple[Page[Installation], dict[UUID, Manifest]]:
    """One page of :func:`find_shown`, newest first, with the manifests of its versions.

    What only a manifest tells is asked once the page is read, so a page may hold fewer than others, or none, and yet go on.
    """
    page = fetch_page(find_shown(by=by, state=state, **filters), prefix="ins", after=after, limit=limit)
    manifests = load_manifests(row.version_id for row in page.rows if row.version_id)
    return (replace(page, rows=filter_ready(page.rows, manifests, by=by)) if state in CALLABLE else page), manifests


def filter_granted(by: Principal, rows: Iterable[Installation], manifests: dict[UUID, Manifest]) -> list[Installation]:
    """Those that a grant of the agent names."""
    now = database_time()
    grants = [
        GrantValue(grant.pk, grant.tools, grant.agent_id)
        for grant in Grant.objects.visible_to(by)
        .in_force(now)
        .filter(Q(agent_id=by.agent()) | Q(agent_id=None))
        .only("tools", "agent_id")
    ]
    return [
        row
        for row in rows
        if row.version_id and any(covers_tool(grant, build_subject(manifests[row.version_id])) for grant in grants)
    ]


def build_model_view(manifest: Manifest) -> dict[str, Any]:
    """What a model gets to see of a tool (TOOLS-12): nothing of scopes, consent or capabilities."""
    return {"name": manifest.id, "description": manifest.description, "input_schema": manifest.input_schema}
