"""Early runs: the run of a model's call, prepared while the database commits the Begin of that call.

The provider is not asked before the Begin is there (:mod:`invocations.model_calls.begin_gates`). Where the run was not prepared early,
or could not be, it is prepared as any other is, and then it is said what was wrong.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Self

from invocations.model_calls.model_runs import build_run

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from invocations.calls import BegunCall
    from invocations.decide.preflight import Preflight
    from invocations.model_calls.model_runs import ModelRun
    from invocations.models import Invocation

log = logging.getLogger("toolhub.models")


class EarlyRun:
    """Of one request. What nobody has taken at the end of the block is given up: its call was not begun."""

    def __init__(self, loop: AbstractEventLoop | None, *, wants_stream: bool) -> None:
        self._loop, self._wants_stream = loop, wants_stream
        self._run: ModelRun | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._loop = None
        if self._run is not None:
            self._run.discard()

    def build(self, invocation: Invocation, preflight: Preflight) -> None:
        """Work for :func:`kernel.database.connections.work_while_committing`."""
        if self._loop is None:
            return
        try:
            self._run = build_run(invocation, preflight, wants_stream=self._wants_stream)
            self._run.start_early(self._loop)
        except Exception:  # noqa: BLE001  it is built again, and then whoever asked is told
            log.debug("%s was not prepared early", invocation.wire_id)

    def take(self, begun: BegunCall) -> ModelRun | None:
        """The run of this call, if it was prepared."""
        if self._run is None or self._run.id != begun.invocation.pk:
            return None
        run, self._run = self._run, None
        return run
