"""Preflight: does preflight go through its steps in order, and does each refusal say what would allow the call?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from access import services as access
from access.consents import services as consents
from access.models import Budget, BudgetWindow, Consent, Grant
from evidence.models import Fact
from invocations.decide.preflight import STEPS
from invocations.models import Invocation
from registry.versions import services as registry
from tests.support.calls import PAIR, ask, kinds_of, row_of, writer
from tests.support.policies_in_force import forbid, permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db

ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
FS = {"fs": [{"path": "/data/in", "actions": ["read"]}, {"path": "/data/out", "actions": ["write"]}]}


@pytest.mark.req("TOOLS-13", "TOOLS-14")
def test_an_allowed_call_passes_every_step_in_order(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant(calls_limit=3)

    data = ask(caller, ECHO)

    assert data["allow"] is True
    assert data["problem"] is None
    assert [(step["name"], step["status"]) for step in data["steps"]] == [(name, "ok") for name in STEPS]
    assert data["profile_hash"].startswith("sha256:")
    assert data["policy"]["version"] == "builtin@2"
    assert [(each["scope"], each["limit"], each["remaining"]) for each in data["budget_snapshot"]] == [("grant", 3, 3)]
    assert data["obligations"] == []
    assert not Invocation.objects.exists()
    assert not Fact.objects.filter(kind__startswith="invocation.").exists()


Scene = tuple["Caller", "Callable[..., Tool]", "Callable[..., Any]", Any, "Person"]


def at_tool(scene: Scene) -> str:
    _, enable, grant, _, operator = scene
    enable()
    grant()
    registry.pause_tool(name=ECHO, reason="broken", by=operator.by)
    return ECHO


def at_input_schema(scene: Scene) -> str:
    _, enable, _, _, _ = scene  # no grant: the first step that fails decides
    enable(input_schema={"type": "object", "required": ["sku"]})
    return ECHO


def at_grant(scene: Scene) -> str:
    _, enable, grant, _, _ = scene
    enable()
    grant("other.*")
    return ECHO


def at_quota(scene: Scene) -> str:
    _, enable, grant, _, _ = scene
    writer(enable)  # has no consent either
    grant(calls_limit=1, window_s=31_536_000)
    number = int(timezone.now().timestamp()) // 31_536_000
    BudgetWindow.objects.create(budget=Budget.objects.get(), number=number, used=1)
    return WRITE


def at_consent(scene: Scene) -> str:
    _, enable, grant, _, _ = scene
    put_in_force(permit(), forbid("no-writer", tool={"equals": WRITE}))
    writer(enable)
    grant()
    return WRITE


def at_profile(scene: Scene) -> str:
    _, enable, grant, _, _ = scene
    put_in_force(permit(), forbid("no-echo", tool={"equals": ECHO}))
    enable()
    grant()
    return ECHO


def at_sandbox_guard(scene: Scene) -> str:
    _, enable, grant, _, _ = scene
    enable(side_effect="Read", capabilities={"fs": [{"path": "/data", "actions": ["read"]}]})
    grant()
    return ECHO


REFUSALS = {
    "tool": (at_tool, 409, "TOOL.PAUSED"),
    "input_schema": (at_input_schema, 422, "SCHEMA.VALIDATION_FAILED"),
    "grant": (at_grant, 403, "AUTH.NO_GRANT"),
    "quota": (at_quota, 429, "QUOTA.BUDGET_EXCEEDED"),
    "consent": (at_consent, 403, "POLICY.CONSENT_REQUIRED"),
    "profile": (at_profile, 403, "POLICY.DENY_TOOL"),
    "sandbox_guard": (at_sandbox_guard, 403, "SANDBOX.CAPABILITY_BLOCKED"),
}


def test_every_step_is_refused_at_least_once_below() -> None:
    assert tuple(REFUSALS) == STEPS


@pytest.mark.req("TOOLS-14", "TOOLS-15", "TOOLS-18")
@pytest.mark.parametrize("step", REFUSALS)
def test_a_refusal_names_the_step_the_reason_and_what_would_allow_it(
    step: str,
    caller: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    settings: Any,
    bell: Bell,
) -> None:
    arrange, status, reason = REFUSALS[step]
    tool = arrange((caller, enable, grant, settings, operator))

    asked = ask(caller, tool)
    answer = caller.invoke(tool, {})

    assert asked["allow"] is False
    assert asked["refused_at"] == step
    assert asked["problem"]["reason"] == reason
    assert asked["problem"]["remedy"]
    at = STEPS.index(step)
    expected = ["ok"] * at + ["failed"] + ["skipped"] * (len(STEPS) - at - 1)
    assert [each["status"] for each in asked["steps"][: at + 1]] == expected[: at + 1]
    for each in asked["steps"]:  # what is known of the steps behind it is told as well
        assert (each["status"] == "failed") == bool(each["problem"] and each["problem"]["remedy"])
        assert each["ms"] >= 0
    # The call itself is refused in the same way, by the first of them, and leaves its pair.
    body = answer.json()
    assert (answer.status_code, body["error"]["reason"]) == (status, reason)
    assert body["call"]["refused_at"] == step
    assert body["call"]["status"] == "denied"
    row = row_of(answer)
    assert row.state == "denied"
    assert kinds_of(row) == PAIR
    assert [each["status"] for each in row.steps] == expected
    assert [fact.reason for fact in Fact.objects.filter(invocation_id=row.pk)] == [reason, reason]
    assert bell.rung == []
    assert caller.get(f"/invocations/{row.wire_id}").json()["error"] == body["error"]


@pytest.mark.req("TOOLS-14")
def test_a_preflight_tells_all_that_is_in_the_way_at_once(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    put_in_force(permit(), forbid("no-writer", tool={"equals": WRITE}))
    writer(enable, input_schema={"type": "object", "required": ["text"]})
    grant("other.*")

    data = ask(caller, WRITE)

    failed = {each["name"]: each["problem"]["reason"] for each in data["steps"] if each["status"] == "failed"}
    assert failed == {
        "input_schema": "SCHEMA.VALIDATION_FAILED",
        "grant": "AUTH.NO_GRANT",
        "consent": "POLICY.CONSENT_REQUIRED",
        "profile": "POLICY.DENY_TOOL",
    }
    assert (data["refused_at"], data["problem"]["reason"]) == ("input_schema", failed["input_schema"])
    assert data["steps"][-1]["status"] == "skipped"  # without a profile there is nothing for the guard to compare


def test_preflight_only_reads_and_is_tallied(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant(calls_limit=5)

    ask(caller, ECHO)  # the first request of a key in a minute notes that it was used

    with CaptureQueriesContext(connection) as queries:
        ask(caller, ECHO)

    written = [query["sql"] for query in queries if not query["sql"].startswith("SELECT")]
    assert [sql.split()[:2] for sql in written] == [["UPDATE", '"invocations_tally"']]


@pytest.mark.req("TOOLS-31")
def test_a_change_of_policy_counts_with_the_next_call(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    before = ask(caller, ECHO)
    put_in_force(permit(), forbid("no-echo", tool={"equals": ECHO}))

    after = ask(caller, ECHO)

    assert (before["allow"], after["allow"]) == (True, False)
    assert before["policy"]["hash"] != after["policy"]["hash"]


# Grants.


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("pattern", "covers"),
    [
        ("*", True),
        ("sample.*", True),
        ("sample.tools.*", True),
        ("sample.tools.echo", True),
        ("sample.tool.*", False),
        ("sam.*", False),
        ("sample.tools.echo2", False),
        ("other.tools.echo", False),
    ],
)
def test_a_grant_covers_whole_segments_only(
    pattern: str, covers: bool, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant(pattern)

    assert ask(caller, ECHO)["allow"] is covers


@pytest.mark.req("TOOLS-15")
def test_a_grant_counts_until_it_expires_or_is_revoked(
    caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    given = grant(expires_at=timezone.now() + timedelta(hours=1))
    assert ask(caller, ECHO)["allow"]

    Grant.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert ask(caller, ECHO)["refused_at"] == "grant"

    Grant.objects.update(expires_at=None)
    assert ask(caller, ECHO)["allow"]
    access.revoke_grant(grant_id=given.pk, reason="no longer", by=operator.by)
    assert ask(caller, ECHO)["refused_at"] == "grant"


def test_the_grant_of_another_agent_does_not_help(
    caller: Caller, operator: Person, enable: Callable[..., Tool]
) -> None:
    enable()
    other = access.create_agent(name="other", by=operator.by)
    access.give_grant(agent_id=other.pk, tools="*", reason="x", by=operator.by)

    assert ask(caller, ECHO)["refused_at"] == "grant"


# Consents.


@pytest.mark.req("TOOLS-19")
@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({}, False),
        ({"safety_class": "Medium"}, False),
        ({"safety_class": "High"}, True),
        ({"side_effect": "Write", "idempotency": "keyed"}, True),
        ({"consent": {"required": True}}, True),
    ],
)
def test_what_is_dangerous_needs_a_consent_whatever_its_manifest_says(
    changes: dict[str, Any], needed: bool, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable(**changes)
    grant()

    assert (ask(caller, ECHO)["refused_at"] == "consent") is needed


@pytest.mark.req("TOOLS-19")
def test_a_consent_counts_from_its_approval_until_it_ends(
    caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    writer(enable, consent={"validity_seconds": 60})
    grant()
    asked = caller.post("/consents", {"tool": WRITE, "purpose": "write a test"}).json()["data"]
    consent = Consent.objects.get()
    assert ask(caller, WRITE)["refused_at"] == "consent"

    consents.approve_consent(consent_id=consent.pk, reason="fine", by=operator.by)
    allowed = ask(caller, WRITE)
    assert allowed["allow"]
    assert allowed["consent"] == asked["id"]

    Consent.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert ask(caller, WRITE)["refused_at"] == "consent"

    Consent.objects.update(expires_at=timezone.now() + timedelta(seconds=60))
    consents.revoke_consent(consent_id=consent.pk, reason="enough", by=operator.by)
    assert ask(caller, WRITE)["refused_at"] == "consent"


def test_a_consent_to_one_major_version_does_not_cover_the_next(
    caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    writer(enable)
    grant()
    consent = consents.request_consent(tool=WRITE, versions="^1", purpose="x", validity_s=600, by=caller.by)
    consents.approve_consent(consent_id=consent.pk, reason="fine", by=operator.by)
    assert ask(caller, WRITE)["allow"]

    writer(enable, version="2.0.0")

    assert ask(caller, WRITE)["refused_at"] == "consent"
