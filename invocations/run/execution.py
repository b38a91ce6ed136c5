"""Execution: what a worker does with a call.

Claim it by compare-and-set, run the tool in the sandbox inside the recorded profile, check what came back, and end the
call. No transaction and no connection is held while the tool runs; a heartbeat keeps the lease, and a worker that has lost
its lease discards what it has.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import InterfaceError, OperationalError
from opentelemetry.trace import StatusCode

from evidence import services as evidence
from evidence.problems import ValuesErased
from invocations.decide.looks import ClaimLook
from invocations.decide.rules import check_again
from invocations.direct_runs.pool import DirectSandbox
from invocations.direct_runs.selection import is_vouched_for
from invocations.end.end_record import build_caller_principal, end_call
from invocations.end.endings import Ending
from invocations.end.obligation_enforcement import enforce_obligations
from invocations.end.outcomes import build_ending
from invocations.end.secret_leaks import withhold_leaks
from invocations.end.service_outcomes import describe_answer_file, is_unsent, may_be_sent_again
from invocations.files.services import load_run_files
from invocations.metrics.call_metrics import count_side_effect, record_queue_wait
from invocations.models import UNSENT, Invocation, State, build_box_name
from invocations.problems import CallCancelled, OutcomeUnknown, RunCancelled, find_cut_remedy
from invocations.queue.claims import claim_next_call, places
from invocations.queue.retries import derive_tool_key, may_run_again, requeue_call
from invocations.queue.run_rows import INPUT
from invocations.run.call_tokens import add_credential, fetch_call_token, follow_token
from invocations.run.lease_heartbeat import keep_lease
from invocations.run.live_output import LiveReport
from invocations.run.remote_listings import build_request, follow_listing
from invocations.run.sent_files import load_sent_files
from invocations.run.service_credentials import check_credentials, find_passwords, list_hidden_texts
from invocations.run.staged_packages import find_run_image, stage_package
from invocations.run_profiles.services import UnreadableProfile, load_profile
from invocations.sandbox.base import BoxKey, Profile, RunStatus, SandboxCall
from invocations.sandbox.factory import current_sandbox
from invocations.step_log import StepLog
from invocations.tool_files.services import load_tool_files
from kernel import names
from kernel.database.connections import release_connection
from kernel.fault_injection import inject_fault
from kernel.ids import encode
from kernel.names import HEADER_REQUEST_ID
from kernel.observability.log_context import bind_log_context
from kernel.observability.telemetry import current_trace, extract_context, read_trace_id, tracer
from kernel.problems import DatabaseUnavailable, Internal, Problem
from registry.decision_context import load_decision_context
from registry.dependencies import find_dependency_folder
from registry.installations.services import settings_for_run
from registry.versions.compiler import compiled_version
from unitools.mcp_listings import compute_json_digest

if TYPE_CHECKING:
    from evidence.models import Snapshot
    from invocations.sandbox.base import Limits, RunOutcome, TenantFile
    from registry.models import ToolVersion
    from registry.versions.compiler import CompiledVersion
    from unitools.capabilities import Capabilities
    from unitools.manifest import Manifest

log = logging.getLogger("toolhub.worker")
WRITE_AGAIN_S = 0.5


def read_profile(invocation: Invocation) -> Profile:
    """The profile that preflight recorded; the worker adds nothing to it, and guesses nothing about one of another version."""
    try:
        return load_profile(invocation)
    except UnreadableProfile as error:
        log.error("The profile of %s cannot be read: %s", invocation.wire_id, error)  # noqa: TRY400  the sentence says all
        raise CallCancelled(
            "What this call may reach is not what was decided: the stored profile is gone, or was changed. Nothing ran.",
            remedy="Make a new call, under a new key if this one had one. Whoever keeps the hub finds more in its log.",
        ) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        log.warning("The profile of %s cannot be read: %r", invocation.wire_id, error)
        raise CallCancelled(
            "This call was accepted by another version of the hub, which wrote down differently what it may reach. Nothing ran.",
            remedy="Make a new call, under a new key if this one had one.",
        ) from error


def build_box_key(invocation: Invocation, dependencies: str) -> BoxKey:
    """Whose box this is: the tenant's that calls, for this code and no other."""
    version = invocation.version
    assert version is not None
    return BoxKey(
        tenant=str(invocation.tenant_id),
        code=_code_of(version),
        dependencies=dependencies,
        principal=str(invocation.agent_id) if version.view.isolated_by_agent else "",
    )


def _code_of(version: ToolVersion) -> str:
    """A box that imports a server ahead imports it as one start asks for; another tool of the same capsule may ask for another. So may
    another operation: a box is loaded with one."""
    answers = version.view.server_start or version.view.operation or version.view.remote
    return version.build_digest if answers is None else f"{version.build_digest}+{compute_json_digest(answers)}"


def _input_of(invocation: Invocation) -> Snapshot:
    rows = invocation.run_rows
    found = INPUT.all(invocation_id=invocation.pk) if rows is None else rows.inputs
    if not found:
        raise ValuesErased()
    return found[0]


def build_sandbox_call(invocation: Invocation, package: bytes) -> SandboxCall:
    assert invocation.version is not None
    sealed = evidence.open_values(_input_of(invocation))
    envelope = sealed["envelope"]
    config, secrets = settings_for_run(
        tenant_id=invocation.tenant_id,
        name=invocation.tool,
        version=invocation.version,
        found=invocation.run_rows.installations if invocation.run_rows else None,
    )
    dependencies = find_dependency_folder(invocation.version) or ("", None)
    reach = read_profile(invocation).capabilities
    within = reach.secrets  # what grant and policy left of those that the manifest names
    secrets = {name: value for name, value in secrets.items() if name in within}
    manifest = invocation.version.view
    secrets |= fetch_call_token(invocation, manifest)
    if manifest.is_by_gate:
        check_credentials(manifest, secrets)
    context = {
        "call_id": invocation.wire_id,
        "tool_id": invocation.tool,
        "tool_version": invocation.version.version,
        "locale": envelope["locale"],
        "currency": envelope["currency"],
        "timezone": envelope["timezone"],
        "request_id": envelope["request_id"],
        "session_id": envelope["session_id"],
        "client": envelope["client"],
        "dry_run": invocation.dry_run,
        "idempotency_key": derive_tool_key(invocation) if invocation.keyed else None,
        "started_at": invocation.created_at.isoformat(),
        "now": (invocation.started_at or invocation.created_at).isoformat(),
        "seed": sealed.get("seed"),
    }
    return SandboxCall(
        name=build_box_name(invocation),
        package=package,
        module=invocation.version.view.module,
        entry=invocation.version.view.entry,
        arguments=evidence.json_bytes(sealed["arguments"]),
        context=context,
        labels={"toolhub.tool": invocation.tool},
        key=build_box_key(invocation, dependencies[0]),
        dependencies=dependencies[1],
        files=_load_files(invocation, manifest, reach),
        sent_files=load_sent_files(invocation, manifest, sealed["arguments"]),
        config=config,
        secrets=secrets,
        program=invocation.version.view.program,
        server=invocation.version.view.server_start,
        asks=build_request(invocation),
        operation=add_credential(manifest.operation, manifest),
        remote=add_credential(manifest.remote, manifest),
        hidden=list_hidden_texts(manifest, secrets),
        image=find_run_image(invocation.version),
        trusted=is_vouched_for(invocation.version),
    )


def _load_files(invocation: Invocation, manifest: Manifest, reach: Capabilities) -> tuple[TenantFile, ...]:
    """What is below ``/data``: what the tool keeps, or those of the tenant that the run may read."""
    if manifest.state is not None:
        return load_tool_files(invocation, manifest)
    return load_run_files(reach, tenant_id=invocation.tenant_id) if reach.fs else ()


def check_still_allowed(invocation: Invocation) -> None:
    """What allowed the call may have been taken back while it waited: a stop, a pause or a revocation counts at once."""
    rows = invocation.run_rows
    decision_context = load_decision_context(
        tenant_id=invocation.tenant_id,
        agent_id=invocation.agent_id,
        key_id=invocation.key_id,
        connection_id=invocation.connection_id,
        tool=invocation.tool,
        now=rows.at if rows else None,
        row=rows.deciding if rows else None,
    )
    check_again(ClaimLook(decision_context, invocation))


def execute_call(invocation: Invocation) -> Ending:
    """Run the tool and judge the result. Every failure is an ending; nothing is raised for what a tool does."""
    assert invocation.version is not None
    compiled = compiled_version(invocation.version.pk)
    invocation.version.manifest = compiled.manifest.document  # for_work() has left it out
    steps = StepLog(invocation.created_at)
    queued_from = max((step["end_ms"] for step in invocation.steps), default=0.0)
    queued_ms = round(max(0.0, steps.now_ms() - queued_from), 3)
    steps.add("queue.wait", "control", queued_from, steps.now_ms())
    record_queue_wait(queued_ms / 1000, invocation.work_class)
    try:
        with steps.step("worker.recheck"):
            check_still_allowed(invocation)
    except Problem as problem:
        return Ending(state=State.CANCELLED, problem=problem, ran=False, steps=steps.steps)
    except (OperationalError, InterfaceError) as error:
        return _not_begun(invocation, error, steps)
    try:
        with steps.step("sandbox.prepare"):
            package = stage_package(invocation.version)
            call, profile = build_sandbox_call(invocation, package), read_profile(invocation)
    except CallCancelled as problem:
        return Ending(state=State.CANCELLED, problem=problem, ran=False, steps=steps.steps)
    except Problem as problem:
        return Ending(state=State.FAILED, problem=problem, ran=False, steps=steps.steps)
    except (OperationalError, InterfaceError) as error:
        return _not_begun(invocation, error, steps)
    release_connection()  # nothing of the database is held while the tool runs
    # Also while its result is judged: to look through what it left may take longer than a lease.
    with keep_lease(invocation) as watch:
        outcome = _run(invocation, call, profile, steps, queued_ms=queued_ms)
        if outcome.box and invocation.version.side_effect != "None":
            count_side_effect(boxed=outcome.image != DirectSandbox.image)
        if watch.given_up and outcome.status is RunStatus.CANCELLED and not outcome.nothing_ran:
            lost = OutcomeUnknown(remedy=find_cut_remedy(invocation.version))
            state = State.OUTCOME_UNKNOWN
            ending = Ending(state=state, problem=lost, outcome=outcome, inputs=call.files, steps=steps.steps)
            return replace(ending, sent_files=call.sent_files)
        return _judged(invocation, outcome, call, profile.limits, compiled, steps)


def _not_begun(invocation: Invocation, error: Exception, steps: StepLog) -> Ending:
    log.warning("%s was not begun, since the database does not answer: %s", invocation.wire_id, error)
    return Ending(state=State.CANCELLED, problem=DatabaseUnavailable(), ran=False, steps=steps.steps)


def _run(
    invocation: Invocation, call: SandboxCall, profile: Profile, steps: StepLog, *, queued_ms: float
) -> RunOutcome:
    span_name = names.SPAN_TOOL_EXECUTION.format(tool_id=invocation.tool)
    with tracer.start_as_current_span(span_name, context=extract_context(invocation.trace)) as span:
        span.set_attributes(
            {
                names.ATTR_OPERATION: "execute_tool",
                names.ATTR_TOOL_NAME: invocation.tool,
                names.ATTR_TOOL_TYPE: "function",
                names.ATTR_AGENT_ID: encode("agt", invocation.agent_id),
                names.ATTR_CALL_ID: invocation.wire_id,
                names.ATTR_TENANT: str(invocation.tenant_id),
                names.ATTR_QUEUE_MS: queued_ms,
            }
        )
        call = replace(call, context=call.context | {"traceparent": current_trace().get("traceparent", "")})
        begin = steps.now_ms()
        with LiveReport(invocation, call.secrets) as live:
            inject_fault("run.before")
            outcome = current_sandbox().run(profile, call, live)
            inject_fault("run.after")
        steps.add(
            "sandbox.execute",
            "tool",
            begin,
            steps.now_ms(),
            status="ok" if outcome.status == "ok" else "failed",
            note=str(outcome.status),
        )
        took: dict[str, float] = {}
        for name, begin_ms, end_ms in outcome.steps:
            cut = name == "load" and outcome.status is RunStatus.LOAD_TIMED_OUT
            steps.add(f"sandbox.{name}", "tool", begin + begin_ms, begin + end_ms, status="failed" if cut else "ok")
            took[name] = took.get(name, 0.0) + end_ms - begin_ms
        for name, ms in took.items():
            span.set_attribute(names.ATTR_STEP_MS.format(step=name), round(ms, 3))
        span.set_attribute(names.ATTR_OUTCOME, str(outcome.status))
        span.set_attribute(names.ATTR_ISOLATION, outcome.level)
        if outcome.status is not RunStatus.OK:
            span.set_attribute(names.ATTR_ERROR, str(outcome.status))
            span.set_status(StatusCode.ERROR)
    return outcome


def _judged(
    invocation: Invocation,
    outcome: RunOutcome,
    call: SandboxCall,
    limits: Limits,
    compiled: CompiledVersion,
    steps: StepLog,
) -> Ending:
    assert invocation.version is not None
    outcome, leak = withhold_leaks(outcome, call.secrets)
    outcome, partial_leak = withhold_leaks(outcome, find_passwords(compiled.manifest, call.secrets))
    leak = leak or partial_leak
    if outcome.status is RunStatus.START_FAILED:
        log.error("No sandbox for %s: %s", invocation.wire_id, outcome.error_message)
    if outcome.status is RunStatus.CANCELLED and _cancel_was_asked(invocation):
        ending = _cancelled(invocation.version, outcome, steps)
    elif leak is not None:
        ending = Ending(state=State.FAILED, problem=leak, outcome=outcome, steps=steps.steps)
    else:
        ending = build_ending(invocation.version, outcome, steps, limits=limits, limiters=invocation.limiters)
    ending.inputs, ending.sent_files = call.files, call.sent_files
    if invocation.obligations:
        validator = compiled.output_validator
        ending = enforce_obligations(
            ending, invocation.obligations, call_id=invocation.wire_id, validator=validator, steps=steps
        )
    return describe_answer_file(ending, compiled.manifest)


def _cancel_was_asked(invocation: Invocation) -> bool:
    try:
        return Invocation.objects.filter(pk=invocation.pk, cancel_asked_at__isnull=False).exists()
    except (OperationalError, InterfaceError) as error:
        log.warning("Whether somebody cancelled %s cannot be asked: %s", invocation.wire_id, error)
        return False


def _cancelled(version: ToolVersion, outcome: RunOutcome, steps: StepLog) -> Ending:
    ran = not (outcome.nothing_ran or is_unsent(version.view, outcome))
    if outcome.nothing_ran:
        problem = CallCancelled("This call was cancelled before its tool was run.")
    elif not ran:
        remedy = "Call again if it is still wanted. Nothing took place."
        problem = CallCancelled("This call was cancelled before anything was sent to the service.", remedy=remedy)
    else:
        remedy = find_cut_remedy(version)
        problem = CallCancelled("This call was cancelled while it ran.", remedy=remedy)
    return Ending(state=State.CANCELLED, problem=problem, outcome=outcome, ran=ran, steps=steps.steps)


def write_ending(invocation: Invocation, ending: Ending) -> bool:
    """End the call. A database that does not answer for a moment costs no result: while nobody else has closed the call, it is
    tried again.
    """
    until = time.monotonic() + settings.TOOLHUB_LEASE_S
    while True:
        try:
            return _write_ending(invocation, ending)
        except (OperationalError, InterfaceError) as error:
            if time.monotonic() + WRITE_AGAIN_S > until:
                raise  # the sweeper closes the call when the database answers again
            log.warning("The ending of %s was not written, trying again: %s", invocation.wire_id, error)
            release_connection()
            time.sleep(WRITE_AGAIN_S)


def _write_ending(invocation: Invocation, ending: Ending) -> bool:
    """What cannot be stored as it is ends the call too, at once and not when its lease has run out."""
    actor = build_caller_principal(invocation)
    try:
        return end_call(invocation, ending, actor=actor, attempt=invocation.attempt)
    except (OperationalError, InterfaceError):
        raise
    except Problem as problem:  # the tenant's files have no room for what the call has made
        refused = Ending(
            state=State.FAILED, problem=problem, outcome=ending.outcome, inputs=ending.inputs, steps=ending.steps
        )
        refused.sent_files = ending.sent_files  # they have left all the same
        return end_call(invocation, refused, actor=actor, attempt=invocation.attempt)
    except Exception as error:
        log.exception("The ending of %s cannot be stored", invocation.wire_id, exc_info=error)
        lesser = Ending(state=State.FAILED, problem=Internal())
        return end_call(invocation, lesser, actor=actor, attempt=invocation.attempt)


def run_queued_calls() -> None:
    """Run the call whose turn it is. Called for each message; a message too many does no harm.

    Each call has a message of its own, so there is nothing more to do after it, but where it was queued again, or its end lets another
    begin whose message is spent: one that found no place here, or one of a tool that takes one call at a time.
    """
    while not current_sandbox().closing:  # wake-ups for what waits then are sent again, for whoever goes on
        with claim_next_call() as invocation:
            if invocation is None:
                return
            queued_again = run_claimed_call(invocation)
        if not (queued_again or places.has_missed() or invocation.serial):
            return


def run_claimed_call(invocation: Invocation) -> bool:
    """Run a call that this worker has claimed, and end it. True where it was queued again instead."""
    known = {
        "request_id": invocation.trace.get(HEADER_REQUEST_ID.lower(), ""),
        "call_id": invocation.wire_id,
        "tenant": str(invocation.tenant_id),
    }
    with bind_log_context(**known, trace_id=read_trace_id(invocation.trace)):
        return _run_claimed(invocation)


def _is_run_again(invocation: Invocation, ending: Ending) -> bool:
    """Whether the call was queued again in place of its end."""
    version = invocation.version
    if version is not None and may_be_sent_again(version.view, ending.outcome):
        because = ending.problem.reason if ending.problem else OutcomeUnknown.reason
        if may_run_again(invocation, is_unsent=True) and requeue_call(invocation, because=because, status=UNSENT):
            return True
    cut_off = ending.problem if isinstance(ending.problem, OutcomeUnknown | RunCancelled) else None
    return bool(cut_off and may_run_again(invocation) and requeue_call(invocation, because=cut_off.reason))


def _run_claimed(invocation: Invocation) -> bool:
    inject_fault("claim.committed")
    try:
        ending = execute_call(invocation)
    except CallCancelled as problem:  # before it ran, by its caller or because the lease was lost
        ending = Ending(state=State.CANCELLED, problem=problem, ran=False)
    except Exception as error:
        # The boundary of the worker: whatever it was, the call gets its End and the stack goes to the log.
        log.exception("Unmapped exception while running %s", invocation.wire_id, exc_info=error)
        ending = Ending(state=State.FAILED, problem=Internal())
    if _is_run_again(invocation, ending):
        return True
    if not write_ending(invocation, ending):
        log.warning(
            "%s was ended by somebody else; the result of attempt %s is discarded",
            invocation.wire_id,
            invocation.attempt,
        )
    follow_listing(invocation, ending)
    follow_token(invocation, ending)
    return False
