"""Run event stream: how whoever began an agent run follows it, and resumes where its connection broke off.

The id of an event is its number, so that whoever comes back with it misses nothing and gets nothing twice. What a model has said is
told as a whole, with its call. What it says meanwhile is passing news, without an id: pieces with the place at which they belong,
from the first word for whoever comes late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evidence.models import Snapshot, SnapshotKind
from evidence.services import reveal_values
from invocations.agent_runs.answers import READ_OWN_ANSWER, build_run_answer, describe_step, group_calls_by_step
from invocations.agent_runs.conversation import read_answer
from invocations.agent_runs.models import AgentRun, AgentRunEvent, AgentRunEventKind
from invocations.agent_runs.run_words import ToldWords
from invocations.event_streams.stream import Follower
from invocations.models import State
from kernel.problems import Malformed

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.event_streams.stream import StreamCredentials
    from invocations.models import Invocation
    from kernel.principal import Principal

OVER = "over"
MAX_DIGITS = 9
AT_ONCE = 100  # events of one look
MODEL_DELTA = "model.delta"


@dataclass(frozen=True, slots=True)
class RunStreamCursor:
    """How many events were told, or that the end was."""

    number: int = 0
    is_over: bool = False

    def __str__(self) -> str:
        return OVER if self.is_over else str(self.number)

    @classmethod
    def read(cls, text: str) -> RunStreamCursor:
        if text == OVER:
            return cls(is_over=True)
        if text and not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
            raise Malformed(
                "Last-Event-ID is not the id of an event of this stream.",
                remedy="Leave it out to begin from the beginning.",
            )
        return cls(int(text or 0))


class RunFollower(Follower):
    """One stream of an agent run."""

    def __init__(self, run_id: UUID, credentials: StreamCredentials, cursor: RunStreamCursor) -> None:
        super().__init__(run_id, credentials)
        self._cursor = cursor
        self._words: ToldWords | None = None  # of the model that is asked now
        self._is_known = False  # what the last event was

    def get_cursor(self) -> str:
        return str(self._cursor)

    def tell_news(self, by: Principal) -> None:
        """The row is read first: when it has ended, all events are there to be read as well."""
        run = AgentRun.objects.visible_to(by).get(pk=self.followed_id)
        news = self._find_news(run)
        last = news[-1] if news else self._find_resumed()
        calls = group_calls_by_step(run) if last is not None else {}
        for event in news:
            self._cursor = RunStreamCursor(event.number)
            if event.step is not None:
                self.write(event.kind, self._describe_event(event, calls.get(event.step.pk, []), by=by))
        if last is not None:
            self._watch_words(last, calls)
        if len(news) == AT_ONCE:
            return
        if run.is_final:
            self._cursor, self.is_over = RunStreamCursor(is_over=True), True
            location = f"/api/v1/runs/{run.wire_id}"
            self.write("end", build_run_answer(run, by=by).to_json(instance=location))
        elif self._words is not None and (said := self._words.find_more()) is not None:
            self.write(MODEL_DELTA, said, has_id=False)

    def _find_resumed(self) -> AgentRunEvent | None:
        """The event after which the stream goes on; asked for once."""
        if self._is_known or not self._cursor.number:
            return None
        self._is_known = True
        rows = AgentRunEvent.objects.filter(run_id=self.followed_id, number=self._cursor.number)
        return rows.select_related("step").first()

    def _watch_words(self, last: AgentRunEvent, calls: dict[UUID, list[Invocation]]) -> None:
        """Words are told where the last event is that the model was asked: so they stand between its question and its answer."""
        self._words, self._is_known = None, True
        if last.kind == AgentRunEventKind.MODEL_ASKED and last.step is not None and calls.get(last.step.pk):
            self._words = ToldWords(last.step, calls[last.step.pk][-1].pk)

    def _find_news(self, run: AgentRun) -> list[AgentRunEvent]:
        rows = AgentRunEvent.objects.filter(run=run, number__gt=self._cursor.number).select_related("step")
        return list(rows.order_by("number")[:AT_ONCE])

    def _describe_event(self, event: AgentRunEvent, calls: list[Invocation], *, by: Principal) -> dict[str, Any]:
        assert event.step is not None
        said = describe_step(event.step, calls) | {"at": event.at.isoformat()}
        call = calls[-1] if calls else None
        if event.kind == AgentRunEventKind.MODEL_ANSWERED and call is not None and call.state == State.SUCCEEDED:
            snapshot = Snapshot.objects.filter(invocation_id=call.pk, kind=SnapshotKind.OUTPUT).first()
            if snapshot is not None:
                reveal_values(snapshot=snapshot, reason=READ_OWN_ANSWER, by=by)
                answer = read_answer(call)
                said |= {name: answer[name] for name in ("text", "proposals", "finish_reason") if name in answer}
        return said
