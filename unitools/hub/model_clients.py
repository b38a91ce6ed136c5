"""Model clients: how a program asks the models of a hub, as a whole and piece by piece.

What :class:`~unitools.hub.HubClient` and :class:`~unitools.hub.AsyncHubClient` have for models. Options of a request
(``temperature``, ``max_tokens``, ``tools``, ``response_format`` …) are keyword arguments. Beside them stand those of every call:
``key``, an Idempotency-Key of your own; ``timeout_s``; and ``envelope``, with further fields of it (``user_id``, ``purpose`` …).
"""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

import httpx2

from unitools.hub import model_protocol, protocol
from unitools.hub.errors import Unreachable
from unitools.hub.model_messages import Messages, build_messages
from unitools.hub.model_protocol import AnswerReader, build_arguments
from unitools.hub.model_results import (
    ChatAnswer,
    ChatDelta,
    EmbedAnswer,
    OfferedModel,
    RerankAnswer,
    read_chat_answer,
    read_embed_answer,
    read_rerank_answer,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
    from typing import Self, TypeVar

    from unitools.hub.protocol import CallSpec, Reply, RetryLimits
    from unitools.hub.results import Answer

    T = TypeVar("T")
    Plan = Generator[protocol.Step, Any, T]

NOT_OPEN = "The stream is not open: use it as `with hub.stream(…) as stream`."


class _Pieces:
    """What both streams know: whether they are open, and what was read."""

    def __init__(self) -> None:
        self._reader: AnswerReader | None = None

    @property
    def reader(self) -> AnswerReader:
        if self._reader is None:
            raise RuntimeError(NOT_OPEN)
        return self._reader

    @property
    def call_id(self) -> str:
        """Of the hub: the answer of a stream that broke off is found by it."""
        return self.reader.call_id

    @property
    def answer(self) -> ChatAnswer:
        """The whole, once all pieces were read."""
        if self.reader.answer is None:
            raise RuntimeError("The answer is not whole yet: read all pieces before.")
        return self.reader.answer


def _broke_off(error: httpx2.HTTPError) -> Unreachable:
    return Unreachable(f"{model_protocol.BROKE_OFF} ({type(error).__name__})", may_have_arrived=True)


class ChatStream(_Pieces):
    """An answer while it comes: ``with`` opens it, ``for`` reads its pieces, ``answer`` is the whole behind the last. Leaving it
    earlier closes the connection, and the hub ends the call.
    """

    def __init__(self, begin: Callable[[ExitStack], tuple[Reply, Iterator[str]]]) -> None:
        super().__init__()
        self._begin, self._opened = begin, ExitStack()
        self._texts: Iterator[str] | None = None

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            reply, self._texts = self._begin(opened)
            self._reader = AnswerReader(reply)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._opened.close()

    def __iter__(self) -> Iterator[ChatDelta]:
        reader = self.reader
        assert self._texts is not None
        try:
            for text in self._texts:
                yield from reader.read(text)
                if reader.answer is not None:
                    return
        except httpx2.HTTPError as error:
            raise _broke_off(error) from None
        reader.finish()


class AsyncChatStream(_Pieces):
    """The same with ``async with`` and ``async for``."""

    def __init__(self, begin: Callable[[AsyncExitStack], Awaitable[tuple[Reply, AsyncIterator[str]]]]) -> None:
        super().__init__()
        self._begin, self._opened = begin, AsyncExitStack()
        self._texts: AsyncIterator[str] | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opened:
            reply, self._texts = await self._begin(opened)
            self._reader = AnswerReader(reply)
            self._opened = opened.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._opened.aclose()

    async def __aiter__(self) -> AsyncIterator[ChatDelta]:
        reader = self.reader
        assert self._texts is not None
        try:
            async for text in self._texts:
                for delta in reader.read(text):
                    yield delta
                if reader.answer is not None:
                    return
        except httpx2.HTTPError as error:
            raise _broke_off(error) from None
        reader.finish()


class _ModelCore:
    """How a call of a model is written."""

    if TYPE_CHECKING:

        def _call(self, envelope: Mapping[str, Any], *, key: str | None = None, **content: Any) -> CallSpec: ...
        def _within(self, timeout_s: float | None) -> RetryLimits: ...

    def _ask(self, model: str, operation: str, options: dict[str, Any], **content: Any) -> Plan[Answer[Any]]:
        call, patience = self._write(options, content)
        return model_protocol.ask_model(model, operation, call, patience)

    def _write(self, options: Mapping[str, Any], content: Mapping[str, Any]) -> tuple[CallSpec, RetryLimits]:
        """One logical call."""
        asked = dict(options)
        key, timeout_s, envelope = (asked.pop(name, None) for name in ("key", "timeout_s", "envelope"))
        call = self._call(envelope or {}, key=key, arguments=build_arguments(asked, **content))
        return call, self._within(timeout_s)


class ModelCalls(_ModelCore):
    """The models of a hub, for a client that blocks."""

    if TYPE_CHECKING:

        def _run(self, plan: Plan[T]) -> T: ...
        def _run_open(self, plan: Plan[Reply], opened: ExitStack) -> tuple[Reply, Iterator[str]]: ...

    def models(self, *, operation: str = "") -> tuple[OfferedModel, ...]:
        """The models that this agent may call now; ``operation``: ``chat``, ``embed`` or ``rerank``."""
        return self._run(model_protocol.list_models(operation, self._within(None)))

    def chat(self, model: str, messages: Messages, **options: Any) -> ChatAnswer:
        """The whole answer. ``model``: its id, or an alias that only one provider has. ``messages``: a text, or the conversation.

        Calls of tools that the model proposes are not made: give them to :meth:`dispatch`. Raises
        :class:`~unitools.hub.errors.HubError`.
        """
        plan = self._ask(model, "chat", options, messages=build_messages(messages))
        return read_chat_answer(self._run(plan))

    def stream(self, model: str, messages: Messages, **options: Any) -> ChatStream:
        """The answer while it comes. ``timeout_s``: for its beginning, and for each pause in it; the hub bounds the whole."""
        call, patience = self._write(options, {"messages": build_messages(messages)})
        return ChatStream(lambda opened: self._run_open(model_protocol.open_answer(model, call, patience), opened))

    def embed(self, model: str, items: str | Sequence[str], **options: Any) -> EmbedAnswer:
        """A vector for each text, in their order."""
        return read_embed_answer(self._run(self._ask(model, "embed", options, items=items)))

    def rerank(self, model: str, query: str, candidates: Sequence[str], **options: Any) -> RerankAnswer:
        """A score for each text, by how well it answers the query."""
        plan = self._ask(model, "rerank", options, query=query, candidates=list(candidates))
        return read_rerank_answer(self._run(plan))


class AsyncModelCalls(_ModelCore):
    """The same without blocking."""

    if TYPE_CHECKING:

        def _run(self, plan: Plan[T]) -> Coroutine[Any, Any, T]: ...
        def _run_open(
            self, plan: Plan[Reply], opened: AsyncExitStack
        ) -> Coroutine[Any, Any, tuple[Reply, AsyncIterator[str]]]: ...

    async def models(self, *, operation: str = "") -> tuple[OfferedModel, ...]:
        return await self._run(model_protocol.list_models(operation, self._within(None)))

    async def chat(self, model: str, messages: Messages, **options: Any) -> ChatAnswer:
        plan = self._ask(model, "chat", options, messages=build_messages(messages))
        return read_chat_answer(await self._run(plan))

    def stream(self, model: str, messages: Messages, **options: Any) -> AsyncChatStream:
        call, patience = self._write(options, {"messages": build_messages(messages)})
        return AsyncChatStream(lambda opened: self._run_open(model_protocol.open_answer(model, call, patience), opened))

    async def embed(self, model: str, items: str | Sequence[str], **options: Any) -> EmbedAnswer:
        return read_embed_answer(await self._run(self._ask(model, "embed", options, items=items)))

    async def rerank(self, model: str, query: str, candidates: Sequence[str], **options: Any) -> RerankAnswer:
        plan = self._ask(model, "rerank", options, query=query, candidates=list(candidates))
        return read_rerank_answer(await self._run(plan))
