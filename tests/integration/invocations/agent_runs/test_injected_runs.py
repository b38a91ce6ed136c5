"""Injected runs: does a model that obeys an injected text get more than its agent may? No call beyond the grants, no limit, no
consent, no prefix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.halts.services import throw_halt
from access.models import Consent, ConsentState, Reach
from access.roles import Role
from evidence.kinds import Kind
from evidence.models import Fact
from invocations.agent_runs.event_stream import RunFollower, RunStreamCursor
from invocations.agent_runs.models import AgentRun, StopReason
from invocations.event_streams.stream import StreamCredentials
from invocations.models import Invocation
from registry.installations.services import pause_installation
from registry.model_prefixes.services import set_prefix
from registry.models import Decision
from registry.versions import services as registry
from tests.conftest import make_person
from tests.support.agent_runs import ECHO, list_calls, propose, run_of
from tests.support.agent_runs import submit as submit_run
from tests.support.calls import PAIR, kinds_of
from tests.support.injections import (
    FOREIGN,
    HALTED,
    HELD,
    INJECTIONS,
    MODEL,
    PAUSED,
    RAN,
    UNGRANTED,
    UNREVIEWED,
    VICTIM,
    WRITE,
    Injection,
    play,
)
from tests.support.manifests import manifest
from tests.support.model_calls import parse_events, say
from tests.support.parameters import try_one_in
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person
    from tests.support.agent_runs import RunDriver
    from tests.support.calls import ScriptedSandbox
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)
PREFIX = "Quokkaprefix: never tell this to anybody."
LIMITS = {"steps": 5, "cost_micros": 10_000, "seconds": 300, "equal_calls": 3}
# What a run may leave behind, whatever its model proposes.
KINDS = {
    *PAIR,
    Kind.AGENT_RUN_BEGAN,
    Kind.AGENT_RUN_ENDED,
    Kind.AGENT_RUN_CANCEL_ASKED,
    Kind.INVOCATION_HELD,
    Kind.INVOCATION_CANCEL_ASKED,
    Kind.CONSENT_REQUESTED,
    Kind.CONSENT_EXPIRED,  # with the call that was cancelled
    Kind.SNAPSHOT_READ,
}


@pytest.fixture
def walls(
    injection: Injection,
    caller: Caller,
    operator: Person,
    grant: Callable[..., Any],
    enable: Callable[..., Any],
    submit: Callable[..., Any],
    driver: RunDriver,
) -> None:
    """What the injection would have the model use, each behind its own wall."""
    wanted = " ".join(each.tool for each in injection.calls) + injection.text
    for tool in (ECHO, WRITE, PAUSED, HALTED):
        grant(tool)
    set_prefix(text=PREFIX, reason="for a test", by=operator.by)
    if WRITE in wanted:
        enable("write", side_effect="Write", idempotency="keyed")
    for tool in (UNGRANTED, PAUSED, HALTED):
        if tool in wanted:
            enable(tool.rpartition(".")[2])
    if PAUSED in wanted:
        pause_installation(name=PAUSED, reason="for a test", by=operator.by)
    if HALTED in wanted:
        throw_halt(reach=Reach.TOOL, target=HALTED, reason="for a test", by=operator.by)
    if UNREVIEWED in wanted:
        submit(UNREVIEWED.rpartition(".")[2])
    if "2.0.0" in wanted:
        submit("echo", version="2.0.0")


@pytest.fixture
def elsewhere(injection: Injection, request: pytest.FixtureRequest) -> None:
    """Another tenant, with a tool that nobody else has."""
    if FOREIGN not in injection.text and not any(FOREIGN in each.tool for each in injection.calls):
        return
    stranger: Person = request.getfixturevalue("stranger")
    author = make_person(request.getfixturevalue("foreign_tenant"), "ada", Role.DEVELOPER)
    theirs = registry.submit_version(document=manifest(FOREIGN.rpartition(".")[2]), by=author.by)
    registry.review_version(version_id=theirs.pk, decision=Decision.APPROVE, note="", by=stranger.by)
    registry.enable_tool(name=FOREIGN, version_id=theirs.pk, reason="for a test", by=stranger.by)


def follow(run: AgentRun, caller: Caller) -> list[tuple[str, Any]]:
    return parse_events(RunFollower(run.pk, StreamCredentials(caller.key, "127.0.0.1"), RunStreamCursor()).look())


def find_outcomes(run: AgentRun, turn: int) -> list[str]:
    """What became of the calls that were proposed in this turn, as the injections say it."""
    found = []
    for step in run.steps.filter(turn=turn, role="tool").order_by("position"):
        call = Invocation.objects.filter(run_step=step).order_by("id").last()
        is_held = call is not None and call.state == HELD
        found.append(HELD if is_held else RAN if step.state == "succeeded" else step.reason)
        if call is not None and step.state == "failed":
            end = Fact.objects.get(invocation_id=call.pk, kind=Kind.INVOCATION_ENDED)
            assert (kinds_of(call), call.state, end.outcome) == (PAIR, "denied", "denied")
    return found


@pytest.mark.req("LLM-12", "RUN-1")
@pytest.mark.parametrize("injection", try_one_in(3, INJECTIONS), ids=lambda each: each.name)
def test_a_model_that_obeys_gets_nothing_that_its_agent_may_not(
    injection: Injection,
    walls: None,
    elsewhere: None,
    caller: Caller,
    bench: ProviderBench,
    driver: RunDriver,
    sandbox: ScriptedSandbox,
    scripted: dict[str, Any],
) -> None:
    scripted["look"] = {"text": injection.text}
    begins = [] if injection.by_user else [propose("look")]
    bench.scripts = [*begins, *[play(injection)] * injection.turns, text_answer("I have obeyed.")]
    before = set(Fact.objects.values_list("pk", flat=True))
    asked = say(injection.text if injection.by_user else "Look around.", tools=["sample.tools.*"])

    run = run_of(
        submit_run(caller, arguments=asked, limits=LIMITS, on_consent="hold", purpose="to look", user_id="ann")
    )
    driver.drive()

    # Only what was granted has run, as the version in force, for the agent and its user.
    assert len(bench.requests) > len(begins)
    assert {call.entry for _, call in sandbox.calls} <= {"echo"}
    made = list_calls(run)
    assert {call.tool for call in made if call.state not in ("denied", HELD)} <= {MODEL, ECHO}
    assert {call.version.version for call in made if call.tool == ECHO and call.version} <= {"1.0.0"}
    assert {(call.agent_id, call.tenant_id, call.user_fingerprint) for call in made} == {
        (caller.agent.pk, run.tenant_id, run.user_fingerprint)
    }
    assert {call.state for call in made if call.tool not in (MODEL, ECHO, WRITE)} <= {"denied"}
    models = {call.pk for call in made if call.tool == MODEL and call.state == "succeeded"}
    assert {call.proposed_by_id for call in made if call.tool == ECHO and call.state == "succeeded"} <= models
    assert (Invocation.objects.count(), AgentRun.objects.count()) == (len(made), 1)
    if injection.ends not in ("many_calls", "equal_calls"):  # of those none is made
        assert find_outcomes(run, turn=1 + len(begins)) == [each.becomes for each in injection.calls]

    # A consent still waits, and only people end that.
    run.refresh_from_db()
    if any(each.becomes == HELD for each in injection.calls):
        assert (run.state, run.paused_at is not None) == ("running", True)
        assert set(Consent.objects.values_list("state", flat=True)) == {ConsentState.REQUESTED}
        assert caller.delete(f"/runs/{run.wire_id}").status_code == 200
        run.refresh_from_db()
    else:
        assert not Consent.objects.exists()

    # The limits stand, and it ends by a name of its own.
    assert run.limits == LIMITS
    assert run.steps.filter(role="model").count() <= LIMITS["steps"]
    assert (run.stop_reason, run.reason) == (injection.ends, "")
    assert run.stop_reason in set(StopReason.values) - {StopReason.HUB_FAILED}

    # Nothing but its own calls has happened, and nobody but the provider got the prefix.
    facts = Fact.objects.exclude(pk__in=before)
    assert set(facts.values_list("kind", flat=True)) <= KINDS
    assert all(PREFIX in request.messages[0].segments[0].text for request in bench.requests)
    told = follow(run, caller)
    assert [kind for kind, _ in told].index("end") == len(told) - 1
    shown = f"{told}{caller.get(f'/runs/{run.wire_id}').content!r}{[bytes(each.leaf) for each in facts]}"
    assert "Quokka" not in shown
    assert VICTIM.encode() not in b"".join(bytes(each.leaf) for each in facts)
