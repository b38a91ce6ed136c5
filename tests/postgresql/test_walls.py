"""Walls between tenants: does PostgreSQL keep tenants apart by itself, also where a filter was forgotten?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.utils import ProgrammingError

from access.budgets.services import set_budget
from access.halts import services as halts
from access.models import Agent, Budget, Grant, Halt, Reach, Tenant
from evidence.models import Fact
from invocations.models import Invocation
from kernel.database.postgresql import base
from kernel.database.postgresql.base import ROLE
from kernel.database.tenancy import acting_for, acting_for_nobody, hub_wide
from registry.discovery import selectors as discovery_selectors
from registry.models import Installation, Review, Tool, ToolVersion, VersionState
from toolhub.database.row_level_security import (
    OURS,
    POLICY,
    SEEN_BY_OTHERS,
    WRITTEN_BY_OWNER,
    build_tenant_condition,
    describe_missing_policies,
    install_policies,
    list_tables,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

ECHO = "sample.tools.echo"


@pytest.fixture
def two_tenants(
    caller: Caller,
    foreign_caller: Caller,
    stranger: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
) -> None:
    """A tenant with a tool and a call, and another with an agent."""
    enable()
    grant()
    answer = caller.invoke(ECHO, {"text": "x"})
    assert answer.status_code in (200, 202), answer.json()


def who() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user::text, current_setting('app.tenant', true)")
        row: tuple[str, str] = cursor.fetchone()
    return row


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_every_table_that_leads_to_a_tenant_is_walled() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_policies WHERE policyname = %s", [POLICY])
        walled = {name for (name,) in cursor.fetchall()}
        cursor.execute("SELECT relname FROM pg_class WHERE relrowsecurity")
        enabled = {name for (name,) in cursor.fetchall()}

    assert walled == set(list_tables())
    assert enabled >= set(list_tables())
    assert all(build_tenant_condition(model) for model in list_tables().values())
    assert {name.partition("_")[0] for name in list_tables()} == set(OURS)


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_without_a_tenant_no_table_shows_a_row(two_tenants: None, caller: Caller) -> None:
    Tool.objects.update(shared=True)  # what every tenant sees, nobody does not
    Halt.objects.create(reach="hub", reason="for a test", thrown_by="usr_1")
    Halt.objects.create(
        tenant=caller.agent.tenant, reach="tool", target="x.y.z", reason="for a test", thrown_by="usr_1"
    )
    filled = {name for name, model in list_tables().items() if model._default_manager.exists()}

    with acting_for_nobody():
        seen = {name for name, model in list_tables().items() if model._default_manager.exists()}

    assert {
        "registry_tool",
        "access_grant",
        "invocations_invocation",
        "evidence_fact",
        "access_agent",
        "access_halt",
    } <= filled
    assert seen == set()


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_a_query_without_any_filter_shows_one_tenant_only(
    two_tenants: None, caller: Caller, foreign_caller: Caller
) -> None:
    with acting_for(caller.by.tenant_id):
        mine = (Tool.objects.count(), Grant.objects.count(), Invocation.objects.count(), Agent.objects.get())
    with acting_for(foreign_caller.by.tenant_id):
        theirs = (Tool.objects.count(), Grant.objects.count(), Invocation.objects.count(), Agent.objects.get())
        versions = ToolVersion.objects.count()  # no tenant of its own: held against its tool
        facts = set(Fact.objects.values_list("tenant_id", flat=True))
        tenants = list(Tenant.objects.values_list("pk", flat=True))

    assert mine == (1, 1, 1, caller.agent)
    assert theirs == (0, 0, 0, foreign_caller.agent)
    assert versions == 0
    assert facts == set(tenants) == {foreign_caller.by.tenant_id}


@pytest.mark.req("TOOLS-31")
@pytest.mark.django_db
def test_the_switch_of_the_hub_is_thrown_and_lifted_from_within_a_tenant(operator: Person) -> None:
    owner = replace(operator.by, allowed=operator.by.allowed | {"hub.manage"})
    with acting_for(owner.tenant_id):
        thrown = halts.throw_halt(reach=Reach.HUB, reason="x", by=owner)
        halts.lift_halt(halt_id=thrown.pk, reason="x", by=owner)

    assert Halt.objects.get().lifted_by == owner.id
    facts = Fact.objects.filter(subject=thrown.wire_id)
    assert set(facts.values_list("tenant_id", flat=True)) == {owner.tenant_id}
    assert facts.count() == 2


@pytest.mark.django_db
def test_a_row_for_another_tenant_is_not_written(caller: Caller, foreign_caller: Caller) -> None:
    with (
        pytest.raises(ProgrammingError, match="row-level security"),
        acting_for(foreign_caller.by.tenant_id),
        transaction.atomic(),
    ):
        Agent.objects.create(tenant_id=caller.by.tenant_id, name="planted")

    with acting_for(foreign_caller.by.tenant_id):
        renamed = Agent.objects.filter(pk=caller.agent.pk).update(name="renamed")

    assert renamed == 0
    assert not Agent.objects.filter(name__in=["planted", "renamed"]).exists()


@pytest.mark.django_db
def test_a_shared_tool_can_be_found_and_not_changed_by_others(
    two_tenants: None, foreign_caller: Caller, caller: Caller
) -> None:
    Tool.objects.update(shared=True)

    with acting_for(foreign_caller.by.tenant_id):
        found = Tool.objects.filter(name=ECHO).exists()
        versions = ToolVersion.objects.count()
        changed = Tool.objects.filter(name=ECHO).update(state_reason="taken over")
        installations = Installation.objects.count()

    assert (found, versions, changed, installations) == (True, 1, 0, 0)


def another(version: ToolVersion, number: str, state: str) -> ToolVersion:
    """A further version of the same tool, not saved."""
    values = {field.attname: getattr(version, field.attname) for field in ToolVersion._meta.concrete_fields}
    del values["id"]
    return ToolVersion(**values | {"version": number, "review_state": state})


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_versions_and_reviews_of_a_shared_tool_are_written_by_its_tenant_only(
    two_tenants: None, caller: Caller, foreign_caller: Caller
) -> None:
    Tool.objects.update(shared=True)
    version = ToolVersion.objects.get()
    review = Review.objects.create(version=version, decision="approve", decided_by="usr_wall")
    theirs = foreign_caller.by.tenant_id

    with acting_for(theirs):
        assert Review.objects.filter(pk=review.pk).exists()  # seen, and not written
        touched = (
            ToolVersion.objects.update(review_state=VersionState.REFUSED),
            Review.objects.update(note="taken over"),
            Review.objects.filter(pk=review.pk)._raw_delete("default"),
            ToolVersion.objects.filter(pk=version.pk)._raw_delete("default"),
        )
    planted = (
        another(version, "9.9.9", VersionState.APPROVED),
        Review(version=version, decision="approve", decided_by="usr_planted"),
    )
    for row in planted:
        with (
            pytest.raises(ProgrammingError, match="row-level security"),
            acting_for(theirs),
            transaction.atomic(),
        ):
            row.save(force_insert=True)

    with acting_for(caller.by.tenant_id):
        own = (
            ToolVersion.objects.filter(pk=version.pk).update(yank_reason=""),
            Review.objects.filter(pk=review.pk).update(note="mine"),
        )
        for row in planted:
            row.save(force_insert=True)

    assert touched == (0, 0, 0, 0)
    assert own == (1, 1)


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_of_a_foreign_tool_only_approved_or_installed_versions_and_their_reviews_are_seen(
    two_tenants: None, caller: Caller, foreign_caller: Caller
) -> None:
    Tool.objects.update(shared=True)
    approved = ToolVersion.objects.get()
    submitted = another(approved, "9.9.8", VersionState.SUBMITTED)
    refused = another(approved, "9.9.9", VersionState.REFUSED)
    for version in (submitted, refused):
        version.save(force_insert=True)
        Review.objects.create(version=version, decision="refuse", decided_by="usr_wall")

    def seen_by(reader: Caller) -> tuple[set[ToolVersion], set[Any]]:
        with acting_for(reader.by.tenant_id):
            reviews = Review.objects.filter(decided_by="usr_wall").values_list("version_id", flat=True)
            return set(ToolVersion.objects.all()), set(reviews)

    assert seen_by(foreign_caller) == ({approved}, set())
    assert seen_by(caller) == ({approved, submitted, refused}, {submitted.pk, refused.pk})

    Installation.objects.create(
        tenant_id=foreign_caller.by.tenant_id, tool=approved.tool, name=ECHO, version=refused, changed_by="usr_1"
    )
    assert seen_by(foreign_caller) == ({approved, refused}, {refused.pk})


@pytest.mark.req("TOOLS-22")
def test_what_belongs_to_a_row_that_others_see_says_who_writes_it() -> None:
    by_parent = {
        name: build_tenant_condition(model) for name, model in list_tables().items() if name not in WRITTEN_BY_OWNER
    }

    assert [
        (name, parent)
        for name, condition in by_parent.items()
        for parent in SEEN_BY_OTHERS
        if f"FROM {parent} " in condition
    ] == []


@pytest.mark.django_db(transaction=True)
def test_the_scope_holds_through_transactions_savepoints_and_their_failures(
    caller: Caller, foreign_caller: Caller
) -> None:
    mine = str(caller.by.tenant_id)
    with acting_for(caller.by.tenant_id):
        assert who() == (ROLE, mine)
        with transaction.atomic():
            assert who() == (ROLE, mine)
            with pytest.raises(IntegrityError), transaction.atomic():
                Agent.objects.create(tenant_id=caller.by.tenant_id, name=caller.agent.name)
            assert who() == (ROLE, mine)
            with hub_wide():
                assert who()[0] != ROLE
                assert Agent.objects.count() == 2
            assert Agent.objects.count() == 1
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            assert who() == (ROLE, mine)
            raise ZeroDivisionError
        assert who() == (ROLE, mine)
        connection.close()
        assert who() == (ROLE, mine)
    assert who()[0] != ROLE


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_a_request_works_as_the_bound_role_of_its_own_tenant(
    two_tenants: None, caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []
    find = discovery_selectors.find_installed

    def watched(**asked: Any) -> Any:
        seen.append(who())
        return find(**asked)

    monkeypatch.setattr(discovery_selectors, "find_installed", watched)

    assert caller.get("/tools").status_code == 200
    assert operator.client().get("/tools").status_code == 200
    assert seen == [(ROLE, str(caller.by.tenant_id))]
    assert who()[0] != ROLE  # it ends with the request


@pytest.mark.req("TOOLS-1", "TOOLS-22")
@pytest.mark.django_db
def test_a_publishers_kill_switch_reaches_who_installed_a_tool_of_theirs_and_nobody_else(
    two_tenants: None, caller: Caller, foreign_caller: Caller
) -> None:
    tool = Tool.objects.get(name=ECHO)
    Tool.objects.update(shared=True)
    for reach, target in (("tool", ECHO), ("agent", caller.agent.wire_id)):
        Halt.objects.create(
            tenant_id=caller.by.tenant_id, reach=reach, target=target, reason="for a test", thrown_by="usr_1"
        )

    with acting_for(foreign_caller.by.tenant_id):
        before = list(Halt.objects.all())
    Installation.objects.create(
        tenant_id=foreign_caller.by.tenant_id, tool=tool, name=ECHO, version=tool.current, changed_by="usr_1"
    )
    with acting_for(foreign_caller.by.tenant_id):
        after = list(Halt.objects.values_list("reach", flat=True))

    assert (before, after) == ([], ["tool"])


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_doctor_says_which_walls_are_missing_and_what_puts_them_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert describe_missing_policies(connection) == ""

    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE access_agent DISABLE ROW LEVEL SECURITY")
        cursor.execute(f"DROP POLICY {POLICY} ON registry_secret")
        cursor.execute(f"COMMENT ON POLICY {POLICY} ON registry_tool IS 'of a version before'")
    assert describe_missing_policies(connection).startswith(
        "Without the row level security that this version needs: access_agent, registry_secret, registry_tool."
    )
    install_policies(connection)
    assert describe_missing_policies(connection) == ""

    with connection.cursor() as cursor:
        cursor.execute(f"ALTER ROLE {ROLE} BYPASSRLS")
    assert f"ALTER ROLE {ROLE} NOSUPERUSER NOBYPASSRLS;" in describe_missing_policies(connection)

    monkeypatch.setattr(base, "_walled", set())
    monkeypatch.setattr(base, "_HAS_ROLE", "SELECT %s = ''")
    assert f"GRANT {ROLE} TO" in describe_missing_policies(connection)
    monkeypatch.undo()
    connection.look_for_walls()  # type: ignore[attr-defined]


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db(transaction=True)
def test_walls_that_cannot_be_put_up_leave_those_that_stood(operator: Person) -> None:
    """Between the old policy and the new one a tenant would see no budget, and so be bound by none."""
    set_budget(scope="tenant", dimension="calls", amount=1, by=operator.by)
    table = "access_budget"
    with connection.cursor() as cursor:
        cursor.execute(f"COMMENT ON POLICY {POLICY} ON {table} IS 'of a version before'")
        cursor.execute(f"CREATE FUNCTION toolhub_refers_home_{table}() RETURNS boolean LANGUAGE sql AS 'SELECT true'")
    try:
        with pytest.raises(ProgrammingError, match="is not unique"):  # two functions of this name: which one to drop?
            install_policies(connection)
        with acting_for(operator.by.tenant_id):
            assert Budget.objects.count() == 1
        assert table in describe_missing_policies(connection)
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP FUNCTION toolhub_refers_home_{table}()")
    assert install_policies(connection)
    assert describe_missing_policies(connection) == ""
