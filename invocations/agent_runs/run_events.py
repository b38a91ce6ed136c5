"""Run events: what whoever follows an agent run is told, numbered in the order in which it became known."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from django.db import transaction

from invocations.agent_runs.models import AgentRunEvent
from invocations.answer.wake_ups import get_waker

if TYPE_CHECKING:
    from invocations.agent_runs.models import AgentRun, AgentRunEventKind, AgentRunStep


def note_event(run: AgentRun, kind: AgentRunEventKind, step: AgentRunStep | None = None) -> None:
    """Tell whoever follows the run, once this is committed. The run's row is locked by the caller, so numbers have no gaps."""
    last = AgentRunEvent.objects.filter(run=run).order_by("-number").values_list("number", flat=True).first()
    AgentRunEvent.objects.create(run=run, number=(last or 0) + 1, kind=kind, step=step, at=datetime.now(UTC))
    transaction.on_commit(partial(get_waker().wake, run.pk))
