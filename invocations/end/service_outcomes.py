"""Service outcomes: what the gate's record of an operation says about how its call ended.

The gate is believed: whether a byte left, which status came, whether the answer was whole. What the box says is believed as any
tool is: the result, or the service's words in place of one.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from invocations.end.egress_report import find_exchange
from invocations.end.endings import Ending
from invocations.end.problems import ToolSaysUpstreamError
from invocations.models import State
from invocations.problems import RunCancelled, ToolDrifted
from invocations.sandbox.base import RunStatus
from invocations.sandbox.egress.denial_reasons import DenialReason
from invocations.sandbox.problems import (
    ServiceAnswerLost,
    ServiceAnswerUnusable,
    ServiceBusy,
    ServiceDenied,
    ServiceFailed,
    ServiceRedirected,
    ServiceUnreachable,
    ServiceUntrusted,
)
from registry.installations.drift import PARTS

if TYPE_CHECKING:
    from invocations.sandbox.base import ConnectionRecord, RunOutcome
    from invocations.step_log import StepLog
    from kernel.problems import Problem
    from registry.models import ToolVersion
    from unitools.manifest import Manifest

DRIFTED = "TOOL_DRIFTED"  # as the box calls it
_UNAVAILABLE = 503
_DENIED, _BUSY = (401, 403, 407), (429, _UNAVAILABLE)
_NOBODY_THERE = (DenialReason.UNRESOLVED, DenialReason.UNREACHABLE)
_OURS = (DenialReason.TOO_MUCH, DenialReason.BAD_ANSWER)  # the gate has ended it, and not the service
# These ended by the hub's own doing, or its host's.
_CUT_SHORT = (RunStatus.LOST, RunStatus.CANCELLED)
# The box had the whole answer and could make no result of it.
_NO_RESULT = frozenset(
    {
        RunStatus.RAISED,
        RunStatus.BAD_RESULT,
        RunStatus.RESULT_TOO_LARGE,
        RunStatus.OUT_OF_MEMORY,
        RunStatus.LOG_FLOOD,
        RunStatus.EXITED,
    }
)
_MAX_RETRY_AFTER_S = 24 * 3600


def is_unsent(manifest: Manifest, outcome: RunOutcome | None) -> bool:
    """Whether the gate vouches that nothing of the call's request has left."""
    if not manifest.is_by_gate or outcome is None or not outcome.connections_known:
        return False
    exchange = find_exchange(outcome)
    return exchange is None or exchange.service is None or not (exchange.service.left and exchange.service.counts)


def may_be_sent_again(manifest: Manifest, outcome: RunOutcome | None) -> bool:
    """Whether a run that was cut short may be made again by the hub, key or no key: nothing of it has left."""
    if outcome is None or outcome.nothing_ran:
        return False
    return outcome.status in _CUT_SHORT and is_unsent(manifest, outcome)


def changes_something(manifest: Manifest) -> bool:
    """Whether it matters if the service was asked once or twice."""
    return manifest.side_effect not in ("None", "Read")


def is_of_mcp_server(manifest: Manifest) -> bool:
    """Whether a server answers, of a package or somewhere else."""
    return manifest.server is not None or manifest.remote is not None


def is_repeatable(manifest: Manifest) -> bool:
    """Whether the same call may be made again by whoever does not know how far it came: it only reads, or honours its key. No key
    reaches a server of MCP, whatever the manifest of an older version says."""
    return not changes_something(manifest) or (manifest.idempotency == "keyed" and not is_of_mcp_server(manifest))


def is_service_result(value: Any) -> bool:
    """Whether it is what the interpreter returns, whatever the document says of the body."""
    return isinstance(value, dict) and type(value.get("status")) is int and "body" in value


def describe_answer_file(ending: Ending, manifest: Manifest) -> Ending:
    """With what is known of an answer that is kept as an artifact: as it is kept, after all obligations."""
    output = ending.output
    if manifest.operation is None or len(ending.artifacts) != 1 or not isinstance(output, dict):
        return ending
    body, [kept] = output.get("body"), ending.artifacts
    if not isinstance(body, dict) or body.keys() != {"artifact"}:
        return ending
    said = {
        "artifact": kept.name,
        "media_type": kept.media_type,
        "bytes": len(kept.content),
        "digest": "sha256:" + hashlib.sha256(kept.content).hexdigest(),
    }
    return replace(ending, output=output | {"body": said})


def build_service_ending(version: ToolVersion, outcome: RunOutcome, steps: StepLog) -> Ending | None:
    """How a run of an operation ended that gave no result, where the gate knows more than the box; None: as any run."""
    manifest = version.view
    if not manifest.is_by_gate or outcome.status is RunStatus.OK:
        return None
    if is_unsent(manifest, outcome):
        return _build_unsent_ending(manifest, outcome, steps)
    exchange = find_exchange(outcome)
    if exchange is None or exchange.service is None:  # the gate has not answered
        lost = outcome.status is RunStatus.DOMAIN_ERROR and changes_something(manifest)
        return _unknown(outcome, steps) if lost else None
    if exchange.service.complete or _is_read_whole(manifest, outcome, exchange):
        return _build_answered_ending(manifest, outcome, steps, exchange.service.status)
    status = exchange.service.status
    if exchange.why in _OURS and status and outcome.status is RunStatus.DOMAIN_ERROR:
        return _failed(ServiceAnswerUnusable(details={"status": status, "gate": exchange.why}), outcome, steps)
    if outcome.status in (RunStatus.TIMED_OUT, RunStatus.CANCELLED):
        return None  # whoever ended it is told to look whether it took place
    if changes_something(manifest):
        return _unknown(outcome, steps)
    said = "The service hung up before its answer was whole. The operation only reads, so it can be called again."
    return _failed(ToolSaysUpstreamError(said), outcome, steps)


def _is_read_whole(manifest: Manifest, outcome: RunOutcome, exchange: ConnectionRecord) -> bool:
    """Whether the box has read an answer to its end which the server then left open: events may go on behind it."""
    assert exchange.service is not None
    is_said = outcome.status is RunStatus.DOMAIN_ERROR and outcome.error_details.get("cut") is not True
    return manifest.remote is not None and is_said and exchange.service.status == 200 and not exchange.why


def _build_unsent_ending(manifest: Manifest, outcome: RunOutcome, steps: StepLog) -> Ending | None:
    exchange = find_exchange(outcome)
    why = exchange.why if exchange is not None else ""
    problem: Problem
    if outcome.status is RunStatus.DOMAIN_ERROR and manifest.remote is not None and outcome.error_code == DRIFTED:
        problem = ToolDrifted(outcome.error_message, details={"changed": _list_changed(outcome.error_details)})
    elif outcome.status is RunStatus.DOMAIN_ERROR and why == DenialReason.UNTRUSTED:
        problem = ServiceUntrusted()
    elif outcome.status is RunStatus.DOMAIN_ERROR and why in _NOBODY_THERE:
        problem = ServiceUnreachable(details={"gate": why})
    elif outcome.status is RunStatus.DOMAIN_ERROR and exchange is not None and exchange.service is not None:
        problem = _describe_before_call(outcome, exchange.service.status)
    elif outcome.status in (RunStatus.LOST, RunStatus.EXITED, RunStatus.OUT_OF_MEMORY):
        problem = ServiceUnreachable("The run ended before anything was sent to the service.")
    elif outcome.status is RunStatus.CANCELLED and not outcome.nothing_ran:
        problem = RunCancelled(remedy="Call again. Nothing was sent to the service.")
        return Ending(state=State.CANCELLED, problem=problem, outcome=outcome, ran=False, steps=steps.steps)
    else:
        return None
    return Ending(state=State.FAILED, problem=problem, outcome=outcome, ran=False, steps=steps.steps)


def _list_changed(details: dict[str, Any]) -> list[str]:
    """Which parts of the tool's entry are otherwise, in words that are ours."""
    said = details.get("changed")
    return sorted(PARTS.intersection(each for each in said if isinstance(each, str))) if isinstance(said, list) else []


def _describe_before_call(outcome: RunOutcome, status: int) -> Problem:
    """What a server somewhere else answered to what comes before a call, its session or its list, so that the tool was not called."""
    details = {"status": status} if status else {}
    if status in _DENIED:
        return ServiceDenied(f"The server answered {status}: it does not take the credential.", details=details)
    if status in _BUSY:
        return ServiceBusy(f"The server answered {status}.", details=details, retry_after_s=_read_retry_after(outcome))
    if 300 <= status < 400:
        return ServiceRedirected(f"The server answered {status} and pointed to another address.", details=details)
    return ToolSaysUpstreamError(f"The tool was not called. {outcome.error_message}".strip(), details=details)


def _build_answered_ending(manifest: Manifest, outcome: RunOutcome, steps: StepLog, status: int) -> Ending | None:
    """The answer was whole. Where the box could not say what is in it, what its status says counts all the same: nobody is told of a
    tool that failed where the service did what it was asked."""
    if outcome.status in _NO_RESULT and status < 300:
        details = {"status": status, "sandbox": str(outcome.status)}
        return _failed(ServiceAnswerUnusable(details=details), outcome, steps)
    if outcome.status is not RunStatus.DOMAIN_ERROR:
        return None
    details = _keep_words(outcome.error_details) | {"status": status}
    problem: Problem
    if status < 300:
        if manifest.remote is not None and outcome.error_details.get("unusable") is not True:
            return None  # what the server itself calls an error
        problem = ServiceAnswerUnusable(outcome.error_message, details=details)
    elif status < 400:
        problem = ServiceRedirected(f"The service answered {status} and pointed to another address.", details=details)
    elif status in _DENIED:
        problem = ServiceDenied(f"The service answered {status}: it does not take the credential.", details=details)
    elif status in _BUSY and not _is_doubtful(manifest, status, after := _read_retry_after(outcome)):
        problem = ServiceBusy(f"The service answered {status}.", details=details, retry_after_s=after)
    elif status < 500:
        return None  # its lawful no, in the service's own words
    elif changes_something(manifest):
        problem = ServiceFailed(f"The service answered {status}.", details=details)
    else:
        problem = ToolSaysUpstreamError(f"The service answered {status}.", details=details)
    return _failed(problem, outcome, steps)


def _read_retry_after(outcome: RunOutcome) -> int | None:
    after = outcome.error_details.get("retry_after_s")
    is_known = isinstance(after, int) and not isinstance(after, bool) and 0 <= after <= _MAX_RETRY_AFTER_S
    return after if is_known else None


def _is_doubtful(manifest: Manifest, status: int, after: int | None) -> bool:
    """Whether a 503 may be what a proxy says of a service that it has asked: again would be twice, and nobody invites to it."""
    return status == _UNAVAILABLE and after is None and not is_repeatable(manifest)


def _keep_words(details: dict[str, Any]) -> dict[str, Any]:
    return {name: details[name] for name in ("body", "body_cut") if name in details}


def _failed(problem: Problem, outcome: RunOutcome, steps: StepLog) -> Ending:
    return Ending(state=State.FAILED, problem=problem, outcome=outcome, steps=steps.steps)


def _unknown(outcome: RunOutcome, steps: StepLog) -> Ending:
    return Ending(state=State.OUTCOME_UNKNOWN, problem=ServiceAnswerLost(), outcome=outcome, steps=steps.steps)
