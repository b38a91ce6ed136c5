"""Sidebar: the jobs that a person may do, with how much waits for them, and where each role begins."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.urls import reverse

from access.consents.services import select_decidable
from access.models import Consent, ConsentState, GrantRequest, Membership, RequestState
from access.roles import Role
from kernel.database.rows import PreparedQuery, fetch_together
from kernel.http.navigation import PLACES, Job, Section
from registry.models import ToolVersion, VersionState
from registry.reviews.services import select_reviewable
from toolhub.addresses import collect_navigation

if TYPE_CHECKING:
    from collections.abc import Sized

    from kernel.http.console import ConsoleRequest
    from kernel.principal import Principal

# The first of a person's roles decides.
START: dict[str, Job] = {
    Role.OWNER: Job.OVERVIEW,
    Role.OPERATOR: Job.OVERVIEW,
    Role.REVIEWER: Job.REVIEWS,
    Role.AUDITOR: Job.EVIDENCE,
    Role.DEVELOPER: Job.BUILD,
}
COUNTED = 100  # a larger number says nothing more
# Any of what may wait in a tenant. Each page asks, mostly nothing does, and to count it would take a seventh of the page.
CONSENTS, REQUESTS, SUBMISSIONS = (
    PreparedQuery(make, tenant_id=UUID)
    for make in (
        lambda tenant_id: Consent.objects.filter(tenant_id=tenant_id, state=ConsentState.REQUESTED).only("pk")[:1],
        lambda tenant_id: GrantRequest.objects.filter(tenant_id=tenant_id, state=RequestState.WAITING).only("pk")[:1],
        lambda tenant_id: ToolVersion.objects.filter(
            tool__tenant_id=tenant_id, review_state=VersionState.SUBMITTED
        ).only("pk")[:1],
    )
)

MEMBERSHIPS = PreparedQuery(
    lambda tenant_id, user: Membership.objects.filter(tenant_id=tenant_id, user=user), tenant_id=UUID, user=int
)


def count_waiting(by: Principal) -> dict[str, int]:
    """How many things wait for this person's decision, by the key of the page that lists them. What they may not decide, such as
    what they asked for or submitted themselves, waits for somebody else.
    """
    approvals = reviews = 0
    where = {"tenant_id": by.tenant_id}
    consents, requests, submissions = fetch_together((CONSENTS, where), (REQUESTS, where), (SUBMISSIONS, where))
    if consents and by.may("consents.decide"):
        waiting = Consent.objects.visible_to(by).in_state(ConsentState.REQUESTED).order_by("pk")
        decidable = select_decidable(waiting.iterator(chunk_size=COUNTED), by=by)
        approvals += sum(1 for _ in islice(decidable, COUNTED))
    if requests and by.may("grants.give"):
        approvals += GrantRequest.objects.visible_to(by).filter(state=RequestState.WAITING)[:COUNTED].count()
    if submissions and by.may("tools.review"):
        submitted = ToolVersion.objects.filter(tool__tenant_id=by.tenant_id).only("submitted_by", "drafted_by")
        reviews = sum(1 for _ in islice(select_reviewable(submitted, by=by), COUNTED))
    return {"approvals": approvals, "reviews": reviews}


def build_sidebar(request: ConsoleRequest, stops: Sized) -> list[dict[str, Any]]:
    """Groups of {key, label, icon, url, count, counted, stopped, pages}; ``pages``: {key, label, url, count, counted, stopped}, the
    tabs of each of them. ``count`` is None where nothing is counted; ``counted``: its name among :func:`list_counts`. ``stopped``:
    the count is of what is stopped, not of what waits. What a person may not see is left out, and so is a job without a page.
    """
    counts = count_waiting(request.principal) | {"halts": len(stops)}
    groups: dict[Section, list[dict[str, Any]]] = {}
    for job, entries in collect_navigation():
        pages = [
            {
                "key": entry.key,
                "label": entry.label,
                "url": reverse(entry.address),
                "count": counts.get(entry.key),
                "counted": entry.key,
                "stopped": entry.key == "halts",
            }
            for entry in entries
            if request.principal.may(entry.permission)
        ]
        if pages:
            section, icon = PLACES[job]
            groups.setdefault(section, []).append(
                {
                    "key": str(job),
                    "label": job.label,
                    "icon": icon,
                    "url": pages[0]["url"],
                    "count": sum(found)
                    if (found := [page["count"] for page in pages if page["count"] is not None])
                    else None,
                    "counted": f"job.{job}",
                    "stopped": any(page["stopped"] for page in pages),
                    "pages": pages,
                }
            )
    return [{"label": section.label, "items": groups[section]} for section in Section if section in groups]


def list_counts(request: ConsoleRequest, stops: Sized) -> dict[str, int]:
    """What the sidebar counts, by name: of pages and of jobs."""
    items = [item for group in build_sidebar(request, stops) for item in group["items"]]
    return {
        each["counted"]: each["count"] for item in items for each in (item, *item["pages"]) if each["count"] is not None
    }


def list_roles(request: ConsoleRequest) -> list[Role]:
    """Of this person in this tenant, those that allow most first."""
    assert request.tenant is not None
    held = {row.role for row in MEMBERSHIPS.all(tenant_id=request.tenant.pk, user=request.user.pk)}
    return [role for role in Role if role in held]


def find_start(request: ConsoleRequest) -> str:
    """The address at which this person begins: the first page of their role's job."""
    roles = list_roles(request)
    job = START[roles[0]] if roles else Job.OVERVIEW
    entries = dict(collect_navigation())[job]
    return next((reverse(each.address) for each in entries if request.principal.may(each.permission)), "/")
