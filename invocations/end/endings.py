"""Endings: how a call ended, before it is written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from invocations.artifacts.description import DescribedArtifact
    from invocations.end.output_repair import Repair
    from invocations.model_calls.model_facts import ModelReport
    from invocations.models import State
    from invocations.sandbox.base import RunOutcome, SentFile, TenantFile
    from kernel.problems import Problem

NOTHING = object()
PLAN = "post_execution_plan"


@dataclass(slots=True)
class Ending:
    """How a call ended. ``output`` is what the caller gets; NOTHING when there is none."""

    state: State
    problem: Problem | None = None
    output: Any = NOTHING
    post_execution_plan: Any = None
    warnings: list[str] = field(default_factory=list)
    ttl_seconds: int | None = None
    sources: list[dict[str, str]] = field(default_factory=list)
    outcome: RunOutcome | None = None
    model: ModelReport | None = None  # of a call of a model that was asked
    obligations: list[dict[str, Any]] = field(default_factory=list)  # what was done to the output: access.redaction
    # What the call leaves for its caller, if it ends well.
    artifacts: list[DescribedArtifact] = field(default_factory=list)
    inputs: tuple[TenantFile, ...] = ()  # the tenant's files that the run was given
    sent_files: tuple[SentFile, ...] = ()  # those that its request to a service was to carry
    repairs: list[Repair] = field(default_factory=list)  # what was done before that, so that it matches its schema
    raw: Any = NOTHING  # the output before any of it; only a keyed hash of it is kept
    unlike_document: bool = (
        False  # a service's answer that does not match the schema of its document, and was passed on
    )
    ran: bool = True  # False when it is certain that the tool did not begin: then the idempotency key is free again
    steps: list[dict[str, Any]] = field(default_factory=list)


def split_plan(output: Any) -> tuple[Any, Any]:
    """A tool's output without its plan, and the plan; None when there is none."""
    if not isinstance(output, dict) or PLAN not in output:
        return output, None
    return {name: each for name, each in output.items() if name != PLAN}, output[PLAN]
