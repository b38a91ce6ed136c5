"""Run words: what the model of an agent run says at this moment, before its answer is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from invocations.agent_runs.models import AgentRunStepRole
from invocations.model_calls.live_words import get_word_store
from invocations.models import Invocation, State

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.agent_runs.models import AgentRun, AgentRunStep


def read_run_words(run: AgentRun) -> str:
    """What the model has said so far in the call that is open; empty where none is, or where nothing may be told before its end."""
    asking = Invocation.objects.filter(run_step__run=run, run_step__role=AgentRunStepRole.MODEL, state=State.RUNNING)
    call_id = asking.order_by("-id").values_list("pk", flat=True).first()
    return "" if call_id is None else _decode(get_word_store().read(call_id))


class ToldWords:
    """How much of what a model says in one call a follower was told."""

    def __init__(self, step: AgentRunStep, call_id: UUID) -> None:
        self._step, self._call_id = step, call_id
        self._bytes = self._characters = 0

    def find_more(self) -> dict[str, Any] | None:
        """What was said since the last time, and behind how many characters it belongs; None where there is nothing."""
        words = get_word_store().read(self._call_id, after=self._bytes)
        if not words:
            return None
        text, offset = _decode(words), self._characters
        self._bytes, self._characters = self._bytes + len(words), offset + len(text)
        return {"turn": self._step.turn, "step": self._step.position, "offset": offset, "text": text}


def _decode(words: bytes) -> str:
    """Whole characters were written; a store that was emptied meanwhile may begin within one."""
    return words.decode(errors="replace")
