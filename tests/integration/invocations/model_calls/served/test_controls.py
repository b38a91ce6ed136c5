"""Controls: does each control refuse a call in each served format, and is no format without them?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.agents import services as agents
from access.budgets.services import set_budget
from access.halts import services as halts
from access.models import ApiKey, Reach
from invocations.model_calls.served.api import ServedView
from invocations.models import Invocation
from registry.installations import services as installations
from registry.model_providers import services as providers
from tests.support.budgets import DAY
from tests.support.calls import PAIR, kinds_of
from tests.support.policies_in_force import forbid, permit, put_in_force
from tests.support.routes import routes
from tests.support.served_formats import BODIES, MODEL, VECTORS, find_address, find_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
OPERATIONS = {VECTORS: "embed", BODIES["served_rerank"]["model"]: "rerank"}  # of the models that hold no conversation


class World:
    """What an agent may ask, and who can take that away."""

    def __init__(self, caller: Caller, operator: Person, grant: Callable[..., Any], model: str) -> None:
        self.caller, self.by, self.grant, self.model = caller, operator.by, grant, model


def revoked_key(world: World) -> None:
    agents.revoke_key(key_id=ApiKey.objects.get(agent=world.caller.agent).pk, by=world.by)


def missing_scope(world: World) -> None:
    ApiKey.objects.update(scopes=["tools:read", "invocations:create"])


def no_grant(world: World) -> None:
    """In the table of the test."""


def paused_model(world: World) -> None:
    installations.pause_installation(name=world.model, reason="for a test", by=world.by)


def paused_provider(world: World) -> None:
    providers.pause_provider(name="script", reason="for a test", by=world.by)


def halted(world: World) -> None:
    halts.throw_halt(reach=Reach.TOOL, target=world.model, reason="for a test", by=world.by)


def forbidden_by_policy(world: World) -> None:
    put_in_force(permit(), forbid("no"), tenant=world.caller.agent.tenant)


def no_tokens_left(world: World) -> None:
    set_budget(scope="tenant", dimension="tokens", amount=1, window_s=DAY, by=world.by)


def no_calls_left(world: World) -> None:
    set_budget(scope="tenant", dimension="calls", amount=0, window_s=DAY, by=world.by)


CONTROLS: dict[Callable[[World], None], str] = {
    revoked_key: "AUTH.UNAUTHENTICATED",
    missing_scope: "AUTH.FORBIDDEN",
    no_grant: "AUTH.NO_GRANT",
    paused_model: "TOOL.PAUSED",
    paused_provider: "TOOL.PAUSED",
    halted: "POLICY.HALTED",
    forbidden_by_policy: "POLICY.DENY_TOOL",
    no_tokens_left: "QUOTA.BUDGET_EXCEEDED",
    no_calls_left: "QUOTA.BUDGET_EXCEEDED",
}


@pytest.fixture
def model(name: str, connect: Callable[..., Any]) -> str:
    """What the body of that name asks."""
    asked = find_model(name)
    operation = OPERATIONS.get(asked)
    connect(**({"alias": asked.rpartition(".")[2], "operation": operation} if operation else {}))
    return asked


@pytest.mark.req("TOOLS-15")
def test_each_format_that_takes_calls_is_held_against_the_controls() -> None:
    views = {
        route.name for route in routes() if route.api_class is not None and issubclass(route.api_class, ServedView)
    }

    assert views == set(BODIES)


@pytest.mark.req("LLM-11", "TOOLS-15")
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.__name__)
def test_each_control_refuses_in_each_format_and_nobody_is_asked(
    control: Callable[[World], None],
    name: str,
    caller: Caller,
    operator: Person,
    grant: Callable[..., Any],
    model: str,
    bench: ProviderBench,
) -> None:
    body = BODIES[name]
    if control is not no_grant:
        grant("model.*")
    control(World(caller, operator, grant, model))

    answer = caller.ask(find_address(name), body)

    assert answer.headers["X-Hub-Reason"] == CONTROLS[control], answer.content
    assert answer.json()["error"]["message"]
    assert bench.provider is None
    pairs = [kinds_of(each) for each in Invocation.objects.all()]
    assert pairs == ([] if control is revoked_key else [PAIR])


@pytest.mark.req("LLM-1")
@pytest.mark.parametrize("name", BODIES)
def test_where_nothing_is_in_the_way_each_format_makes_one_call(
    name: str, caller: Caller, grant: Callable[..., Any], model: str
) -> None:
    grant("model.*")

    answer = caller.ask(find_address(name), BODIES[name])

    assert answer.status_code == 200, answer.content
    (call,) = Invocation.objects.all()
    assert (call.tool, kinds_of(call), answer.headers["X-Hub-Call"]) == (find_model(name), PAIR, call.wire_id)


CONSENT = {"id": "ask", "effect": "consent", "when": {}, "consent": {"mode": "period", "validity_s": 3600}}


@pytest.mark.req("TOOLS-19")
@pytest.mark.parametrize("name", [name for name in BODIES if find_model(name) == MODEL])
def test_no_format_lets_a_call_wait_for_a_person(
    name: str, caller: Caller, grant: Callable[..., Any], model: str, bench: ProviderBench
) -> None:
    grant("model.*")
    put_in_force(permit(), CONSENT)
    hub = {"on_consent": "hold", "purpose": "to help"}

    answer = caller.ask(find_address(name), BODIES[name] | {"hub": hub})
    asking = caller.ask(find_address(name), BODIES[name] | {"hub": hub | {"on_consent": "ask"}})

    assert (answer.status_code, answer.headers["X-Hub-Reason"]) == (400, "SCHEMA.VALIDATION_FAILED")
    assert "not held" in answer.json()["error"]["message"]
    assert (asking.status_code, asking.headers["X-Hub-Reason"]) == (403, "POLICY.CONSENT_REQUIRED")
    beside = asking.json()["hub"]
    assert beside["reason"] == "POLICY.CONSENT_REQUIRED"
    assert beside["details"]["consent"] in beside["details"]["url"]  # where a person may agree
    assert [(each.state, kinds_of(each)[-2:]) for each in Invocation.objects.order_by("pk")] == [("denied", PAIR)] * 2
    assert bench.provider is None


@pytest.mark.req("TOOLS-15")
def test_the_session_of_a_person_is_no_key(operator: Person, connect: Callable[..., Any]) -> None:
    from django.test import Client

    connect()
    client = Client()
    client.force_login(operator.user)

    answer = client.post("/v1/chat/completions", BODIES["served_chat_completions"], content_type="application/json")

    assert (answer.status_code, answer.headers["X-Hub-Reason"]) == (401, "AUTH.UNAUTHENTICATED")
    assert BODIES["served_chat_completions"]["model"] == MODEL
