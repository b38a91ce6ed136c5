"""Run clients: how a program has a hub take a question to its answer.

What :class:`~unitools.hub.HubClient` and :class:`~unitools.hub.AsyncHubClient` have for agent runs: the hub asks the model, makes the
calls that it proposes, and asks again. Options of a request (``tools``, ``max_tokens``, ``temperature`` …) are keyword arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.hub import run_protocol
from unitools.hub.model_messages import Messages, build_messages
from unitools.hub.model_protocol import build_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Mapping
    from typing import TypeVar

    from unitools.hub import protocol
    from unitools.hub.protocol import CallSpec, RetryLimits
    from unitools.hub.results import Event
    from unitools.hub.run_results import RunAnswer

    T = TypeVar("T")
    Plan = Generator[protocol.Step, Any, T]
    OnEvent = Callable[[Event], None]

SECONDS = 300  # a run's limit unless another is said
LATE_S = 60.0  # behind the limit of a run: for the calls that are ended then


class _RunCore:
    """How a run is written."""

    if TYPE_CHECKING:

        def _call(self, envelope: Mapping[str, Any], *, key: str | None = None, **content: Any) -> CallSpec: ...
        def _within(self, timeout_s: float | None) -> RetryLimits: ...

    def _begin_run(
        self,
        model: str,
        messages: Messages,
        *,
        limits: Mapping[str, Any] | None = None,
        on_consent: str | None = None,
        purpose: str | None = None,
        key: str | None = None,
        timeout_s: float | None = None,
        on_event: OnEvent | None = None,
        envelope: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Plan[RunAnswer]:
        said = {"on_consent": on_consent, "purpose": purpose, "limits": None if limits is None else dict(limits)}
        content = {name: value for name, value in said.items() if value is not None}
        arguments = build_arguments(options, messages=build_messages(messages))
        call = self._call(envelope or {}, key=key, model=model, arguments=arguments, **content)
        if timeout_s is None:
            timeout_s = float((limits or {}).get("seconds", SECONDS)) + LATE_S
        return run_protocol.run_model(call, self._within(timeout_s), on_event=on_event)


class RunCalls(_RunCore):
    """The runs of a hub, for a client that blocks."""

    if TYPE_CHECKING:

        def _run(self, plan: Plan[T]) -> T: ...

    def run(self, model: str, messages: Messages, **options: Any) -> RunAnswer:
        """Have a question taken to its answer, and wait for it.

        ``model`` and ``messages`` as for :meth:`chat`; ``tools``: those that the model is shown. ``limits``: ``steps``,
        ``cost_micros``, ``seconds``, ``equal_calls``. ``on_consent="hold"`` with a ``purpose`` lets calls wait for people. ``key``: an
        Idempotency-Key of your own, which finds the run again. ``on_event`` is told what happens, the words of the model among it.
        ``timeout_s``: without it as long as the run may take; time in which people are waited for does not count for the run, but
        does here. ``envelope``: further fields of the request.

        A run that ends without an answer is returned with its ``stop_reason`` and ``problem``. Raises
        :class:`~unitools.hub.errors.HubError`: ``StillRunning`` when the time is over, whose ``call_id`` is the run's id.
        """
        return self._run(self._begin_run(model, messages, **options))

    def wait_for_run(
        self, run_id: str, *, timeout_s: float | None = None, on_event: OnEvent | None = None
    ) -> RunAnswer:
        """What a run comes to that was begun before."""
        return self._run(run_protocol.wait_for_run(run_id, self._within(timeout_s), on_event=on_event))

    def cancel_run(self, run_id: str) -> str:
        """Make no more of its calls. The state of the run now."""
        return self._run(run_protocol.cancel_run(run_id, self._within(None)))


class AsyncRunCalls(_RunCore):
    """The same without blocking."""

    if TYPE_CHECKING:

        def _run(self, plan: Plan[T]) -> Coroutine[Any, Any, T]: ...

    async def run(self, model: str, messages: Messages, **options: Any) -> RunAnswer:
        return await self._run(self._begin_run(model, messages, **options))

    async def wait_for_run(
        self, run_id: str, *, timeout_s: float | None = None, on_event: OnEvent | None = None
    ) -> RunAnswer:
        return await self._run(run_protocol.wait_for_run(run_id, self._within(timeout_s), on_event=on_event))

    async def cancel_run(self, run_id: str) -> str:
        return await self._run(run_protocol.cancel_run(run_id, self._within(None)))
