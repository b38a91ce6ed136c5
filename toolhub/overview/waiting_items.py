"""Waiting items: what needs a person who may decide it, each by its name and with the time at which it is too late."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from django.db.models import F
from django.urls import reverse
from django.utils.translation import gettext

from access.budgets.forms import DIMENSION_WORDS, SCOPE_WORDS
from access.budgets.selectors import filter_by_state, load_budget_statuses
from access.consents.services import select_decidable
from access.models import Budget, BudgetScope, Consent, ConsentState, Dimension, GrantRequest, RequestState
from invocations.approvals.failed_dry_runs import find_those_that_failed_dry
from invocations.call_outcomes import build_state_filter
from invocations.models import Invocation, State
from kernel.components.manifest_words import RISK
from registry.models import LONG_FIELDS, ToolVersion
from registry.reviews.services import select_reviewable

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from kernel.principal import Principal

SHOWN = 4  # of each kind; the others are behind "more"
UNREAD = [name for name in LONG_FIELDS if name != "changes"]
READ_AT_ONCE = 100  # of the consents, until enough are found that this person may decide on


@dataclass(frozen=True, slots=True)
class WaitingItem:
    """``about``: what tells it from others of its kind. ``until``: when it is too late; ``since``: how long it has waited. ``danger``:
    why it takes a second look.
    """

    name: str
    about: str
    url: str
    until: datetime | None = None
    since: datetime | None = None
    danger: str = ""


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """Those of one kind, ``more`` of them left out. ``url``: the list of all."""

    label: str
    icon: str
    url: str
    items: list[WaitingItem]
    more: bool


def list_waiting_groups(by: Principal, now: datetime) -> list[WaitingGroup]:
    """Of each kind that the person may decide."""
    kinds: list[tuple[str, str, str, str, Callable[[Principal], list[WaitingItem]]]] = [
        ("consents.decide", gettext("Requests for consent"), "user-check", reverse("approvals"), _consents),
        ("grants.give", gettext("Grants that were asked for"), "handshake", reverse("approvals"), _grant_requests),
        ("tools.review", gettext("Versions to review"), "git-compare", reverse("reviews"), _versions),
        (
            "invocations.resolve",
            gettext("Calls with an unknown outcome"),
            "circle-help",
            _unknown_url(),
            _unknown_calls,
        ),
        (
            "budgets.manage",
            gettext("Budgets nearly used up"),
            "timer",
            reverse("budgets") + "?state=nearly",
            partial(_budgets, now=now),
        ),
    ]
    groups = []
    for permission, label, icon, url, load in kinds:
        items = load(by) if by.may(permission) else []
        if items:
            groups.append(WaitingGroup(label, icon, url, items[:SHOWN], more=len(items) > SHOWN))
    return groups


def _unknown_url() -> str:
    return f"{reverse('invocations')}?outcome=outcome_unknown"


def _consents(by: Principal) -> list[WaitingItem]:
    rows = Consent.objects.visible_to(by).in_state(ConsentState.REQUESTED).select_related("agent")
    soonest = rows.order_by(F("expires_at").asc(nulls_last=True), "pk").iterator(chunk_size=READ_AT_ONCE)
    decidable = list(islice(select_decidable(soonest, by=by), SHOWN + 1))
    failed = find_those_that_failed_dry(decidable)
    return [
        WaitingItem(
            f"{row.agent.name} → {row.tool}",
            row.purpose,
            reverse("consent", args=[row.pk]),
            row.expires_at,
            row.created_at,
            gettext("Dry run failed") if row.pk in failed else "",
        )
        for row in decidable
    ]


def _grant_requests(by: Principal) -> list[WaitingItem]:
    rows = GrantRequest.objects.visible_to(by).filter(state=RequestState.WAITING).select_related("agent")
    return [
        WaitingItem(
            f"{row.agent.name} → {row.tools}",
            row.purpose,
            reverse("grant_request", args=[row.pk]),
            since=row.created_at,
        )
        for row in rows.order_by("pk")[: SHOWN + 1]
    ]


def _versions(by: Principal) -> list[WaitingItem]:
    rows = ToolVersion.objects.filter(tool__tenant_id=by.tenant_id).select_related("tool").defer(*UNREAD)
    return [
        WaitingItem(
            f"{row.tool.name} {row.version}",
            str(RISK[row.safety_class.lower()][2]),
            reverse("review", args=[row.pk]),
            since=row.submitted_at,
            danger=gettext("Can break callers") if row.is_breaking else "",
        )
        for row in islice(select_reviewable(rows.order_by("pk"), by=by), SHOWN + 1)
    ]


def _unknown_calls(by: Principal) -> list[WaitingItem]:
    unknown = build_state_filter(State.OUTCOME_UNKNOWN)
    rows = Invocation.objects.visible_to(by).filter(unknown, resolution="").select_related("agent")
    return [
        WaitingItem(
            f"{row.agent.name} → {row.tool}", row.wire_id, reverse("invocation", args=[row.pk]), since=row.created_at
        )
        for row in rows.order_by("-pk")[: SHOWN + 1]
    ]


def _budgets(by: Principal, *, now: datetime) -> list[WaitingItem]:
    """Places among calls that run at once come and go by themselves."""
    mine = Budget.objects.visible_to(by).exclude(dimension=Dimension.CONCURRENCY).select_related("agent", "grant")
    rows = filter_by_state(mine, "nearly", now)
    return [
        WaitingItem(
            f"{SCOPE_WORDS[BudgetScope(each.budget.scope)]} {each.line.label}".strip(),
            gettext("%(dimension)s: %(percent)d %% used")
            % {"dimension": DIMENSION_WORDS[Dimension(each.budget.dimension)], "percent": each.percent},
            reverse("budget", args=[each.budget.pk]),
        )
        for each in load_budget_statuses(list(rows[: SHOWN + 1]), now)
    ]
