"""Entry paths: does each control refuse a call on each way in? And is no way in without them?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from access.agents import services as agents
from access.budgets.services import set_budget
from access.halts import services as halts
from access.models import ApiKey, Reach
from evidence.models import Fact
from invocations.accept.api import CallView
from invocations.models import Invocation
from registry.installations import services as installations
from registry.tools import lifecycle
from tests.conftest import make_caller
from tests.support.calls import PAIR, kinds_of
from tests.support.entry_paths import WAYS, Told
from tests.support.policies_in_force import forbid, permit, put_in_force
from tests.support.routes import routes

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_way")]
ECHO = "sample.tools.echo"
YEAR = 31_536_000


class World:
    """One tool that one agent may call, and who can take that away."""

    def __init__(
        self, tenant: Tenant, caller: Caller, stranger: Caller, operator: Person, enable: Any, grant: Any
    ) -> None:
        self.tenant, self.caller, self.stranger, self.operator = tenant, caller, stranger, operator
        self.enable, self.grant = enable, grant
        self.arguments: dict[str, Any] = {"text": "x"}
        self.envelope: dict[str, Any] = {}
        self.earlier: dict[str, Any] = {}  # arguments of a call that comes before, the same way
        self.tool: Tool | None = None

    def open(self, *, granted: bool = True, grants: dict[str, Any] | None = None, **manifest: Any) -> None:
        self.tool = self.enable(**manifest)
        if granted:
            self.grant(**(grants or {}))


@pytest.fixture
def world(
    tenant: Tenant,
    caller: Caller,
    foreign_caller: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> World:
    return World(tenant, caller, foreign_caller, operator, enable, grant)


def revoked_key(world: World) -> None:
    world.open()
    agents.revoke_key(key_id=ApiKey.objects.get(agent=world.caller.agent).pk, by=world.operator.by)


def expired_key(world: World) -> None:
    world.open()
    ApiKey.objects.update(expires_at=timezone.now())


def other_network(world: World) -> None:
    world.open()
    ApiKey.objects.update(networks=["203.0.113.0/24"])


def disabled_agent(world: World) -> None:
    world.open()
    agents.disable_agent(agent_id=world.caller.agent.pk, reason="for a test", by=world.operator.by)


def missing_scope(world: World) -> None:
    world.open()
    ApiKey.objects.update(scopes=["tools:read"])


def other_tenant(world: World) -> None:
    world.open()
    world.caller = world.stranger


def no_grant(world: World) -> None:
    world.open(granted=False)


def grant_of_another_tool(world: World) -> None:
    world.open(grants={"tools": "sample.tools.write"})


def condition_of_the_grant(world: World) -> None:
    world.open(grants={"conditions": [{"pointer": "/text", "op": "equals", "value": "y"}]})


def paused_here(world: World) -> None:
    world.open()
    installations.pause_installation(name=ECHO, reason="for a test", by=world.operator.by)


def paused_by_its_publisher(world: World) -> None:
    world.open()
    lifecycle.pause_tool(name=ECHO, reason="for a test", by=world.operator.by)


def halted(world: World) -> None:
    world.open()
    halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason="for a test", by=world.operator.by)


def withdrawn_version(world: World) -> None:
    world.open()
    assert world.tool is not None
    assert world.tool.current is not None
    lifecycle.yank_version(version_id=world.tool.current.pk, reason="for a test", by=world.operator.by)


def forbidden_by_policy(world: World) -> None:
    world.open()
    put_in_force(permit(), forbid("no"), tenant=world.tenant)


def consent_missing(world: World) -> None:
    world.open(side_effect="Write", idempotency="keyed", data_classes=["payment"], consent={"validity_seconds": 600})


def budget_used_up(world: World) -> None:
    world.open()
    set_budget(scope="tenant", dimension="calls", amount=1, window_s=YEAR, by=world.operator.by)
    assert world.caller.invoke(ECHO, {"text": "first"}).status_code == 200


def too_fast(world: World) -> None:
    world.open()
    agent = world.caller.agent.pk
    set_budget(scope="agent", agent_id=agent, dimension="rate", amount=1, window_s=YEAR, by=world.operator.by)
    assert world.caller.invoke(ECHO, {"text": "first"}).status_code == 200


def wrong_arguments(world: World) -> None:
    world.open()
    world.arguments = {"text": 1}


def key_of_another_call(world: World) -> None:
    world.open(idempotency="keyed")
    world.envelope, world.earlier = {"idempotency_key": "k1"}, {"text": "first"}


def unknown_callback(world: World) -> None:
    world.open()
    world.envelope = {"callback": "nowhere"}


CONTROLS: dict[Callable[[World], None], str] = {
    revoked_key: "AUTH.UNAUTHENTICATED",
    expired_key: "AUTH.UNAUTHENTICATED",
    other_network: "AUTH.UNAUTHENTICATED",
    disabled_agent: "AUTH.UNAUTHENTICATED",
    missing_scope: "AUTH.FORBIDDEN",
    other_tenant: "TOOL.UNKNOWN",
    no_grant: "AUTH.NO_GRANT",
    grant_of_another_tool: "AUTH.NO_GRANT",
    condition_of_the_grant: "AUTH.CONDITION_UNMET",
    paused_here: "TOOL.PAUSED",
    paused_by_its_publisher: "TOOL.PAUSED",
    halted: "POLICY.HALTED",
    withdrawn_version: "TOOL.YANKED",
    forbidden_by_policy: "POLICY.DENY_TOOL",
    consent_missing: "POLICY.CONSENT_REQUIRED",
    budget_used_up: "QUOTA.BUDGET_EXCEEDED",
    too_fast: "QUOTA.RATE_LIMITED",
    wrong_arguments: "SCHEMA.VALIDATION_FAILED",
    key_of_another_call: "IDEMPOTENCY.KEY_REUSED",
    unknown_callback: "CALLBACK.UNKNOWN",
}
WITHOUT_A_PAIR = {"AUTH.UNAUTHENTICATED", "TOOL.UNKNOWN"}


@pytest.mark.req("SVC-1", "TOOLS-14", "TOOLS-30")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.__name__)
def test_each_control_refuses_on_each_way_and_leaves_its_witness(
    control: Callable[[World], None], way: str, world: World, sandbox: ScriptedSandbox
) -> None:
    control(world)
    if world.earlier:
        assert WAYS[way](world.caller, ECHO, world.earlier, **world.envelope).reason == ""
    ran, before = len(sandbox.calls), set(Invocation.objects.values_list("pk", flat=True))

    told = WAYS[way](world.caller, ECHO, world.arguments, **world.envelope)

    assert told.reason == CONTROLS[control]
    assert len(sandbox.calls) == ran
    made = Invocation.objects.exclude(pk__in=before)
    pairs = [[kind for kind in kinds_of(each) if kind in PAIR] for each in made]
    assert pairs == ([] if told.reason in WITHOUT_A_PAIR else [PAIR])


@pytest.mark.req("SVC-1", "TOOLS-30")
@pytest.mark.parametrize("way", WAYS)
def test_where_nothing_is_in_the_way_each_makes_the_call(way: str, world: World, sandbox: ScriptedSandbox) -> None:
    world.open()

    assert WAYS[way](world.caller, ECHO, world.arguments) == Told(200, "")
    assert len(sandbox.calls) == 1
    assert Fact.objects.filter(kind__in=PAIR).count() == 2


@pytest.mark.req("SVC-1")
def test_there_is_no_other_way_to_make_a_call() -> None:
    """A new view that takes calls belongs into `WAYS`. Chains are examined step by step, by the same functions; what stops a
    tool stops a model: ../model_calls/test_model_calls.py.
    """
    views = {route.name for route in routes() if route.api_class is not None and issubclass(route.api_class, CallView)}

    models = {"api_model_chat", "api_model_embed", "api_model_rerank"}
    served = {name for name in views if name.startswith("served_")}  # ../model_calls/served/test_controls.py
    assert views == {"api_invoke", "api_proposals", "api_dispatch"} | models | served


@pytest.mark.req("TOOLS-15")
def test_a_second_key_of_the_agent_is_no_way_around_the_scopes_of_the_first(world: World) -> None:
    world.open()
    reader = make_caller(world.operator.by, "reader", scopes=("tools:read",))

    assert {WAYS[way](reader, ECHO, world.arguments).reason for way in WAYS} == {"AUTH.FORBIDDEN"}
