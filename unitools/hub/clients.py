"""Clients: how a program uses the tools of a hub.

:class:`HubClient` blocks, :class:`AsyncHubClient` does not; they have the same methods, and the same rules
(:mod:`unitools.hub.protocol`)::

    with HubClient("https://hub.example.org", key) as hub:
        answer = hub.invoke("acme.quotes.latest", {"symbol": "ACME"}, into=Quote)
        print(answer.data.price, answer.sources)

The key is asked for as a value or as a function, which is called for each request: a key that was rotated is found without a restart.
It is in no ``repr``, no message of an error and no log.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections import OrderedDict
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any, TypeVar, overload
from urllib.parse import urlsplit

import anyio
import httpx2

from unitools.hub import protocol
from unitools.hub.model_clients import AsyncModelCalls, ModelCalls
from unitools.hub.protocol import (
    CallSpec,
    ConnectionLost,
    HubRequest,
    Pause,
    Reply,
    RetryLimits,
    StreamRead,
    StreamRequest,
)
from unitools.hub.responses import build_dispatch
from unitools.hub.run_clients import AsyncRunCalls, RunCalls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
    from typing import Self

    from unitools.hub.results import Answer, Dispatched, Event, PendingCall, Preflight, Tools

    OnEvent = Callable[[Event], None]

T = TypeVar("T")
KEY_VARIABLE, URL_VARIABLE = "TOOLHUB_API_KEY", "TOOLHUB_URL"
_KEY = re.compile(r"[\x21-\x7e]+")
_REMEMBERED = 32  # lists of tools that are asked for again with their ETag
_NEVER_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


def new_key() -> str:
    """One that nobody has used: for one logical call."""
    return uuid.uuid4().hex


class _Core:
    """What both clients know: where the hub is, who asks, and how requests are written."""

    def __init__(
        self,
        url: str,
        key: str | Callable[[], str],
        *,
        agent: str = "unitools",
        timeout_s: float = 120.0,
        attempts: int = 5,
        app: Mapping[str, str] | None = None,
    ) -> None:
        """``agent`` is what the caller says of itself, ``app`` too (``app``, ``version``, ``model``). ``timeout_s`` is that of a
        logical call with all its retries, ``attempts`` those of one request. ``ValueError`` for an address that is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or {"?", "#"} & set(url):
            raise ValueError("The address of a hub is http(s)://host, and the key is not part of it.")
        self.url = url.rstrip("/")
        self._key = key if callable(key) else (lambda: key)
        self._actor = {"type": "agent", "id": agent}
        self._app = dict(app or {})
        self._patience = RetryLimits(timeout_s, attempts, time.monotonic)
        self._known: OrderedDict[str, Tools] = OrderedDict()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @classmethod
    def from_environment(cls, **options: Any) -> Self:
        """With ``TOOLHUB_URL`` and ``TOOLHUB_API_KEY``; ``LookupError`` when one is not set."""
        missing = [name for name in (URL_VARIABLE, KEY_VARIABLE) if not os.environ.get(name)]
        if missing:
            raise LookupError(f"Set {' and '.join(missing)}.")
        return cls(os.environ[URL_VARIABLE], lambda: os.environ[KEY_VARIABLE], **options)

    def _within(self, timeout_s: float | None) -> RetryLimits:
        given = self._patience
        return given if timeout_s is None else RetryLimits(timeout_s, given.attempts, given.clock)

    def _call(self, envelope: Mapping[str, Any], *, key: str | None = None, **content: Any) -> CallSpec:
        about: dict[str, Any] = {"request_id": f"ut-{uuid.uuid4().hex}", "actor": self._actor}
        if self._app:
            about["client"] = self._app
        return CallSpec(about | content | dict(envelope), key or new_key())

    def _content(self, send: HubRequest) -> dict[str, Any]:
        """The arguments of a request of httpx2."""
        headers = {"Authorization": f"Bearer {_sendable(self._key())}", "Accept": "application/json", **send.headers}
        body: dict[str, Any] = {}
        if isinstance(send.body, bytes):
            body["content"] = send.body
        elif send.body is not None:
            body["json"] = send.body
        return {
            "method": send.method,
            "url": self.url + send.path,
            "headers": headers,
            "timeout": httpx2.Timeout(send.timeout_s, connect=min(10.0, send.timeout_s)),
            **body,
        }

    def _remember(self, query: str, tools: Tools) -> Tools:
        self._known[query] = tools
        self._known.move_to_end(query)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return tools


def _sendable(key: str) -> str:
    """What cannot stand in a header would be told in the error of the HTTP library, which tracebacks and logs show."""
    if not _KEY.fullmatch(key):
        raise ValueError("The API key is empty, or holds a space, an end of line or a letter that no key has.")
    return key


def _lost(error: httpx2.HTTPError | httpx2.InvalidURL) -> ConnectionLost:
    kind = type(error).__name__
    return ConnectionLost(f"The hub does not answer ({kind}).", sent=not isinstance(error, _NEVER_SENT))


def _query(dialect: str, model: str, q: str, limit: int | None, filters: Mapping[str, str]) -> dict[str, str]:
    given = {"dialect": dialect, "model": model, "q": q, "limit": "" if limit is None else str(limit), **filters}
    return {name: value for name, value in given.items() if value}


class HubClient(_Core, ModelCalls, RunCalls):
    """A client that blocks. Threads may share one."""

    def __init__(self, url: str, key: str | Callable[[], str], **options: Any) -> None:
        super().__init__(url, key, **options)
        self._http = httpx2.Client(follow_redirects=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def discover(
        self, *, dialect: str = "", model: str = "", q: str = "", limit: int | None = None, **filters: str
    ) -> Tools:
        """What this agent may call now, rendered for a model; the same object again while nothing has changed."""
        query = _query(dialect, model, q, limit, filters)
        name = repr(sorted(query.items()))
        return self._remember(
            name, self._run(protocol.discover_tools(query, self._within(None), self._known.get(name)))
        )

    def preflight(self, tool: str, arguments: Mapping[str, Any], **envelope: Any) -> Preflight:
        """Would this call be allowed, and within what? Nothing runs."""
        body = self._call(envelope, arguments=dict(arguments)).body
        return self._run(protocol.preflight_call(tool, body, self._within(None)))

    @overload
    def invoke(
        self, tool: str, arguments: Mapping[str, Any], *, into: type[T], key: str | None = ...,
        timeout_s: float | None = ..., on_event: OnEvent | None = ..., **envelope: Any,
    ) -> Answer[T]: ...  # fmt: skip
    @overload
    def invoke(
        self, tool: str, arguments: Mapping[str, Any], *, into: None = ..., key: str | None = ...,
        timeout_s: float | None = ..., on_event: OnEvent | None = ..., **envelope: Any,
    ) -> Answer[Any]: ...  # fmt: skip
    def invoke(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        into: Any = None,
        key: str | None = None,
        timeout_s: float | None = None,
        on_event: OnEvent | None = None,
        **envelope: Any,
    ) -> Answer[Any]:
        """Make a call and get its answer. Raises :class:`~unitools.hub.errors.HubError`.

        ``into``: the type of the data, as pydantic reads it. ``key``: an Idempotency-Key of your own, which outlives this process;
        without it each call of this method makes one. ``on_event`` is told what the call says while it runs. ``envelope``: further
        fields of the request, such as ``dry_run``, ``user_id``, ``on_consent`` and ``purpose``.
        """
        call = self._call(envelope, key=key, arguments=dict(arguments))
        return self._run(protocol.invoke_tool(tool, call, self._within(timeout_s), into=into, on_event=on_event))

    def begin(self, tool: str, arguments: Mapping[str, Any], *, key: str | None = None, **envelope: Any) -> PendingCall:
        """Make a call without waiting for it; :meth:`wait` gets its answer, also in another process."""
        call = self._call(envelope, key=key, arguments=dict(arguments))
        return self._run(protocol.begin_call(tool, call, self._within(None)))

    def wait(
        self, call_id: str, *, into: Any = None, timeout_s: float | None = None, on_event: OnEvent | None = None
    ) -> Answer[Any]:
        """The answer of a call. ``StillRunning`` when the time is over before it has ended: wait again."""
        return self._run(protocol.wait_for_call(call_id, self._within(timeout_s), into=into, on_event=on_event))

    def cancel(self, call_id: str) -> str:
        """The state of the call now."""
        return self._run(protocol.cancel_call(call_id, self._within(None)))

    def dispatch(
        self, response: Any, *, key: str | None = None, timeout_s: float | None = None, **envelope: Any
    ) -> Dispatched:
        """Make the calls that an answer proposes: one of :meth:`chat`, its proposals, or a provider's (a dict, text, or an object of
        its SDK).
        """
        call = self._call(envelope, key=key, **build_dispatch(response))
        return self._run(protocol.dispatch_response(call, self._within(timeout_s)))

    def send(self, send: HubRequest) -> dict[str, Any]:
        """Any other request of the API: its envelope."""
        return self._run(protocol.request_envelope(send, self._within(None)))

    def _run(self, plan: Generator[protocol.Step, Any, T]) -> T:
        with ExitStack() as opened:
            return self._carry_out(plan, opened, [])

    def _run_open(self, plan: Generator[protocol.Step, Any, Reply], opened: ExitStack) -> tuple[Reply, Iterator[str]]:
        """The stream that the plan has opened lasts as long as ``opened`` does."""
        stream: list[Iterator[str]] = []
        reply = self._carry_out(plan, opened, stream)
        return reply, stream[0]

    def _carry_out(self, plan: Generator[protocol.Step, Any, T], opened: ExitStack, stream: list[Iterator[str]]) -> T:
        try:
            step = next(plan)
            while True:
                try:
                    came = self._do(step, opened, stream)
                except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                    step = plan.throw(_lost(error))
                else:
                    step = plan.send(came)
        except StopIteration as done:
            result: T = done.value
            return result

    def _do(self, step: protocol.Step, opened: ExitStack, stream: list[Iterator[str]]) -> Any:
        match step:
            case StreamRequest():
                response = opened.enter_context(self._http.stream(**self._content(step)))
                stream[:] = [response.iter_text()]
                return Reply(response.status_code, response.headers)
            case HubRequest():
                response = self._http.request(**self._content(step))
                return Reply(response.status_code, response.headers, response.content)
            case StreamRead():
                return next(stream[0], None)
            case Pause():
                return time.sleep(step.seconds)
            case _:
                return opened.close()


class AsyncHubClient(_Core, AsyncModelCalls, AsyncRunCalls):
    """The same without blocking, under asyncio or trio."""

    def __init__(self, url: str, key: str | Callable[[], str], **options: Any) -> None:
        super().__init__(url, key, **options)
        self._http = httpx2.AsyncClient(follow_redirects=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def discover(
        self, *, dialect: str = "", model: str = "", q: str = "", limit: int | None = None, **filters: str
    ) -> Tools:
        query = _query(dialect, model, q, limit, filters)
        name = repr(sorted(query.items()))
        return self._remember(
            name, await self._run(protocol.discover_tools(query, self._within(None), self._known.get(name)))
        )

    async def preflight(self, tool: str, arguments: Mapping[str, Any], **envelope: Any) -> Preflight:
        body = self._call(envelope, arguments=dict(arguments)).body
        return await self._run(protocol.preflight_call(tool, body, self._within(None)))

    @overload
    async def invoke(
        self, tool: str, arguments: Mapping[str, Any], *, into: type[T], key: str | None = ...,
        timeout_s: float | None = ..., on_event: OnEvent | None = ..., **envelope: Any,
    ) -> Answer[T]: ...  # fmt: skip
    @overload
    async def invoke(
        self, tool: str, arguments: Mapping[str, Any], *, into: None = ..., key: str | None = ...,
        timeout_s: float | None = ..., on_event: OnEvent | None = ..., **envelope: Any,
    ) -> Answer[Any]: ...  # fmt: skip
    async def invoke(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        into: Any = None,
        key: str | None = None,
        timeout_s: float | None = None,
        on_event: OnEvent | None = None,
        **envelope: Any,
    ) -> Answer[Any]:
        call = self._call(envelope, key=key, arguments=dict(arguments))
        return await self._run(protocol.invoke_tool(tool, call, self._within(timeout_s), into=into, on_event=on_event))

    async def begin(
        self, tool: str, arguments: Mapping[str, Any], *, key: str | None = None, **envelope: Any
    ) -> PendingCall:
        call = self._call(envelope, key=key, arguments=dict(arguments))
        return await self._run(protocol.begin_call(tool, call, self._within(None)))

    async def wait(
        self, call_id: str, *, into: Any = None, timeout_s: float | None = None, on_event: OnEvent | None = None
    ) -> Answer[Any]:
        return await self._run(protocol.wait_for_call(call_id, self._within(timeout_s), into=into, on_event=on_event))

    async def cancel(self, call_id: str) -> str:
        return await self._run(protocol.cancel_call(call_id, self._within(None)))

    async def dispatch(
        self, response: Any, *, key: str | None = None, timeout_s: float | None = None, **envelope: Any
    ) -> Dispatched:
        call = self._call(envelope, key=key, **build_dispatch(response))
        return await self._run(protocol.dispatch_response(call, self._within(timeout_s)))

    async def send(self, send: HubRequest) -> dict[str, Any]:
        return await self._run(protocol.request_envelope(send, self._within(None)))

    async def _run(self, plan: Generator[protocol.Step, Any, T]) -> T:
        async with AsyncExitStack() as opened:
            return await self._carry_out(plan, opened, [])

    async def _run_open(
        self, plan: Generator[protocol.Step, Any, Reply], opened: AsyncExitStack
    ) -> tuple[Reply, AsyncIterator[str]]:
        """The stream that the plan has opened lasts as long as ``opened`` does."""
        stream: list[AsyncIterator[str]] = []
        reply = await self._carry_out(plan, opened, stream)
        return reply, stream[0]

    async def _carry_out(
        self, plan: Generator[protocol.Step, Any, T], opened: AsyncExitStack, stream: list[AsyncIterator[str]]
    ) -> T:
        try:
            step = next(plan)
            while True:
                try:
                    came = await self._do(step, opened, stream)
                except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                    step = plan.throw(_lost(error))
                else:
                    step = plan.send(came)
        except StopIteration as done:
            result: T = done.value
            return result

    async def _do(self, step: protocol.Step, opened: AsyncExitStack, stream: list[AsyncIterator[str]]) -> Any:
        match step:
            case StreamRequest():
                response = await opened.enter_async_context(self._http.stream(**self._content(step)))
                stream[:] = [response.aiter_text()]
                return Reply(response.status_code, response.headers)
            case HubRequest():
                response = await self._http.request(**self._content(step))
                return Reply(response.status_code, response.headers, response.content)
            case StreamRead():
                return await anext(stream[0], None)
            case Pause():
                return await anyio.sleep(step.seconds)
            case _:
                return await opened.aclose()
