"""Server process: one server of others that was started here, and what is said with it.

It is forked from the process that asks it, and ends with what it was started for.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from unitools import runtime
from unitools.mcp_conversation import ServerEnded, ServerUnfit
from unitools.mcp_pipes import PipeConversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import NoReturn

_END_MS = 300  # for a server to end by itself when its input is closed
_LOOK_S = 0.01


class ServerProcess:
    """``serve`` is what the new process does; it has none of the descriptors that it ``closes``.

    In a ``with`` block: the server ends with the block. :class:`ServerUnfit` where it has ended by itself before it answered.
    """

    def __init__(self, serve: Callable[[], NoReturn], *, closes: Iterable[int]) -> None:
        its_input, ours = os.pipe()
        from_it, its_output = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.dup2(its_input, 0)
                os.dup2(its_output, 1)
                for each in {*closes, ours, from_it, its_input, its_output}:  # what its modules have opened stays
                    with suppress(OSError):
                        os.close(each)
                serve()
            finally:
                os._exit(1)
        os.close(its_input)
        os.close(its_output)
        self._from_it, self._ours = from_it, ours
        self._notes: list[str] = []
        self._is_of_a_call = False
        self.talk = PipeConversation(from_it, ours, log=_log, note=self._note, progress=self._pass_progress)

    @property
    def descriptors(self) -> tuple[int, ...]:
        return self._from_it, self._ours

    def answer_to_call(self) -> None:
        """From now on what it says is of the call that is running."""
        self._is_of_a_call = True
        for note in self._notes:
            runtime.warn(note)

    def stop(self) -> None:
        """It takes no part in anything until it goes on."""
        os.kill(self._pid, signal.SIGSTOP)

    def go_on(self) -> bool:
        """False where it has ended meanwhile."""
        with suppress(ChildProcessError, ProcessLookupError):
            if os.waitpid(self._pid, os.WNOHANG) == (0, 0):
                os.kill(self._pid, signal.SIGCONT)
                return True
        return False

    def kill(self) -> None:
        """Whatever it is doing. To be ended all the same, as any."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def drop(self) -> None:
        """End it, whatever it is doing."""
        os.close(self._ours)
        end_process(self._pid)
        os.close(self._from_it)

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if isinstance(error, ServerEnded):
            code = os.waitstatus_to_exitcode(end_process(self._pid, within_ms=_END_MS))
            os.close(self._ours)
            os.close(self._from_it)
            raise ServerUnfit(f"The server ended with exit code {code} before it answered.") from None
        os.close(self._ours)
        self.talk.drain(_END_MS)
        end_process(self._pid)
        os.close(self._from_it)

    def _note(self, note: str) -> None:
        if self._is_of_a_call:
            runtime.warn(note)
        else:
            self._notes.append(note)

    def _pass_progress(self, fraction: float, message: str) -> None:
        if self._is_of_a_call:
            runtime.progress(fraction, message)


def _log(line: str) -> None:
    print(line, flush=True)


def end_process(pid: int, within_ms: int = 0) -> int:
    """By itself within so long, else whatever it is doing; returns how it ended, 0 where the server has it that nobody is told."""
    with suppress(ChildProcessError):
        until = time.monotonic() + within_ms / 1000
        while time.monotonic() < until:
            if (ended := os.waitpid(pid, os.WNOHANG))[0]:
                return ended[1]
            time.sleep(_LOOK_S)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return os.waitpid(pid, 0)[1]
    return 0
