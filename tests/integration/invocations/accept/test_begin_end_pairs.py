"""Pairs of Begin and End: does every call of a known tool leave its pair, and what never became a call a tally that turns into
one fact?
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import DatabaseError
from django.db.models import F
from django.test import Client
from django.utils import timezone

from access.agents import api_keys
from access.models import ApiKey
from evidence.models import Fact
from invocations import request_tallies
from invocations.models import Invocation, Tally
from invocations.queue import sweeper
from kernel.database.tenancy import NO_TENANT
from kernel.observability.log_context import bind_log_context, read_log_field
from kernel.principal import Principal
from tests.conftest import make_caller
from tests.support.calls import PAIR, ask, assert_problem, kinds_of, row_of, writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
ECHO, WRITE = "sample.tools.echo", "sample.tools.write"
DRY_PAIR = ["dry_run.began", "dry_run.ended"]


def tallies() -> list[tuple[Any, ...]]:
    return list(Tally.objects.order_by("reason").values_list("tenant_id", "kind", "agent", "tool", "reason", "count"))


def witnessed() -> list[dict[str, Any]]:
    """The facts of the minute, once it is over."""
    Tally.objects.update(minute=F("minute") - 2)
    before = set(Fact.objects.values_list("pk", flat=True))
    sweeper.sweep_once()
    assert not Tally.objects.exists()
    return [json.loads(bytes(fact.leaf)) for fact in Fact.objects.exclude(pk__in=before).order_by("reason")]


@pytest.mark.req("TOOLS-18", "SPEC-2")
def test_a_dry_run_has_a_pair_of_its_own_kinds(
    caller: Caller, operator: Person, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    writer(enable)
    grant()

    tried = caller.invoke(WRITE, {}, dry_run=True)
    refused = caller.invoke(WRITE, {"text": 5}, dry_run=True)
    real = caller.invoke(WRITE, {})

    assert (tried.status_code, refused.status_code, real.status_code) == (200, 422, 403)
    assert kinds_of(row_of(tried)) == DRY_PAIR
    assert kinds_of(row_of(refused)) == DRY_PAIR
    assert kinds_of(row_of(real)) == PAIR
    shown = caller.get(f"/evidence/invocations/{row_of(tried).wire_id}").json()["data"]["facts"]
    assert [fact["kind"] for fact in shown] == DRY_PAIR
    page = operator.client().get(f"/invocations/{row_of(tried).wire_id}").content.decode()
    assert "Dry run ended" in page
    assert shown[-1]["leaf_hash"] in page


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("on_consent", ["refuse", "ask"])
def test_the_log_names_a_refused_call_by_the_id_of_its_row(
    on_consent: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    writer(enable)
    grant()

    with bind_log_context():
        answer = caller.invoke(WRITE, {}, on_consent=on_consent, purpose="a test")
        logged = read_log_field("call_id")

    assert_problem(answer, 403, "POLICY.CONSENT_REQUIRED")
    assert logged == row_of(answer).wire_id


@pytest.mark.req("TOOLS-18")
def test_a_call_with_a_key_that_may_not_call_has_its_pair(
    tenant: Tenant, enable: Callable[..., Tool], bell: Bell
) -> None:
    enable()
    reader = make_caller(Principal.system("test", tenant_id=tenant.pk), "reader", scopes=("tools:read",))

    answer = reader.invoke(ECHO, {})

    body = assert_problem(answer, 403, "AUTH.FORBIDDEN")
    assert body["error"]["details"]["missing"] == "invocations:create"
    assert kinds_of(row_of(answer)) == PAIR
    assert row_of(answer).budget == []
    assert tallies() == []


def unreadable(caller: Caller) -> Any:
    return Client().generic(
        "POST",
        f"/api/v1/tools/{ECHO}/invoke",
        b'{"request_id": ',
        content_type="application/json",
        headers=caller.headers(),
    )


def wrong_envelope(caller: Caller) -> Any:
    return caller.invoke(ECHO, {}, curency="EUR")


def unknown_tool(caller: Caller) -> Any:
    return caller.invoke("sample.tools.ann@example.org", {})


def unknown_tool_asked(caller: Caller) -> Any:
    return caller.post("/tools/sample.tools.nothing/preflight", {**body_of_call(), "arguments": {}})


def body_of_call() -> dict[str, Any]:
    return {"request_id": "test-request-1", "actor": {"type": "agent", "id": "x"}}


EARLY = {
    "unreadable": (unreadable, "REQUEST.MALFORMED"),
    "a wrong envelope": (wrong_envelope, "SCHEMA.VALIDATION_FAILED"),
    "an unknown tool": (unknown_tool, "TOOL.UNKNOWN"),
    "an unknown tool that is only asked about": (unknown_tool_asked, "TOOL.UNKNOWN"),
}


@pytest.mark.req("TOOLS-18")
def test_a_fact_of_what_was_counted_says_which_minute(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, minute_s: int
) -> None:
    monkeypatch.setattr(request_tallies, "MINUTE_S", minute_s)
    before = datetime.now(UTC)
    unknown_tool(caller)
    after = datetime.now(UTC)

    [leaf] = witnessed()

    begun, ended = (datetime.fromisoformat(leaf["data"][each]) for each in ("from", "until"))
    assert ended - begun == timedelta(minutes=1)
    # `witnessed` sets the clock of what was counted two minutes back
    assert begun <= after - timedelta(minutes=2)
    assert before - timedelta(minutes=2) < ended


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("what", EARLY)
def test_what_fails_before_there_is_a_call_is_one_fact_of_its_agent_and_minute(
    what: str, caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant("*")
    send, reason = EARLY[what]

    answers = [send(caller) for _ in range(3)]

    assert {answer.json()["error"]["reason"] for answer in answers} == {reason}
    assert not Invocation.objects.exists()
    assert tallies() == [(caller.agent.tenant_id, "request.rejected", caller.agent.wire_id, "", reason, 3)]
    [leaf] = witnessed()
    assert (leaf["kind"], leaf["subject"], leaf["outcome"], leaf["reason"]) == (
        "request.rejected",
        caller.agent.wire_id,
        "denied",
        reason,
    )
    assert leaf["data"]["calls"] == 3
    assert "ann@" not in json.dumps(leaf)  # nothing of what was sent


def revoked(caller: Caller) -> dict[str, str]:
    ApiKey.objects.update(revoked_at=timezone.now())
    return caller.headers()


def expired(caller: Caller) -> dict[str, str]:
    ApiKey.objects.update(created_at=timezone.now() - timedelta(days=2), expires_at=timezone.now())
    return caller.headers()


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("credentials", [revoked, expired])
@pytest.mark.parametrize("path", ["/tools", f"/tools/{ECHO}/invoke"])
def test_a_key_that_no_longer_works_is_told_to_the_tenant_whose_it_was(
    path: str, credentials: Callable[[Caller], dict[str, str]], caller: Caller
) -> None:
    headers = credentials(caller)

    answer = Client().post(f"/api/v1{path}", body_of_call(), content_type="application/json", headers=headers)

    assert_problem(answer, 401, "AUTH.UNAUTHENTICATED")
    assert [row[:3] for row in tallies()] == [(caller.agent.tenant_id, "request.rejected", caller.agent.wire_id)]


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("which", ["none", "nonsense", "the look-up of a key, and another secret"])
def test_a_key_that_proves_nothing_is_told_to_no_tenant(which: str, caller: Caller) -> None:
    """Who knows only the look-up part of a key must not be able to write into its tenant's evidence."""
    start, other = caller.key[: -api_keys.CHECK_LENGTH - api_keys.SECRET_LENGTH], api_keys.new_key().text
    guessed = start + other[-api_keys.CHECK_LENGTH - api_keys.SECRET_LENGTH : -api_keys.CHECK_LENGTH]
    key = {"none": "", "nonsense": "Bearer nonsense"}.get(which, f"Bearer {guessed}{api_keys.compute_check(guessed)}")
    assert which in ("none", "nonsense") or api_keys.extract_lookup(
        key.removeprefix("Bearer ")
    ) == api_keys.extract_lookup(caller.key)

    answer = Client().get("/api/v1/tools", headers={"Authorization": key} if key else {}, REMOTE_ADDR="192.0.2.77")

    assert_problem(answer, 401, "AUTH.UNAUTHENTICATED")
    assert tallies() == [(NO_TENANT, "request.rejected", "", "", "AUTH.UNAUTHENTICATED", 1)]
    [leaf] = witnessed()
    assert (leaf["tenant"], leaf["subject"]) == ("ten_00000000000000000000000000", "nobody")
    assert "192.0.2" not in json.dumps(leaf)


@pytest.mark.req("TOOLS-18")
def test_requests_without_a_key_beyond_the_rate_write_nothing(settings: Any, db: None) -> None:
    settings.TOOLHUB_RATE_FAILED_KEYS = 3

    answers = [Client().get("/api/v1/tools", REMOTE_ADDR="192.0.2.78").status_code for _ in range(6)]

    assert answers == [401] * 3 + [429] * 3
    assert [row[-1] for row in tallies()] == [3]


@pytest.mark.req("TOOLS-18")
def test_preflights_are_told_by_agent_tool_reason_and_minute(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()

    for arguments in ({}, {"text": "x"}, {"text": 5}):
        ask(caller, ECHO, arguments)

    of = (caller.agent.tenant_id, "invocation.preflighted", caller.agent.wire_id, ECHO)
    assert tallies() == [(*of, "", 2), (*of, "SCHEMA.VALIDATION_FAILED", 1)]
    found = [(leaf["kind"], leaf["tool"], leaf["data"]["calls"]) for leaf in witnessed()]
    assert found == [("invocation.preflighted", ECHO, 2), ("invocation.preflighted", ECHO, 1)]


@pytest.mark.req("TOOLS-18")
def test_a_request_that_cannot_be_counted_is_answered_all_the_same(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(request_tallies, "tally_request", broken)

    assert_problem(Client().get("/api/v1/tools"), 401, "AUTH.UNAUTHENTICATED")
