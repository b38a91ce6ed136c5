"""Streams: the pieces of one answer, held to one form and put together to the whole.

A provider's stream becomes one of the layer by :func:`normalize_stream`: it has exactly one last piece, and that says why the answer
ended. A stream that ends without it broke off, whatever the transport says. :func:`collect_answer` is the only way in which a whole
answer comes about, so an answer that was streamed and one that was not cannot differ.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from llm.answers import ChatAnswer, ChatDelta, FinishReason, Timestamps
from llm.problems import ProviderAnswerUnreadable, StreamTruncated
from unitools.dialects import ReadOptions, ResponseTooLarge
from unitools.dialects.parsers.proposals import LONGEST, MOST, Proposal, build_calls
from unitools.dialects.streams.base import CollectedText

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from llm.answers import ParameterWarning, ToolCallDelta
    from llm.messages import ProviderState
    from llm.usage import Usage
    from unitools.calls import ToolCall

AS_NAMED = ReadOptions()
NOTHING = ChatDelta()

TOO_LARGE = "The answer is larger than is read."
TWO_ENDS = "The provider said twice that the answer ends."
AFTER_THE_END = "The provider went on with an answer that it had ended."
TWO_MODELS = "The provider named two models in one answer, so it is not clear which is to be paid for."
TWO_IDS = "The provider gave one proposed call two ids."


class _CollectedCall:
    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = CollectedText()
        self.meta: object = None

    def add(self, piece: ToolCallDelta) -> None:
        if piece.call_id and self.id not in {"", piece.call_id}:
            raise ProviderAnswerUnreadable(TWO_IDS)
        self.id = self.id or piece.call_id
        self.name += piece.name
        if len(self.name) > LONGEST:
            raise ProviderAnswerUnreadable(TOO_LARGE)
        self.arguments.add(piece.arguments)
        self.meta = self.meta if piece.meta is None else piece.meta

    def build(self, *, cut: bool) -> Proposal:
        return Proposal(self.name, str(self.arguments), self.id, cut=cut, meta=self.meta)


class AnswerCollector:
    """One answer, put together while its pieces arrive.

    ``reading`` names the tools whose arguments are never repaired.
    """

    def __init__(self, reading: ReadOptions = AS_NAMED) -> None:
        self._reading = reading
        self._text = CollectedText()
        self._calls: dict[int, _CollectedCall] = {}
        self._model = ""
        self._usage: Usage | None = None
        self._state: ProviderState | None = None
        self._warnings: tuple[ParameterWarning, ...] = ()
        self._finish: FinishReason | None = None
        self._first_token_ms: int | None = None
        self._finished_ms: int | None = None

    def add(self, delta: ChatDelta) -> None:
        """Take the next piece. Behind the last, only what is known about the answer may come: many providers count then.

        Raises:
            ProviderAnswerUnreadable: the piece contradicts those before it, or the answer is too large.
        """
        if self._finish is not None and (delta.has_content or delta.finish_reason):
            raise ProviderAnswerUnreadable(TWO_ENDS if delta.finish_reason else AFTER_THE_END)
        self._add_content(delta)
        if delta.model and self._model not in {"", delta.model}:
            raise ProviderAnswerUnreadable(TWO_MODELS)
        self._model = self._model or delta.model
        self._usage = delta.usage or self._usage
        self._state = delta.provider_state or self._state
        self._warnings += delta.warnings
        if delta.finish_reason:
            self._finish, self._finished_ms = delta.finish_reason, delta.elapsed_ms

    def _add_content(self, delta: ChatDelta) -> None:
        if delta.has_content and self._first_token_ms is None:
            self._first_token_ms = delta.elapsed_ms
        try:
            self._text.add(delta.text)
            if delta.tool_call is not None:
                self._find_call(delta.tool_call.index).add(delta.tool_call)
        except ResponseTooLarge:
            raise ProviderAnswerUnreadable(TOO_LARGE) from None

    def _find_call(self, index: int) -> _CollectedCall:
        if index not in self._calls and len(self._calls) >= MOST:
            raise ProviderAnswerUnreadable(f"The answer proposes more than {MOST} calls.")
        return self._calls.setdefault(index, _CollectedCall())

    def build_answer(self) -> ChatAnswer:
        """The whole answer.

        Raises:
            StreamTruncated: no piece said that the answer ends.
        """
        if self._finish is None:
            raise StreamTruncated
        proposals = self._build_proposals(cut=not self._finish.is_whole)
        return ChatAnswer(
            finish_reason=_correct_finish(self._finish, proposals),
            text=str(self._text),
            proposals=proposals,
            model=self._model,
            usage=self._usage,
            timestamps=Timestamps(self._first_token_ms, self._finished_ms),
            provider_state=self._state,
            warnings=self._warnings,
        )

    def _build_proposals(self, *, cut: bool) -> tuple[ToolCall, ...]:
        ordered = [call for _, call in sorted(self._calls.items())]
        return tuple(build_calls((call.build(cut=cut) for call in ordered), self._reading))


def _correct_finish(reported: FinishReason, proposals: tuple[ToolCall, ...]) -> FinishReason:
    """What the content says counts: several providers say "stop" beside calls. One that says "tool" and has none lost something."""
    if not reported.is_whole:
        return reported
    if proposals:
        return FinishReason.TOOL
    return FinishReason.STOP if reported is FinishReason.STOP else FinishReason.OTHER


async def normalize_stream(
    deltas: AsyncGenerator[ChatDelta, None],
    reading: ReadOptions = AS_NAMED,
    warnings: tuple[ParameterWarning, ...] = (),
    *,
    clock: Callable[[], float] = monotonic,
) -> AsyncGenerator[ChatDelta, None]:
    """The warnings, the pieces of a provider, each with its time, and behind all others the one that ends the answer.

    Whoever leaves before the end closes the provider's stream.

    Raises:
        StreamTruncated: after the last piece, where none ended the answer.
        ProviderAnswerUnreadable: the pieces contradict each other.
    """
    if warnings:
        yield ChatDelta(warnings=warnings)
    began, collector = clock(), AnswerCollector(reading)
    async with aclosing(deltas):
        async for delta in deltas:
            timed = replace(delta, elapsed_ms=round((clock() - began) * 1000))
            collector.add(timed)
            if replace(delta, finish_reason=None) != NOTHING:
                yield replace(timed, finish_reason=None)
    answer = collector.build_answer()
    yield ChatDelta(
        usage=answer.usage,
        model=answer.model,
        finish_reason=answer.finish_reason,
        elapsed_ms=answer.timestamps.finished_ms,
    )


async def collect_answer(deltas: AsyncIterator[ChatDelta], reading: ReadOptions = AS_NAMED) -> ChatAnswer:
    """The answer that all pieces make. Raises what :class:`AnswerCollector` does."""
    collector = AnswerCollector(reading)
    async for delta in deltas:
        collector.add(delta)
    return collector.build_answer()
