"""List queries: does a list ask the database as often for many rows as for few?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from access.clients.services import enter_client
from access.models import (
    AgentIdentity,
    AssertionRule,
    Budget,
    BudgetScope,
    Consent,
    Delivery,
    Dimension,
    Grant,
    GrantRequest,
    Halt,
    Notification,
    PolicyVersion,
    Reach,
    TrustedIssuer,
)
from access.roles import Role
from invocations.models import Invocation, State
from kernel.ids import new_id
from kernel.principal import Principal
from registry.models import Decision, Installation, Review, Tool, ToolState, ToolVersion, VersionState
from registry.secrets import services as secrets
from tests.conftest import make_caller, make_person
from tests.support.begin_end_pairs import keep_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant

ECHO = "sample.tools.echo"
PAGES = (
    "overview", "invocations", "approvals", "consents", "halts", "tools", "installations", "shared_tools", "secrets",
    "reviews", "facts", "grants", "grant_requests", "policies", "budgets", "agents", "people", "issuers", "notifications",
    "clients",
)  # fmt: skip
API = (
    "tools", "catalogue", "installations", "secrets", "halts", "consents", "grants", "grants/requests", "budgets", "policies",
    "agents", f"tools/{ECHO}/versions", "members", "invitations", "issuers", "channels", "clients",
)  # fmt: skip


def fill(tenant: Tenant, numbers: range) -> None:
    """One row of everything for each number, by somebody else each time."""
    now, system = timezone.now(), Principal.system("test", tenant_id=tenant.pk)
    own = Tool.objects.select_related("current").get(tenant=tenant, name=ECHO)
    assert own.current is not None
    for n in numbers:
        by = make_person(tenant, f"person-{n}", Role.AUDITOR, Role.OPERATOR).by
        agent = make_caller(system, f"agent-{n}").agent
        tool = Tool.objects.create(tenant=tenant, name=f"sample.tools.t{n}", state_changed_by=by.id)
        version = ToolVersion.objects.get(pk=own.current.pk)
        version._state.adding = True
        version.id, version.version, version.base, version.submitted_by = new_id(), f"2.0.{n}", own.current, by.id
        version.save(force_insert=True)
        Review.objects.create(version=version, decision=Decision.APPROVE, decided_by=by.id)
        version.id, version.tool, version.review_state = new_id(), tool, VersionState.SUBMITTED
        version._state.adding = True
        version.save(force_insert=True)
        Tool.objects.filter(pk=tool.pk).update(current=version, state=ToolState.ENABLED)
        secrets.set_secret(name=f"secret-{n}", value="long enough", by=by)
        Installation.objects.create(
            tenant=tenant, tool=tool, name=tool.name, version=version, secrets={"A": f"secret-{n}"}, changed_by=by.id
        )
        enter_client(name=f"program-{n}", redirect_uris=["https://a.example/"], confidential=False, by=by)
        Grant.objects.create(tenant=tenant, agent=agent, tools=tool.name, reason="x", given_by=by.id)
        GrantRequest.objects.create(tenant=tenant, agent=agent, tools="a.*", purpose="x", requested_by=agent.wire_id)
        consent = Consent.objects.create(
            tenant=tenant,
            agent=agent,
            tool=tool.name,
            versions="^2",
            purpose="x",
            validity_s=60,
            requested_by=agent.wire_id,
        )
        for state in (State.HELD, State.DENIED):
            call = Invocation(
                tenant=tenant,
                agent=agent,
                tool=tool.name,
                version=version,
                consent=consent,
                state=state,
                request_id=f"request-{n}",
                arguments_fingerprint="x",
                created_at=now,
                finished_at=now if state == State.DENIED else None,
            )
            keep_calls(call)
        Budget.objects.create(
            tenant=tenant,
            scope=BudgetScope.AGENT,
            agent=agent,
            dimension=Dimension.CALLS,
            amount=9,
            window_s=60,
            set_by=by.id,
        )
        PolicyVersion.objects.create(
            tenant=tenant, number=100 + n, document={"format": 1, "rules": []}, digest=f"sha256:{n}", drafted_by=by.id
        )
        Halt.objects.create(tenant=tenant, reach=Reach.AGENT, target=agent.wire_id, reason="x", thrown_by=by.id)
        issuer = TrustedIssuer.objects.create(
            tenant=tenant, issuer=f"https://{n}.example.org", audience="hub", created_by=by.id, jwks={"keys": []}
        )
        AgentIdentity.objects.create(issuer=issuer, subject="x", agent=agent, scopes=["tools:read"])
        AssertionRule.objects.create(
            issuer=issuer, agent=agent, scopes=["tools:read"], token_minutes=5, set_by=by.id, set_at=now
        )
        channel = Notification.objects.create(
            tenant=tenant, channel="email", target=f"{n}@example.org", events=["review.waiting"], created_by=by.id
        )
        Delivery.objects.create(notification=channel, event="review.waiting", subject="x", body={})


def queries(get: Callable[[str], Any], path: str) -> list[str]:
    get(path)  # what is kept between requests is there after the first
    with CaptureQueriesContext(connection) as seen:
        response = get(path)
    assert response.status_code == 200, path
    return [each["sql"] for each in seen]


@pytest.mark.req("TOOLS-11")
def test_a_list_asks_as_often_for_many_rows_as_for_few(enable: Callable[..., Tool], tenant: Tenant) -> None:
    enable()
    client = make_person(tenant, "everything", *Role).client()
    caller = make_caller(Principal.system("test", tenant_id=tenant.pk))
    lists = [(client.get, reverse(name)) for name in PAGES] + [(caller.get, f"/{path}") for path in API]

    fill(tenant, range(6))  # more than the overview names, which then says how many there are
    few = [queries(*each) for each in lists]
    fill(tenant, range(6, 12))
    many = [queries(*each) for each in lists]

    longer = {
        path: after[-3:] for (_, path), before, after in zip(lists, few, many, strict=True) if len(after) > len(before)
    }
    assert longer == {}
