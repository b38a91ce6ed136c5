"""Connection rules: how long connections and their tokens last in a tenant, and how lately whoever opens one has signed in.

The hub's own settings are the widest; a tenant says less. What is in force is asked when a connection is opened, when a code is
redeemed and when tokens are refreshed, so that a change reaches those that are open.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction

from access.models import ConnectionRule
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.connections import ConnectionRuleTerms
from kernel.database.connections import database_time
from kernel.ids import encode
from kernel.problems import SchemaInvalid, StateUnfit

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from access.models import Connection
    from kernel.principal import Principal

# In any hub; what a tenant may say in this one is in list_limits.
MOST_DAYS = 3650
LEAST_TOKEN_MINUTES = 10  # some programs fetch a newer token only when a person clicks
MOST_TOKEN_MINUTES = 24 * 60
LONGEST_SIGN_IN_MINUTES = 7 * 24 * 60
ANYWHERE = {
    "days": (1, MOST_DAYS),
    "idle_days": (1, MOST_DAYS),
    "token_minutes": (LEAST_TOKEN_MINUTES, MOST_TOKEN_MINUTES),
    "sign_in_minutes": (1, LONGEST_SIGN_IN_MINUTES),
}


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """``sign_in``: how long ago, at most, has somebody signed in who lets a program use what changes things; None: any time."""

    lasts: timedelta
    idle: timedelta
    token: timedelta
    sign_in: timedelta | None = None

    @property
    def days(self) -> int:
        return self.lasts.days

    @property
    def token_s(self) -> int:
        return int(self.token.total_seconds())

    def find_end(self, connection: Connection) -> datetime:
        """When it ends at the latest; what a person has chosen may be sooner."""
        return min(connection.until, connection.opened_at + self.lasts)


def _hub_bounds() -> ConnectionBounds:
    return ConnectionBounds(
        timedelta(days=settings.TOOLHUB_CONNECTION_DAYS),
        timedelta(days=settings.TOOLHUB_CONNECTION_IDLE_DAYS),
        timedelta(seconds=settings.TOOLHUB_CONNECTION_TOKEN_S),
    )


def find_bounds(tenant_id: UUID) -> ConnectionBounds:
    """Those in force: of what the hub and the tenant say the shorter."""
    hub, rule = _hub_bounds(), ConnectionRule.objects.filter(tenant_id=tenant_id).first()
    if rule is None:
        return hub
    return ConnectionBounds(
        hub.lasts if rule.days is None else min(hub.lasts, timedelta(days=rule.days)),
        hub.idle if rule.idle_days is None else min(hub.idle, timedelta(days=rule.idle_days)),
        hub.token if rule.token_minutes is None else min(hub.token, timedelta(minutes=rule.token_minutes)),
        None if rule.sign_in_minutes is None else timedelta(minutes=rule.sign_in_minutes),
    )


def list_limits() -> dict[str, tuple[int, int]]:
    """The least and the most that a tenant may say, by field."""
    hub = _hub_bounds()
    allowed = {"days": hub.days, "idle_days": hub.idle.days, "token_minutes": hub.token_s // 60}
    return {name: (least, min(most, allowed.get(name, most))) for name, (least, most) in ANYWHERE.items()}


@transaction.atomic
def set_connection_rule(
    *,
    days: int | None,
    idle_days: int | None,
    token_minutes: int | None,
    sign_in_minutes: int | None,
    by: Principal,
) -> ConnectionRule:
    """None: as the hub says. What is open follows with its next refresh. What is said already changes nothing."""
    terms = {
        "days": days,
        "idle_days": idle_days,
        "token_minutes": token_minutes,
        "sign_in_minutes": sign_in_minutes,
    }
    for name, (least, most) in list_limits().items():
        value = terms[name]
        if value is not None and not least <= value <= most:
            possible = ANYWHERE[name][0] <= value <= ANYWHERE[name][1]  # in another hub
            kind = StateUnfit if possible else SchemaInvalid
            raise kind.at(f"/{name}", f"Give a number from {least} to {most}, or leave it empty.")
    rule = ConnectionRule.objects.filter(tenant_id=by.tenant_id).first()
    if {name: getattr(rule, name, None) for name in terms} == terms:
        return rule or ConnectionRule(tenant_id=by.tenant_id, **terms)
    rule, _ = ConnectionRule.objects.update_or_create(
        tenant_id=by.tenant_id, defaults=terms | {"set_by": by.id, "set_at": database_time()}
    )
    evidence.record(
        kind=Kind.CONNECTION_RULE_SET,
        subject=encode("ten", by.tenant_id),
        actor=by,
        data=ConnectionRuleTerms(
            days=days, idle_days=idle_days, token_minutes=token_minutes, sign_in_minutes=sign_in_minutes
        ),
    )
    return rule
