"""Proposal links: is it checked, kept and shown which answer of which model proposed a call?"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from access.consents.services import approve_consent
from access.models import Consent
from evidence import services as evidence
from evidence.exports.jobs import advance_next
from evidence.exports.services import make_export
from evidence.exports.storage import iter_pieces
from evidence.models import Fact, Snapshot
from invocations.models import Invocation
from invocations.proposals.proposal_links import MAX_PROPOSED
from llm.answers import ChatDelta, FinishReason, ToolCallDelta
from llm.problems import ProviderQuotaExhausted
from llm.usage import Usage
from tests.conftest import make_caller
from tests.support.calls import PAIR, assert_problem, kinds_of, row_of, writer
from tests.support.dispatches import ECHO, MANGLED, chat, rows, send, statuses
from tests.support.erasures import forget
from tests.support.evidence_logs import seal_everything, signing_with
from tests.support.model_calls import ask, say
from tests.support.policies_in_force import permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db
CANARY = "canary-9913cc"


def proposals(*calls: tuple[str, str, Any]) -> tuple[ChatDelta, ...]:
    """An answer that proposes these: id, tool, arguments."""
    deltas = [
        ChatDelta(
            tool_call=ToolCallDelta(
                index=n, call_id=id, name=name, arguments=given if isinstance(given, str) else json.dumps(given)
            ),
            model="script-001",
        )
        for n, (id, name, given) in enumerate(calls)
    ]
    return (*deltas, ChatDelta(finish_reason=FinishReason.TOOL, usage=Usage(10, 5)))


@pytest.fixture
def propose(
    caller: Caller, model: Tool, bench: ProviderBench, ready_for_models: ScriptedSandbox
) -> Callable[..., Invocation]:
    """``propose((id, tool, arguments), …)``: a call of the model that was answered with these proposals."""

    def make(*calls: tuple[str, str, Any], **envelope: Any) -> Invocation:
        bench.scripts = [proposals(*calls or [("call_1", ECHO, {"text": "hello"})])] * 10
        if bench.provider is not None:
            bench.provider.chat.scripts = [*bench.provider.chat.scripts[: len(bench.requests)], *bench.scripts]
        answer = ask(caller, say("Which?"), **envelope)
        assert answer.status_code == 200, answer.json()
        return row_of(answer)

    return make


def invoke(caller: Caller, answer: Invocation | str, call_id: str | None = "call_1", **more: Any) -> Any:
    named = {"invocation": answer if isinstance(answer, str) else answer.wire_id}
    arguments, tool = more.pop("arguments", {"text": "hello"}), more.pop("tool", ECHO)
    if call_id is not None:
        named["call_id"] = call_id
    return caller.invoke(tool, arguments, proposed_by=named, **more)


def leaf_of(call: Invocation, end: str) -> dict[str, Any]:
    fact = Fact.objects.get(invocation_id=call.pk, kind__endswith=end)
    found: dict[str, Any] = json.loads(bytes(fact.leaf))["data"]
    return found


@pytest.mark.req("LLM-3", "TOOLS-18")
def test_the_begin_of_a_call_names_the_answer_whose_end_has_the_same_hash(
    caller: Caller, propose: Callable[..., Invocation]
) -> None:
    asked = propose(("call_0", ECHO, {"text": "no"}), ("call_1", ECHO, {"text": "hello"}))

    answer = invoke(caller, asked)

    assert answer.status_code == 200, answer.json()
    call = row_of(answer)
    named, proposed = leaf_of(call, ".began")["proposed_by"], leaf_of(asked, ".ended")["model"]["proposed"]
    assert named == {"invocation": asked.wire_id, "model": asked.tool, "proposal": proposed[1]}
    assert (call.origin, call.proposed_by_id) == ("llm", asked.pk)
    assert len(set(proposed)) == 2


@pytest.mark.req("LLM-11")
def test_neither_leaf_holds_a_word_of_what_was_proposed(
    caller: Caller, model: Tool, propose: Callable[..., Invocation]
) -> None:
    asked = propose((f"id-{CANARY}", ECHO, {"text": CANARY}))

    call = row_of(invoke(caller, asked, f"id-{CANARY}", arguments={"text": CANARY}))

    assert call.proposed_by_id == asked.pk
    assert not [fact for fact in Fact.objects.all() if CANARY.encode() in bytes(fact.leaf)]


@pytest.mark.req("LLM-3")
@pytest.mark.parametrize(
    ("call_id", "more"),
    [
        ("call_2", {}),
        ("call_1", {"arguments": {"text": "hello!"}}),
        ("call_1", {"arguments": {}}),
        ("call_1", {"tool": "sample.tools.write"}),
    ],
)
def test_a_call_that_the_answer_did_not_propose_is_refused_and_keeps_no_link(
    caller: Caller,
    enable: Callable[..., Tool],
    propose: Callable[..., Invocation],
    sandbox: ScriptedSandbox,
    call_id: str,
    more: dict[str, Any],
) -> None:
    asked = propose()
    writer(enable)

    answer = invoke(caller, asked, call_id, **more)

    assert_problem(answer, 422, "CALL.NOT_PROPOSED")
    assert "without `proposed_by`" in answer.json()["error"]["remedy"]
    call = row_of(answer)
    assert (call.state, kinds_of(call), call.proposed_by_id) == ("denied", PAIR, None)
    assert "proposed_by" not in leaf_of(call, ".began")
    assert sandbox.calls == []


@pytest.mark.req("LLM-3")
def test_only_an_answer_of_a_model_to_this_agent_that_ended_well_proposes_anything(
    caller: Caller,
    operator: Person,
    propose: Callable[..., Invocation],
    bench: ProviderBench,
) -> None:
    asked = propose()
    tool_call = row_of(caller.invoke(ECHO, {"text": "hello"}))
    assert bench.provider is not None
    bench.provider.chat.scripts = [*bench.provider.chat.scripts[:1], (ProviderQuotaExhausted(),)]
    failed = row_of(ask(caller, say("Again?")))
    other = make_caller(operator.by, "another-agent")

    assert failed.state == "failed"
    for named in (tool_call, failed, "inv_" + "0" * 26):
        assert_problem(invoke(caller, named), 422, "CALL.NOT_PROPOSED")
    assert_problem(invoke(other, asked), 422, "CALL.NOT_PROPOSED")
    assert_problem(invoke(caller, "call_1"), 422, "SCHEMA.VALIDATION_FAILED")
    assert_problem(invoke(caller, asked, None), 422, "SCHEMA.VALIDATION_FAILED")


@pytest.mark.req("LLM-3")
def test_an_answer_that_nobody_can_read_any_more_proves_nothing(
    caller: Caller, operator: Person, auditor: Person, propose: Callable[..., Invocation]
) -> None:
    asked = propose(user_id="erika")
    assert row_of(invoke(caller, asked, user_id="erika")).proposed_by_id == asked.pk

    forget("erika", by=auditor.by)

    assert_problem(invoke(caller, asked), 422, "CALL.NOT_PROPOSED")


@pytest.mark.req("LLM-3", "TOOLS-30")
def test_one_link_stands_for_all_calls_of_a_response_that_is_dispatched(
    caller: Caller, propose: Callable[..., Invocation]
) -> None:
    asked = propose(("call_1", ECHO, {"text": "a"}), ("call_2", ECHO, {"text": "b"}))
    response = chat(("call_1", MANGLED, {"text": "a"}), ("call_2", MANGLED, {"text": "b"}))
    forged = chat(("call_1", MANGLED, {"text": "a"}), ("call_2", MANGLED, {"text": "c"}))

    both = send(caller, response, proposed_by={"invocation": asked.wire_id})
    one = send(caller, forged, proposed_by={"invocation": asked.wire_id}, request_id="test-request-2")

    assert [each.proposed_by_id for each in rows(both)] == [asked.pk, asked.pk]
    assert statuses(one) == ["ok", "invalid_arguments"]
    assert [each.proposed_by_id for each in rows(one)] == [asked.pk, None]


@pytest.mark.req("LLM-3", "TOOLS-30")
def test_a_proposal_that_is_made_by_its_own_endpoint_names_its_id_once(
    caller: Caller, propose: Callable[..., Invocation]
) -> None:
    asked, actor = propose(), {"type": "agent", "id": caller.agent.name}
    body = {"request_id": "test-request-1", "actor": actor, "name": ECHO, "arguments": '{"text": "hello"}'}

    made = caller.post("/proposals", body | {"call_id": "call_1", "proposed_by": {"invocation": asked.wire_id}})
    named = {"invocation": asked.wire_id, "call_id": "call_1"}
    torn = caller.post("/proposals", body | {"call_id": "call_9", "proposed_by": named})

    assert row_of(made).proposed_by_id == asked.pk
    assert_problem(torn, 422, "CALL.NOT_PROPOSED")


@pytest.mark.req("LLM-3")
def test_arguments_that_mean_the_same_are_the_same_however_they_are_written(
    caller: Caller, enable: Callable[..., Tool], propose: Callable[..., Invocation]
) -> None:
    asked = propose(("call_1", ECHO, '{"text": "h\\u0065llo" }'))

    assert row_of(invoke(caller, asked)).proposed_by_id == asked.pk


@pytest.mark.req("LLM-3")
def test_of_very_many_proposals_the_first_are_named_and_of_broken_ones_none(
    caller: Caller, propose: Callable[..., Invocation]
) -> None:
    asked = propose(
        ("broken", ECHO, '{"text": '), *((f"call_{n}", ECHO, {"text": str(n)}) for n in range(MAX_PROPOSED + 1))
    )

    said = leaf_of(asked, ".ended")["model"]
    assert (said["proposals"], len(said["proposed"])) == (MAX_PROPOSED + 2, MAX_PROPOSED)
    last, beyond = MAX_PROPOSED - 1, MAX_PROPOSED
    assert invoke(caller, asked, f"call_{last}", arguments={"text": str(last)}).status_code == 200
    assert_problem(invoke(caller, asked, f"call_{beyond}", arguments={"text": str(beyond)}), 422, "CALL.NOT_PROPOSED")


@pytest.mark.req("LLM-3")
def test_a_call_that_waited_for_a_person_keeps_its_link(
    caller: Caller,
    enable: Callable[..., Tool],
    operator: Person,
    propose: Callable[..., Invocation],
    bell: Bell,
    django_capture_on_commit_callbacks: Any,
) -> None:
    write = "sample.tools.write"
    writer(enable)
    asked = propose(("call_1", write, {"text": "x"}))

    held = invoke(caller, asked, tool=write, arguments={"text": "x"}, on_consent="hold", purpose="to order")
    assert held.status_code == 202, held.json()
    with django_capture_on_commit_callbacks(execute=True):
        approve_consent(consent_id=Consent.objects.get().pk, reason="I know it.", by=operator.by)
    bell.deliver()

    call = row_of(held)
    assert (call.state, call.proposed_by_id) == ("succeeded", asked.pk)
    assert leaf_of(call, ".resumed")["decision_input"]["model_verified"] == asked.tool


@pytest.mark.req("LLM-3", "LLM-12")
def test_a_policy_may_ask_which_model_proposed_a_call_and_no_caller_can_claim_it(
    caller: Caller, propose: Callable[..., Invocation]
) -> None:
    asked = propose()
    put_in_force(
        permit("proposed", tool={"matches": "sample.*"}, model_verified={"has": True, "equals": asked.tool}),
        permit("models", tool={"matches": "model.*"}),
    )

    claimed = caller.invoke(ECHO, {"text": "hello"}, client={"app": "shop", "model": asked.tool})
    proven = invoke(caller, asked)

    assert_problem(claimed, 403, "POLICY.DENY_TOOL")
    assert proven.status_code == 200, proven.json()
    assert leaf_of(row_of(proven), ".began")["decision_input"]["model_verified"] == asked.tool
    assert "model_verified" not in leaf_of(row_of(claimed), ".began")["decision_input"]


@pytest.mark.req("LLM-3", "TOOLS-14")
def test_the_preflight_of_a_call_checks_its_link_and_writes_nothing(
    caller: Caller, propose: Callable[..., Invocation]
) -> None:
    asked, actor = propose(), {"type": "agent", "id": caller.agent.name}
    before = Invocation.objects.count()
    body = {"request_id": "test-request-1", "actor": actor, "arguments": {"text": "hello"}}

    def preflight(call_id: str) -> Any:
        named = {"invocation": asked.wire_id, "call_id": call_id}
        return caller.post(f"/tools/{ECHO}/preflight", body | {"proposed_by": named}).json()["data"]

    good, bad = preflight("call_1"), preflight("call_2")

    assert good["allow"], good
    assert [each["note"] for each in good["steps"] if asked.wire_id in each["note"]]
    assert (bad["allow"], bad["problem"]["reason"]) == (False, "CALL.NOT_PROPOSED")
    assert Invocation.objects.count() == before


@pytest.mark.req("CARD-6", "LLM-3")
def test_a_call_and_an_answer_name_each_other_over_rest_and_on_their_pages(
    caller: Caller, operator: Person, propose: Callable[..., Invocation]
) -> None:
    asked = propose()
    call = row_of(invoke(caller, asked))

    own, answers = (caller.get(f"/invocations/{each.wire_id}").json()["call"] for each in (call, asked))
    assert (own["proposed_by"], answers["proposed_calls"]) == (asked.wire_id, [call.wire_id])
    assert not {"proposed_calls"} & own.keys() | {"proposed_by"} & answers.keys()
    for here, there in ((call, asked), (asked, call)):
        page = operator.client().get(reverse("invocation", args=[here.pk])).content.decode()
        assert f'href="/invocations/{there.wire_id}"' in page


@pytest.mark.req("LLM-3", "TOOLS-18")
@pytest.mark.parametrize("opens", [False, True])
def test_an_exported_log_proves_offline_which_answer_proposed_a_call(
    caller: Caller, auditor: Person, propose: Callable[..., Invocation], tmp_path: Path, opens: bool
) -> None:
    asked = propose(("call_1", ECHO, {"text": "Grüße, 中"}))
    call = row_of(invoke(caller, asked, arguments={"text": "Grüße, 中"}))
    with signing_with():
        seal_everything()
        more: dict[str, Any] = {"opens": True, "reason": "An incident is being looked into."} if opens else {}
        job = make_export(format="bundle", by=auditor.by, **more)
        while advance_next():
            pass
        job.refresh_from_db()
        (tmp_path / "b.zip").write_bytes(b"".join(iter_pieces(job)))

    command = [sys.executable, "-m", "evidence.verify", str(tmp_path / "b.zip")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin"})

    assert done.returncode == 0, done.stdout + done.stderr
    values = ", and its values are those that were proposed" if opens else ""
    assert f"proposed   {call.wire_id} by the answer of {asked.wire_id}, of {asked.tool}{values}\n" in done.stdout


@pytest.mark.req("LLM-3", "LLM-11")
def test_the_sealed_input_keeps_the_id_that_the_leaf_only_has_hashed(
    caller: Caller, propose: Callable[..., Invocation]
) -> None:
    asked = propose()

    call = row_of(invoke(caller, asked))

    sealed = evidence.open_values(Snapshot.objects.get(invocation_id=call.pk, kind="input"))
    assert sealed["envelope"]["proposed_by"] == {"invocation": asked.wire_id, "call_id": "call_1"}
